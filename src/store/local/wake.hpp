#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/local/lock_directory.hpp"
#include "support/unique_fd.hpp"

namespace redlock::local {

/// A subscription to a channel between processes of this host: a FIFO in the lock directory, with
/// one subscriber (E2). The FIFO has no reader once the subscriber ends, however that happens, so a
/// publisher notices at once that the subscriber is gone.
class Subscription {
 public:
  /// Receives all messages that are published after this returns. The channel must not be in use.
  static Result<Subscription, Fault> open(const Directory& directory, std::string_view channel);

  Subscription(Subscription&&) = default;
  Subscription& operator=(Subscription&&) = delete;
  ~Subscription();

  /// Becomes readable when a message is published.
  [[nodiscard]] int fd() const noexcept { return fifo_.get(); }

  /// The messages since the last call. The latest are lost if there were more than fit into a pipe.
  [[nodiscard]] std::vector<std::string> messages() const;

 private:
  Subscription(UniqueFd directory, UniqueFd fifo, std::string name);

  UniqueFd directory_;
  UniqueFd fifo_;
  std::string name_;
};

/// Publishes a message. Returns the number of subscribers reached, like PUBLISH: 1 or 0. Never
/// waits. `message`: one line, at most 1000 bytes.
std::int64_t publish(const Directory& directory, std::string_view channel,
                     std::string_view message);

/// The number of subscribers, like PUBSUB NUMSUB: 1 or 0.
std::int64_t subscribers(const Directory& directory, std::string_view channel);

/// Whether it is the name of a subscriber's FIFO.
bool is_fifo(std::string_view name);

/// Removes a FIFO whose subscriber was killed.
void remove_if_unsubscribed(const Directory& directory, const std::string& name);

}  // namespace redlock::local
