#include "guard/signal_relay.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "support/trace.hpp"

namespace redlock::guard {
namespace {

/// How long a signal to the whole group may take to reach all members.
constexpr Milliseconds group_delivery{10};

/// How long the witness may take to answer. Passing a signal on twice is better than holding it
/// back for ever.
constexpr Milliseconds witness_timeout{3000};

void trace_verdict(const ReceivedSignal& signal, std::string_view verdict) {
  if (!is_traced()) return;
  const std::string sender = signal.from_kernel ? "the kernel" : std::to_string(signal.sender);
  trace("signal", signal_name(signal.number) + " from " + sender + ": " + std::string(verdict));
}

/// `why`: what proves who has received it.
PassedSignal passed(const ReceivedSignal& signal, bool reached_job, std::string_view why) {
  trace_verdict(signal, why);
  return {signal.number, signal.sender, reached_job};
}

}  // namespace

pid_t SignalRelay::start_witness(int argc, char** argv) {
  if (!shares_group_) return 0;
  witness_ = std::make_unique<Witness>(argc, argv);
  return witness_->pid();
}

std::vector<PassedSignal> SignalRelay::due() {
  Signals signals;
  read_gate(signals);
  if (witness_) witness_->listen();

  const Instant now = BootClock::now();
  std::vector<Held> undecided;
  for (Held& held : held_) {
    if (!is_decided(held, now)) {
      undecided.push_back(held);
      continue;
    }
    // Ask even for a command outside our group: saw() removes the report, which must not count for
    // a later signal.
    const bool witnessed = witness_ && witness_->saw(held.signal, held.got_at - twin_memory);
    const std::string_view why = !witness_    ? "passed on: there is no witness"
                                 : !witnessed ? "passed on: the witness did not get it"
                                 : held.is_in_group
                                     ? "passed on: the witness got it, and so the job"
                                     : "passed on: the command has left the witness's group";
    signals.push_back(passed(held.signal, witnessed && held.is_in_group, why));
  }
  held_ = std::move(undecided);
  return signals;
}

std::vector<PassedSignal> SignalRelay::command_starts() {
  Signals signals;
  // The witness forgets first: a signal that it forgets is then read here, and not later, when its
  // report would be missing.
  if (witness_) witness_->forget();
  read_gate(signals);
  has_command_ = true;
  got_.clear();
  return signals;
}

std::vector<PassedSignal> SignalRelay::back_to_waiting() {
  has_command_ = false;
  Signals signals;
  for (const Held& held : std::exchange(held_, {}))
    signals.push_back(passed(held.signal, false, "passed on: it ends the wait"));
  return signals;
}

Instant SignalRelay::next_instant() const {
  Instant next = Instant::max();
  for (const Held& held : held_) next = std::min(next, held.until);
  return next;
}

void SignalRelay::read_gate(Signals& signals) {
  while (const auto signal = gate_.read()) {
    if (signal->number == SIGCHLD) continue;  // the end of the channel shows it
    if (has_command_) got_.note(signal->number, BootClock::now());
    if (!has_command_) {
      if (ends_a_wait(signal->number))
        signals.push_back(passed(*signal, false, "passed on: it ends the wait"));
    } else if (shares_group_) {
      read_in_job(*signal, signals);
    } else {
      hold(*signal, false);
    }
  }
}

void SignalRelay::read_in_job(const ReceivedSignal& signal, Signals& signals) {
  const bool is_in_group = is_command_in_group();
  if (!ends_a_wait(signal.number)) {
    // Shells and terminals send these to whole groups, so a command in our group has received it.
    if (is_in_group) {
      trace_verdict(signal, "not passed on: it goes to whole groups");
    } else {
      signals.push_back(passed(signal, false, "passed on: the command has left the group"));
    }
  } else if (is_typed(signal)) {
    signals.push_back(passed(signal, is_in_group, "passed on: it was typed"));
  } else {
    hold(signal, is_in_group);
  }
}

void SignalRelay::hold(const ReceivedSignal& signal, bool is_in_group) {
  const auto is_same = [&](const Held& held) { return held.signal == signal; };
  if (std::any_of(held_.begin(), held_.end(), is_same)) return;
  const Instant now = BootClock::now();
  held_.push_back({signal, now, now + group_delivery, 0, is_in_group});
}

/// Whether to pass it on now. Asks the witness when it is time.
bool SignalRelay::is_decided(Held& held, Instant now) {
  if (now >= held.until && held.question == 0) {
    if (!witness_) return true;
    held.question = witness_->ask();
    held.until = now + witness_timeout;
  }
  const bool answered = held.question != 0 && witness_->answered(held.question);
  return answered || now >= held.until;
}

/// 0 means that the command has not started and waits in our group, or that it was reaped; then the
/// holder process decides who gets the signal.
bool SignalRelay::is_command_in_group() const {
  const pid_t command = command_.command;
  return command == 0 || ::getpgid(command) == ::getpgrp();
}

}  // namespace redlock::guard
