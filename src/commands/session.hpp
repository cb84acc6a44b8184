#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "commands/servers.hpp"
#include "engine/diagnosis.hpp"
#include "engine/server_set.hpp"
#include "output/console.hpp"
#include "output/event.hpp"
#include "support/clock.hpp"
#include "support/spawn.hpp"

namespace redlock::commands {

/// The options of a session besides its servers.
struct SessionOptions {
  output::Console console;
  bool json;
  bool identifies_servers;  ///< whether to ask each server, if there are several, for its identity
                            ///< and start time
  bool tells_unknown_roles = false;  ///< a server may be a replica, and does not report it
};

/// Writes a command's result to stdout. Throws CommandError (os_error) on failure, which would
/// otherwise go unnoticed.
void print_result(std::string_view text);

/// How a session connects to each of its servers, in the order given.
std::vector<ServerLink> links_to(const SessionOptions& options, const ServerOptions& servers,
                                 Duration server_timeout);

/// The objects that every command uses: the executor, the clock, the servers and the console.
class Session {
 public:
  Session(const SessionOptions& options, const ServerOptions& servers, Duration server_timeout);

  [[nodiscard]] asio::io_context& io() noexcept { return *io_; }
  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }
  [[nodiscard]] ServerSet& server_set() noexcept { return *server_set_; }
  [[nodiscard]] Interrupt& interrupt() noexcept { return interrupt_; }
  [[nodiscard]] const output::Console& console() const noexcept { return console_; }
  [[nodiscard]] bool json() const noexcept { return json_; }
  [[nodiscard]] output::Events& events() noexcept { return events_; }
  [[nodiscard]] const output::Events& events() const noexcept { return events_; }

  /// Runs a coroutine that returns a T to its end, and drops the coroutines that it left running in
  /// the background. After an exception the process must end.
  template <class T>
  T run(asio::awaitable<T> main) {
    std::optional<T> result;
    spawn(io_->get_executor(), [this, &result, &main]() -> asio::awaitable<void> {
      result.emplace(co_await std::move(main));
      io_->stop();
    });
    try {
      io_->run();
    } catch (...) {
      // Leak the context: destroying it would destroy a queued waiter, which then leaves the queue
      // through servers that no longer exist.
      static_cast<void>(io_.release());
      throw;
    }
    return std::move(*result);
  }

 private:
  output::Console console_;
  output::Events events_;
  bool json_;
  // The order matters: io_ destroys suspended coroutines, and they may read the interrupt then.
  Interrupt interrupt_;
  std::unique_ptr<asio::io_context> io_ = std::make_unique<asio::io_context>(1);
  SystemClock clock_{io_->get_executor()};
  std::unique_ptr<ServerSet> server_set_;
};

}  // namespace redlock::commands
