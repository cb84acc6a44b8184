#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "child/command.hpp"
#include "child/signals.hpp"
#include "child/tree.hpp"
#include "support/clock.hpp"

namespace redlock::child {

/// What happens to a command whose lease is lost or about to be.
enum class OnLost {
  kill,  ///< stop signal, then KILL
  term,  ///< stop signal only: it may outlive the lease
  warn,  ///< nothing: it may outlive the lease
};

struct StopPlan {
  Duration grace;   ///< between the stop signal and KILL
  Duration margin;  ///< between KILL and the deadline
  int stop_signal = 0;
  OnLost on_lost = OnLost::kill;
};

/// How a command ended.
struct Ending {
  int status = 0;           ///< of the command, as waitpid gives it
  bool lease_gone = false;  ///< the lease was lost, or the command had to be stopped so that it would not outlive it
  std::vector<pid_t> left;  ///< descendants that still run; none when all were killed
};

/// Runs one command under a lease: hands on signals, and never lets it outlive the lease. It knows the lease by its deadline alone;
/// somebody else renews it and says so.
///
/// Stop signal and CONT go to the whole tree at deadline - grace - margin, KILL at deadline - margin, again and again until nothing of the
/// tree is left. A stop signal that was sent is final. A lease that is over stops the command at once, with KILL after the grace or at
/// deadline - margin, whichever is sooner.
class Supervisor {
 public:
  Supervisor(const Clock& clock, StopPlan plan);

  /// Starts the command. Without a controlling terminal it gets a process group of its own; with one it stays in ours, so that ^C and job
  /// control work as without us. A deadline too near to run in is a failure, too.
  Result<void, ExecFailure> start(const Command& command, std::vector<std::string> environment, const InheritedSignals& inherited,
                                  Instant deadline);

  /// The lease was extended. Only forward.
  void move_deadline(Instant deadline);

  /// The lease is over before its deadline.
  void lease_is_over();

  /// Hands on what we received; SIGCHLD makes us look for ended children.
  void on_signal(const ReceivedSignal& signal);

  /// Waits for the end. Call after start().
  asio::awaitable<Ending> finish();

 private:
  void reap();
  void stop(Instant now);
  [[nodiscard]] bool is_stopping() const noexcept { return kill_at_.has_value(); }
  [[nodiscard]] Instant next_instant() const;

  const Clock& clock_;
  StopPlan plan_;
  ProcessTree tree_;
  std::unique_ptr<Bell> bell_;
  Instant deadline_;
  std::optional<Instant> kill_at_;  ///< set by the stop signal; Instant::max(): never
  std::optional<int> status_;
  pid_t pid_ = 0;
  bool own_group_ = false;
  bool lease_gone_ = false;
};

}  // namespace redlock::child
