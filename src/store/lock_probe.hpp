#pragma once

#include <asio/awaitable.hpp>
#include <optional>
#include <string>
#include <vector>

#include "store/diagnosis.hpp"
#include "store/lock_server.hpp"
#include "support/clock.hpp"

namespace redlock {

/// Tests with a lease on one key whether a server does everything that a holder needs.
class LockProbe {
 public:
  /// Probes with the request's key, or with a key of its own. `server` and `clock` must outlive it.
  LockProbe(LockServer& server, const Clock& clock, const DiagnosisRequest& request);

  /// Acquires the lock, raises its fence, extends, inspects and releases it, then heals it and
  /// releases it by hand. Ends at the first step that fails. Leaves a key that another client holds
  /// alone.
  asio::awaitable<void> run();

  /// Records a failed step, unless one is recorded already.
  void fail(std::string step, Fault fault);

  /// Undoes what a failed step may have left, without harm to other clients of the key.
  void undo() { server_.undo(key_, token_); }

  [[nodiscard]] const Resource& key() const noexcept { return key_; }
  [[nodiscard]] bool has_own_key() const noexcept { return own_key_; }

  /// A key with a similar name that no client uses: our rights may be limited to such names.
  [[nodiscard]] Resource unused_key() const;

  [[nodiscard]] bool failed() const noexcept { return fault_.has_value(); }

  /// The result, as a finding of the probe `rights`. `missing`: the commands that we may not use.
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
  std::optional<Fault> runs_unreadable_;  ///< why the last runs could not be read
  bool held_ = false;                     ///< another client holds the key
};

}  // namespace redlock
