#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "child/signals.hpp"
#include "child/witness.hpp"
#include "support/boot_clock.hpp"

namespace redlock::child {

/// Which of the signals that the front process gets are to be passed on to the command: each that
/// it has not got already.
///  - A signal of the keyboard (INT, QUIT) has already reached a command in our group.
///  - With a controlling terminal, so has a signal to our whole group (the witness is asked 10 ms
///    later).
///  - A signal that arrives twice within 10 ms (`timeout` sends it to us and to our group) counts
///    once.
/// While we wait there is no command, and every signal that ends a wait is passed on at once.
class SignalRelay {
 public:
  /// `gate` must outlive it. `shares_group`: the command will be in our process group.
  SignalRelay(SignalGate& gate, bool shares_group) : gate_(gate), shares_group_(shares_group) {}

  /// Starts the witness, where there is to be one; its pid, or 0. Call it before the command can
  /// exist.
  pid_t start_witness();

  /// Reads what has arrived without blocking; returns what is to be passed on now, in order.
  std::vector<int> due();

  /// From now on the command, forked and in its group, gets its own signals. Returns what is to be
  /// passed on before it starts: these end the wait.
  std::vector<int> command_starts();

  /// There was no command after all, and we wait again. Returns what was left to it.
  std::vector<int> back_to_waiting();

  /// When due() is to be called at the latest; Instant::max(): not before fd() or the gate is
  /// readable.
  [[nodiscard]] Instant next_instant() const;

  /// Readable when the witness has answered; -1 when it is not asked.
  [[nodiscard]] int fd() const { return held_.empty() ? -1 : witness_->fd(); }

 private:
  /// A signal that is not passed on yet: it may have been sent to the whole group.
  struct Held {
    bool delivered;  ///< the terminal sent it: the command has it
    Instant until;   ///< when the witness is asked; after that: the limit for its answer
    int question;    ///< its number at the witness; 0: not asked yet
  };

  void read_gate(std::vector<int>& signals);
  [[nodiscard]] bool is_due_at_once(const ReceivedSignal& signal);
  void hold(const ReceivedSignal& signal, Instant until);
  void decide_held(Instant now, std::vector<int>& signals);

  SignalGate& gate_;
  bool shares_group_;
  bool has_command_ = false;
  std::unique_ptr<Witness> witness_;
  std::map<int, Held> held_;          ///< with a witness, by signal: until it answers
  std::map<int, Instant> passed_on_;  ///< without one, by signal: until then a repeat counts as the
                                      ///< same signal
  std::set<int> left_to_command_;     ///< since command_starts(): a command got them itself
};

}  // namespace redlock::child
