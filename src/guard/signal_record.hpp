#pragma once

#include "proc/signal_times.hpp"
#include "support/boot_clock.hpp"

namespace redlock::guard {

/// Which signals the command and its process group have got, as far as the two guards know. It only
/// keeps notes: it sends and reads no signal.
class SignalRecord {
 public:
  /// `of_front`: the signals that the front process received; it must outlive this.
  SignalRecord(int stop_signal, const proc::SignalTimes& of_front)
      : stop_signal_(stop_signal), of_front_(of_front) {}

  /// Earlier signals do not count for was_asked_to_end().
  void command_starts(Instant now) { started_at_ = now; }

  /// These signals were sent to the command, or to us for it, whether or not they reached it.
  void note(proc::SignalMask signals, Instant now) { sent_.note_all(signals, now); }

  /// This signal has reached the command, and its group or not.
  void note_reached(int signal, bool group);

  /// Whether a signal that asks the command to end (TERM, INT or HUP) was passed on, or is about to
  /// be.
  [[nodiscard]] bool was_asked_to_end() const;

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
  [[nodiscard]] bool noted_since(int signal, Instant when) const {
    return sent_.noted_since(signal, when) || of_front_.noted_since(signal, when);
  }

  int stop_signal_;
  const proc::SignalTimes& of_front_;
  proc::SignalTimes sent_;
  Instant started_at_;
  bool alone_ = false;
  bool group_has_stop_signal_ = false;
};

}  // namespace redlock::guard
