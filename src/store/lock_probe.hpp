#pragma once

#include <asio/awaitable.hpp>
#include <optional>
#include <string>
#include <vector>

#include "store/diagnosis.hpp"
#include "store/lock_server.hpp"
#include "support/clock.hpp"

namespace redlock {

/// A token of the system's randomness.
Token draw_token();

/// Whether a server does all that a holder needs, tested with a lease on one key.
class LockProbe {
 public:
  /// Probes with the request's key, or with a key of its own. `server` and `clock` must outlive it.
  LockProbe(LockServer& server, const Clock& clock, const DiagnosisRequest& request);

  /// Acquires the lock, raises its fence, extends, inspects, releases, heals and releases it by
  /// hand, up to the first step that fails. Leaves a key alone that another client holds.
  asio::awaitable<void> run();

  /// Records another failed step, unless one is recorded already.
  void fail(std::string step, Fault fault);

  /// Undoes what a failed step may have left under a key that may be another client's.
  void undo() { server_.undo(key_, token_); }

  [[nodiscard]] const Resource& key() const noexcept { return key_; }
  [[nodiscard]] bool has_own_key() const noexcept { return own_key_; }

  /// A key beside it that no client uses: rights may be limited to such names.
  [[nodiscard]] Resource unused_key() const;

  [[nodiscard]] bool failed() const noexcept { return fault_.has_value(); }

  /// The result, as the probe `rights`. `missing`: commands that we may not use.
  [[nodiscard]] Finding finding(const std::vector<std::string>& missing = {}) const;

 private:
  [[nodiscard]] Instant deadline() const { return clock_.now() + timeout_; }

  template <class Wanted, class Vote>
  bool passed(const Vote& vote, const char* step);

  LockServer& server_;
  const Clock& clock_;
  Duration timeout_;
  Token token_;
  bool own_key_;
  Resource key_;
  std::string step_;  ///< what failed, as `take a lock`
  std::optional<Fault> fault_;
  std::optional<Fault> runs_unreadable_;  ///< why the server does not tell the last runs
  bool held_ = false;                     ///< another client holds the key
};

}  // namespace redlock
