#pragma once

#include <asio/awaitable.hpp>
#include <cstddef>
#include <optional>

#include "store/redis/command.hpp"
#include "store/redis/redis_server.hpp"
#include "store/redis/server_info.hpp"
#include "support/clock.hpp"

namespace redlock::redis {

/// After so many questions without an answer `doctor` does not ask the rest: each would take as
/// long.
inline constexpr std::size_t max_unanswered = 2;

/// Asks one server about itself. Each question has a time of its own, and one that fails leaves the
/// answers to the others.
class Interview {
 public:
  /// `report` gets the latency, and the questions that failed. All references must outlive it.
  Interview(RedisServer& server, const Clock& clock, Duration server_timeout, ServerReport& report)
      : server_(server), clock_(clock), server_timeout_(server_timeout), report_(report) {}

  /// The answer; an error reply if there is none, or if nothing was answered so far and there is no
  /// hope for it.
  asio::awaitable<Reply> ask(Command question, ReplyLimits limits = {});

  /// Why no question was answered, not even with an error; nullopt if one was.
  [[nodiscard]] std::optional<Fault> silence() const {
    return was_answered_ ? std::nullopt : last_fault_;
  }

 private:
  [[nodiscard]] bool is_hopeless() const;

  RedisServer& server_;
  const Clock& clock_;
  Duration server_timeout_;
  ServerReport& report_;
  bool was_answered_ = false;
  std::size_t unanswered_ = 0;  ///< number of questions
  std::optional<Fault> last_fault_;
};

}  // namespace redlock::redis
