#pragma once

#include <sys/types.h>

#include <memory>
#include <vector>

#include "child/signal_times.hpp"
#include "child/signals.hpp"
#include "child/tree.hpp"
#include "child/witness.hpp"
#include "support/boot_clock.hpp"

namespace redlock::child {

/// Which of the signals that the front process gets are to be passed on, and which of them the
/// command has got already, as far as can be told here:
///  - Where the command is in our process group at that moment, what was typed at the terminal (^C,
///    ^\), and what was sent to the whole group (the witness is asked 10 ms later). A command that
///    has left the group, as timeout(1) does, gets neither.
///  - Without a terminal, nothing: each is passed on, 10 ms later. What arrives again until then
///    (`timeout` sends it to us and to our group) is the same signal, as one that is pending.
/// The holder process has the last word: it knows what was sent to processes one by one. While we
/// wait there is no command, and every signal that ends a wait is passed on at once.
class SignalRelay {
 public:
  /// All must outlive it. `shares_group`: the command will be in our process group. `got` takes
  /// every signal that arrives while there may be a command.
  SignalRelay(SignalGate& gate, const CommandTarget& command, bool shares_group, SignalTimes& got)
      : gate_(gate), command_(command), shares_group_(shares_group), got_(got) {}

  /// Starts the witness, where there is to be one; its pid, or 0. Call it before the command can
  /// exist. `argc` and `argv` are main's.
  pid_t start_witness(int argc, char** argv);

  /// Reads what has arrived without blocking; returns what is to be passed on now, in order.
  std::vector<PassedSignal> due();

  /// From now on the command, forked and in its group, gets its own signals. Returns what is to be
  /// passed on before it starts: these end the wait.
  std::vector<PassedSignal> command_starts();

  /// There was no command after all, and we wait again. Returns what was not passed on yet.
  std::vector<PassedSignal> back_to_waiting();

  /// When due() is to be called at the latest; Instant::max(): not before fd() or the gate is
  /// readable.
  [[nodiscard]] Instant next_instant() const;

  /// Readable when the witness has answered; -1 when it is not asked.
  [[nodiscard]] int fd() const { return held_.empty() || !witness_ ? -1 : witness_->fd(); }

 private:
  /// A signal that is not passed on yet: it may have been sent to the whole group.
  struct Held {
    ReceivedSignal signal;
    Instant got_at;
    Instant until;     ///< when the witness is asked; after that: the limit for its answer
    int question;      ///< its number at the witness; 0: not asked yet
    bool is_in_group;  ///< the command was in our group
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
  std::vector<Held> held_;  ///< each signal of a sender once, in order
};

}  // namespace redlock::child
