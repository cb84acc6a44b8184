#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "proc/signal_state.hpp"
#include "support/boot_clock.hpp"

namespace redlock::guard {

/// When each signal was last noted. It has one writer, and is lock-free, so that it can lie in
/// shared memory and be read by another process.
class SignalTimes {
 public:
  void note(int signal, Instant now) noexcept { of(signal) = now.time_since_epoch().count(); }

  void note_all(proc::SignalMask signals, Instant now) noexcept {
    for (int signal = 1; signal <= last_signal; ++signal) {
      if ((signals & proc::mask_of(signal)) != 0) note(signal, now);
    }
  }

  void clear() noexcept {
    for (auto& time : times_) time = never;
  }

  [[nodiscard]] bool noted_since(int signal, Instant when) const noexcept {
    const std::int64_t time = times_[static_cast<std::size_t>(signal - 1)];
    return time != never && time >= when.time_since_epoch().count();
  }

 private:
  static constexpr int last_signal = 64;
  static constexpr std::int64_t never = 0;

  [[nodiscard]] std::atomic<std::int64_t>& of(int signal) noexcept {
    return times_[static_cast<std::size_t>(signal - 1)];
  }

  std::array<std::atomic<std::int64_t>, last_signal> times_{};  ///< nanoseconds of the boot clock
};

/// Which signals the command and its process group have got, as far as the two guards know. It only
/// keeps notes: it sends and reads no signal.
class SignalRecord {
 public:
  /// `of_front`: the signals that the front process received; it must outlive this.
  SignalRecord(int stop_signal, const SignalTimes& of_front)
      : stop_signal_(stop_signal), of_front_(of_front) {}

  /// Earlier signals do not count for was_asked_to_end() and was_interrupted().
  void command_starts(Instant now) { started_at_ = now; }

  /// These signals were sent to the command, or to us for it, whether or not they reached it.
  void note(proc::SignalMask signals, Instant now) { sent_.note_all(signals, now); }

  /// This signal has reached the command, and its group or not.
  void note_reached(int signal, bool group);

  /// Whether a signal that asks the command to end (TERM, INT or HUP) was passed on, or is about to
  /// be.
  [[nodiscard]] bool was_asked_to_end() const;

  /// Whether one that asks it to end (the same, QUIT or the stop signal) was passed on, is about to
  /// be, or has reached it with its group.
  [[nodiscard]] bool was_interrupted() const { return asked_to_end_since(started_at_); }

  /// Whether the command, which ended at `ended` with this wait status, died of a signal, from any
  /// sender, or ended by itself soon after one that asks it to end: within the `grace`, or longer.
  [[nodiscard]] bool has_ended_command(int status, Instant ended, Duration grace) const;

  /// Whether only the command, not its group, was asked to end.
  [[nodiscard]] bool asked_command_alone() const noexcept { return alone_; }

  /// Whether the whole group received the stop signal, and the command nothing beyond.
  [[nodiscard]] bool group_has_stop_signal() const noexcept {
    return group_has_stop_signal_ && !alone_;
  }

 private:
  [[nodiscard]] bool asks_to_end(int signal) const noexcept;
  [[nodiscard]] bool asked_to_end_since(Instant when) const;
  [[nodiscard]] bool noted_since(int signal, Instant when) const {
    return sent_.noted_since(signal, when) || of_front_.noted_since(signal, when);
  }

  int stop_signal_;
  const SignalTimes& of_front_;
  SignalTimes sent_;
  Instant started_at_;
  bool alone_ = false;
  bool group_has_stop_signal_ = false;
};

}  // namespace redlock::guard
