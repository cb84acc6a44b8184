#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/local/lock_directory.hpp"
#include "support/unique_fd.hpp"

namespace redlock::local {

/// Channels between processes of this host: a FIFO in the lock directory for the one subscriber of
/// each (E2). It ends with the subscriber, however that ends, so a publisher learns at once that
/// there is no subscriber any more.
class Subscription {
 public:
  /// Receives what is published after this returns. The channel must not be in use.
  static Result<Subscription, Fault> open(const Directory& directory, std::string_view channel);

  Subscription(Subscription&&) = default;
  Subscription& operator=(Subscription&&) = delete;
  ~Subscription();

  /// Readable when something was published.
  [[nodiscard]] int fd() const noexcept { return fifo_.get(); }

  /// What was published since the last call; the latest may be missing if it was more than a pipe
  /// holds.
  [[nodiscard]] std::vector<std::string> messages() const;

 private:
  Subscription(UniqueFd directory, UniqueFd fifo, std::string name);

  UniqueFd directory_;
  UniqueFd fifo_;
  std::string name_;
};

/// The number of subscribers reached, as PUBLISH answers: 1 or 0. Never waits. `message`: one line,
/// at most 1000 bytes.
std::int64_t publish(const Directory& directory, std::string_view channel,
                     std::string_view message);

/// The number of subscribers, as PUBSUB NUMSUB answers: 1 or 0.
std::int64_t subscribers(const Directory& directory, std::string_view channel);

/// Whether it is the name of a subscriber's FIFO.
bool is_fifo(std::string_view name);

/// Removes a FIFO whose subscriber was killed.
void remove_if_unheard(const Directory& directory, const std::string& name);

}  // namespace redlock::local
