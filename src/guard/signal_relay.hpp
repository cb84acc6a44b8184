#pragma once

#include <sys/types.h>

#include <memory>
#include <vector>

#include "guard/signal_record.hpp"
#include "guard/signals.hpp"
#include "guard/tree.hpp"
#include "guard/witness.hpp"
#include "support/boot_clock.hpp"

namespace redlock::guard {

/// Decides which of the signals that the front process receives are passed on, and which of them
/// the command has received already, as far as this process can know:
///  - With a terminal, while the command is in our process group, it has received what was typed
///    (^C, ^\) and what was sent to the whole group; for the latter the witness is asked 10 ms
///    later. A command that has left the group, as timeout(1) does, has received neither.
///  - Without a terminal, it has received none: each is passed on 10 ms later. If the same sender
///    sends the same signal again within that time (`timeout` signals us and our group), it counts
///    once, as a pending signal does.
///
/// The holder process decides in the end, because it knows which signals were sent to processes one
/// by one. During the wait there is no command, and every signal that ends a wait is passed on at
/// once.
class SignalRelay {
 public:
  /// All must outlive it. `shares_group`: the command will be in our process group. `got` records
  /// every signal that arrives while a command may exist.
  SignalRelay(SignalGate& gate, const CommandTarget& command, bool shares_group, SignalTimes& got)
      : gate_(gate), command_(command), shares_group_(shares_group), got_(got) {}

  /// Starts the witness if one is needed; returns its pid, or 0. Call it before the command can
  /// exist. `argc` and `argv` are main's.
  pid_t start_witness(int argc, char** argv);

  /// Reads what has arrived, without blocking; returns what is to be passed on now, in order.
  std::vector<PassedSignal> due();

  /// The command is forked and in its group: from now on it receives signals itself. Returns the
  /// signals to pass on before it starts, which end the wait.
  std::vector<PassedSignal> command_starts();

  /// The command was not started, and we wait again. Returns the signals that were not passed on
  /// yet.
  std::vector<PassedSignal> back_to_waiting();

  /// When to call due() at the latest; Instant::max(): only when fd() or the gate is readable.
  [[nodiscard]] Instant next_instant() const;

  /// Readable when the witness has answered; -1 while no question is open.
  [[nodiscard]] int fd() const { return held_.empty() || !witness_ ? -1 : witness_->fd(); }

 private:
  /// A signal that is not passed on yet, because it may have been sent to the whole group.
  struct Held {
    ReceivedSignal signal;
    Instant got_at;
    Instant until;     ///< when to ask the witness; once asked, when to stop waiting for its answer
    int question;      ///< the number that Witness::ask() returned; 0: not asked yet
    bool is_in_group;  ///< the command was in our group when it came
  };

  using Signals = std::vector<PassedSignal>;
  void read_gate(Signals& signals);
  void read_in_job(const ReceivedSignal& signal, Signals& signals);
  void hold(const ReceivedSignal& signal, bool is_in_group);
  [[nodiscard]] bool is_decided(Held& held, Instant now);
  [[nodiscard]] bool is_command_in_group() const;

  SignalGate& gate_;
  const CommandTarget& command_;
  bool shares_group_;
  SignalTimes& got_;
  bool has_command_ = false;
  std::unique_ptr<Witness> witness_;
  std::vector<Held> held_;  ///< in order; each signal of a sender once
};

}  // namespace redlock::guard
