#include "guard/signal_record.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>

namespace redlock::guard {
namespace {

/// If a command ends by itself within this time (or the grace, if longer) after a signal, it counts
/// as ended by the signal, because it may clean up first. An earlier signal, such as a HUP for a
/// reload, has been handled.
constexpr Milliseconds signal_memory{60'000};

}  // namespace

void SignalRecord::note_reached(int signal, bool group) {
  alone_ |= !group && asks_to_end(signal);
  group_has_stop_signal_ |= group && signal == stop_signal_;
}

bool SignalRecord::was_asked_to_end() const {
  return noted_since(SIGTERM, started_at_) || noted_since(SIGINT, started_at_) ||
         noted_since(SIGHUP, started_at_);
}

bool SignalRecord::has_ended_command(int status, Instant ended, Duration grace) const {
  return WIFSIGNALED(status) ||
         asked_to_end_since(ended - std::max<Duration>(grace, signal_memory));
}

bool SignalRecord::asked_to_end_since(Instant when) const {
  for (int signal = 1; signal < NSIG; ++signal) {
    if (asks_to_end(signal) && noted_since(signal, when)) return true;
  }
  return false;
}

bool SignalRecord::asks_to_end(int signal) const noexcept {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT ||
         signal == stop_signal_;
}

}  // namespace redlock::guard
