#include "child/signal_relay.hpp"

#include <signal.h>

#include <algorithm>
#include <utility>

namespace redlock::child {
namespace {

/// How long a signal to the whole group may take to reach its other members.
constexpr Milliseconds group_delivery{10};

/// How long the witness may take to be scheduled. Passing a signal on twice is better than holding
/// it for ever.
constexpr Milliseconds witness_timeout{3000};

}  // namespace

pid_t SignalRelay::start_witness() {
  if (!shares_group_) return 0;
  witness_ = std::make_unique<Witness>();
  return witness_->pid();
}

std::vector<int> SignalRelay::due() {
  std::vector<int> signals;
  read_gate(signals);
  decide_held(BootClock::now(), signals);
  return signals;
}

std::vector<int> SignalRelay::command_starts() {
  std::vector<int> signals;
  // The witness forgets first: what it saw and we have not read is read now.
  if (witness_) witness_->forget();
  read_gate(signals);
  has_command_ = true;
  left_to_command_.clear();
  return signals;
}

std::vector<int> SignalRelay::back_to_waiting() {
  has_command_ = false;
  // No command has got those that are not decided yet.
  for (const auto& [number, held] : held_) left_to_command_.insert(number);
  held_.clear();
  const std::set<int> signals = std::exchange(left_to_command_, {});
  return {signals.begin(), signals.end()};
}

Instant SignalRelay::next_instant() const {
  Instant next = Instant::max();
  for (const auto& [number, held] : held_) next = std::min(next, held.until);
  return next;
}

void SignalRelay::read_gate(std::vector<int>& signals) {
  while (const auto signal = gate_.read()) {
    if (is_due_at_once(*signal)) signals.push_back(signal->number);
  }
}

bool SignalRelay::is_due_at_once(const ReceivedSignal& signal) {
  if (signal.number == SIGCHLD) return false;  // the end of the channel says it
  if (!has_command_) return ends_a_wait(signal.number);
  const Instant now = BootClock::now();
  if (shares_group_) {
    hold(signal, now + group_delivery);
    return false;
  }
  const auto last = passed_on_.find(signal.number);
  if (last != passed_on_.end() && now < last->second) return false;
  passed_on_[signal.number] = now + group_delivery;
  return true;
}

void SignalRelay::hold(const ReceivedSignal& signal, Instant until) {
  // Shells and terminals send the other signals to whole groups.
  if (!ends_a_wait(signal.number)) return;
  // INT and QUIT of the terminal go to its foreground group. Its HUP goes to the session leader
  // alone, which may be us. An alarm or a resource limit of the kernel signals us alone.
  const bool keyboard = signal.number == SIGINT || signal.number == SIGQUIT;
  const bool delivered = signal.from_kernel && keyboard;
  held_.try_emplace(signal.number, Held{delivered, until, 0}).first->second.delivered |= delivered;
}

void SignalRelay::decide_held(Instant now, std::vector<int>& signals) {
  if (witness_) witness_->listen();
  for (auto next = held_.begin(); next != held_.end();) {
    auto& [number, held] = *next;
    if (now >= held.until && held.question == 0) {
      held.question = witness_->ask();
      held.until = now + witness_timeout;
    }
    const bool answered = held.question != 0 && witness_->answered(held.question);
    if (!answered && now < held.until) {
      ++next;
      continue;
    }
    // Ask the witness even when we know: the signal that it saw must not be taken for a later one.
    const bool witnessed = witness_->saw(number);
    if (!witnessed && !held.delivered) {
      signals.push_back(number);
    } else {
      left_to_command_.insert(number);
    }
    next = held_.erase(next);
  }
}

}  // namespace redlock::child
