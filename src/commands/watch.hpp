#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <string>
#include <vector>

#include "commands/exit_as.hpp"
#include "commands/session.hpp"
#include "output/screen.hpp"

namespace redlock::commands {

/// What `--watch` shows.
struct Watched {
  std::function<asio::awaitable<void>()> refresh;
  /// The lines of a screen of this size, from the data of the last refresh().
  std::function<std::vector<std::string>(output::TerminalSize)> lines;
};

/// Shows `watched` in place on the terminal at stdout, refreshed every `interval` and redrawn when
/// the size changes, until q is typed or a signal ends it. When the job is stopped, restores the
/// terminal, and redraws when the job is continued. Throws CommandError when it cannot write.
asio::awaitable<ExitAs> watch(Session& session, const guard::InheritedSignals& inherited,
                              Duration interval, Watched watched);

}  // namespace redlock::commands
