#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "child/command.hpp"
#include "child/shared_page.hpp"
#include "child/tree.hpp"
#include "support/boot_clock.hpp"

namespace redlock::child {

/// What --on-stop runs when the command is stopped, to end what a daemon or another host does for
/// it. A child of the holder process in a process group of its own, and inside the command's
/// isolation: part of the tree that must be dead before the lock is released. Runs at most once.
class StopHook {
 public:
  /// `page` must outlive it, and is told when the hook begins.
  explicit StopHook(SharedPage& page) : page_(page) {}

  /// What to run; without this there is no hook. `options`: those of the command. `inherited` must
  /// outlive it.
  void prepare(Command command, SpawnOptions options, const InheritedSignals& inherited);

  /// Starts it, with `reason` in REDLOCK_STOP_REASON; nothing after the first time, or where there
  /// is none. It may run until the instant `until`: kill it then.
  void start(std::string_view reason, Instant until);

  /// A child of ours ended: perhaps the hook.
  void note_end(const Ended& ended) noexcept;

  [[nodiscard]] bool exists() const noexcept { return command_.has_value(); }
  [[nodiscard]] bool is_running() const noexcept { return pid_ != 0; }

  /// 0 while it does not run.
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// Instant::max() when there is nothing to kill, or it was killed.
  [[nodiscard]] Instant until() const noexcept { return until_; }

  /// Kills it with what is below it.
  void kill();

  /// Why what it should have stopped may still run, in one clause; empty: it ran well, or not at
  /// all.
  [[nodiscard]] std::string failure() const;

 private:
  SharedPage& page_;
  std::optional<Command> command_;
  SpawnOptions options_;
  const InheritedSignals* inherited_ = nullptr;
  pid_t pid_ = 0;
  Instant until_ = Instant::max();
  std::optional<int> status_;
  std::string not_started_;  ///< why
};

}  // namespace redlock::child
