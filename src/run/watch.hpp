#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <string>
#include <vector>

#include "run/finish.hpp"
#include "run/screen.hpp"
#include "run/session.hpp"

namespace redlock::run {

/// What is shown again and again.
struct Watched {
  std::function<asio::awaitable<void>()> refresh;
  /// The lines of a screen, from what refresh() found last.
  std::function<std::vector<std::string>(output::TerminalSize)> lines;
};

/// Shows it on the terminal at stdout, in place: refreshed every `interval`, drawn again when the
/// size changes, until a signal ends it. A job that is stopped gives the terminal back as it was,
/// and goes on with its continuation. Throws CommandError when it cannot write.
asio::awaitable<Finish> watch(Session& session, const child::InheritedSignals& inherited,
                              Duration interval, Watched watched);

}  // namespace redlock::run
