#pragma once

#include <sys/types.h>

#include <optional>

#include "guard/tree.hpp"
#include "support/boot_clock.hpp"
#include "support/unique_fd.hpp"

namespace redlock::guard {

/// A child of the holder process, a sibling of the command, that runs another program (cat) and
/// dies of the first signal. Both guards and this process get a signal from one who walks the
/// process tree (node's tree-kill, pm2, nodemon), and so does the command. One who looks for our
/// program (`killall /path`, `start-stop-daemon --exec`, `fuser -k`) reaches neither.
///
/// It is started once the command has run for a moment, so that short runs do not pay for it.
/// Where cat is missing or cannot be executed, there is no witness.
class TreeWitness {
 public:
  TreeWitness() = default;
  ~TreeWitness() { end(Instant()); }
  TreeWitness(const TreeWitness&) = delete;
  TreeWitness& operator=(const TreeWitness&) = delete;

  /// The command has started.
  void begin(Instant now);

  /// Starts the process, or checks it, when that is due. Returns the pid of one that was started;
  /// 0: none.
  pid_t tend(Instant now);

  /// When to call tend(); Instant::max(): not at all.
  [[nodiscard]] Instant next() const noexcept { return next_; }

  /// A child of ours has ended, which may be this process.
  void note_end(const Ended& ended, Instant now);

  /// Ends and reaps the process; none is started any more. Returns its pid; 0: there was none.
  pid_t end(Instant now);

  [[nodiscard]] bool exists() const noexcept { return pid_ != 0; }

  /// Whether it died of this signal within the last second. Each death counts once.
  bool saw(int signal, Instant now);

  /// Whether a sender that selects processes by user, session, control group or file system, and so
  /// reached the guards and the witness, has reached this process, too.
  [[nodiscard]] bool resembles(pid_t pid) const;

 private:
  struct Death {
    int signal;
    Instant at;
  };

  [[nodiscard]] bool start();
  [[nodiscard]] bool runs_its_program() const;
  void note_status(int status, Instant now);

  pid_t pid_ = 0;
  UniqueFd program_;   ///< cat's file
  UniqueFd lifeline_;  ///< the end of its stdin that keeps it waiting
  bool is_ready_ =
      false;  ///< it runs cat, so what it gets from now on was not meant for our program
  Instant next_ = Instant::max();
  Duration check_delay_{};
  std::optional<Death> death_;
};

}  // namespace redlock::guard
