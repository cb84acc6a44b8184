#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "guard/command.hpp"
#include "guard/shared_page.hpp"
#include "guard/tree.hpp"
#include "support/boot_clock.hpp"

namespace redlock::guard {

/// The command of --on-stop, run when the main command is stopped, in order to end work that a
/// daemon or another host does for it. It is a child of the holder process, in a process group of
/// its own and inside the command's isolation, so it is part of the tree that must be dead before
/// the lock is released. It runs at most once.
class StopHook {
 public:
  /// `page` must outlive it; hook_began is set there.
  explicit StopHook(SharedPage& page) : page_(page) {}

  /// Sets what to run; without this call there is no hook. `options`: those of the main command.
  /// `inherited` must outlive this.
  void prepare(Command command, SpawnOptions options, const InheritedSignals& inherited);

  /// Starts it, with `reason` in REDLOCK_STOP_REASON. Does nothing after the first call, or if
  /// there is no hook. `until`: when the caller must call kill().
  void start(std::string_view reason, Instant until);

  /// Starts it if it could not be forked so far: the command may have used up a limit of
  /// processes, and those that die make room.
  void retry();

  /// A child of ours has ended, which may be the hook.
  void note_end(const Ended& ended) noexcept;

  [[nodiscard]] bool exists() const noexcept { return command_.has_value(); }

  /// Whether it runs, or has yet to be forked by retry(), or something that kill() has killed still
  /// dies.
  [[nodiscard]] bool is_pending() const noexcept { return pid_ != 0 || is_unforked_ || is_dying(); }

  /// Whether retry() has yet to fork it.
  [[nodiscard]] bool is_unforked() const noexcept { return is_unforked_; }

  /// 0 while it does not run.
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// When to call kill(), and after that stop_waiting(); Instant::max() if neither is due.
  [[nodiscard]] Instant until() const noexcept { return until_; }

  /// Kills it and its descendants, or gives up to fork it. They are waited for until `limit`.
  void kill(Instant limit);

  /// Whether something that kill() has killed is waited for.
  [[nodiscard]] bool is_dying() const noexcept { return !dying_.empty(); }

  /// Only these processes still live.
  void note_living(const std::vector<pid_t>& living);

  /// What was killed is not waited for any longer.
  void stop_waiting();

  /// Why the hook may not have done its work, in one clause; empty: it succeeded, or was never
  /// needed.
  [[nodiscard]] std::string failure() const;

 private:
  SharedPage& page_;
  std::optional<Command> command_;
  SpawnOptions options_;
  const InheritedSignals* inherited_ = nullptr;
  pid_t pid_ = 0;
  Instant until_ = Instant::max();
  std::optional<int> status_;
  std::vector<pid_t> dying_;  ///< what kill() has killed, itself included
  bool is_unforked_ = false;
  std::string not_started_;  ///< why it could not be started
};

}  // namespace redlock::guard
