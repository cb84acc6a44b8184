#include "guard/tree_witness.hpp"

#include <signal.h>
#include <sys/wait.h>

#include "../in_child.hpp"
#include "proc/signal_state.hpp"

namespace redlock::guard {
namespace {

using namespace testing;
using namespace std::chrono_literals;

/// Whether the process runs cat, and waits for its input.
bool runs_cat(pid_t pid) {
  std::error_code error;
  const std::string exe = "/proc/" + std::to_string(pid) + "/exe";
  const auto state = proc::signal_state(pid);
  return std::filesystem::equivalent(exe, "/bin/cat", error) && state && state->is_settled;
}

/// Starts a witness; returns its pid. At `ready` it has been seen to run its program.
pid_t started_witness(TreeWitness& witness, bool ready) {
  witness.begin(Instant());
  const pid_t pid = witness.tend(witness.next());
  EXPECT_GT(pid, 0);
  EXPECT_TRUE(eventually([pid] { return runs_cat(pid); }));
  if (ready) {
    EXPECT_EQ(witness.tend(witness.next()), 0);
  }
  return pid;
}

TEST(TreeWitness, TellsOnceOfWhichSignalItDied) {
  in_child([] {
    TreeWitness witness;
    const Instant now = Instant() + 1h;
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
      const pid_t pid = started_witness(witness, /*ready=*/true);
      ::kill(pid, signal);
      witness.note_end({pid, status_of(pid)}, now);
      EXPECT_FALSE(witness.saw(SIGHUP, now));
      EXPECT_TRUE(witness.saw(signal, now + 500ms));
      EXPECT_FALSE(witness.saw(signal, now + 500ms));
    }
  });
}

TEST(TreeWitness, ForgetsAnOldSignal) {
  in_child([] {
    TreeWitness witness;
    const Instant now = Instant() + 1h;
    const pid_t pid = started_witness(witness, /*ready=*/true);
    ::kill(pid, SIGTERM);
    witness.note_end({pid, status_of(pid)}, now);
    EXPECT_FALSE(witness.saw(SIGTERM, now + 2s));
  });
}

TEST(TreeWitness, ASignalBeforeItWasSeenToRunItsProgramDoesNotCount) {
  in_child([] {
    TreeWitness witness;
    const Instant now = Instant() + 1h;
    const pid_t pid = started_witness(witness, /*ready=*/false);
    ::kill(pid, SIGTERM);
    witness.note_end({pid, status_of(pid)}, now);
    EXPECT_FALSE(witness.saw(SIGTERM, now));
  });
}

TEST(TreeWitness, TheSignalThatCameBeforeItsEndCounts) {
  in_child([] {
    TreeWitness witness;
    const Instant now = Instant() + 1h;
    const pid_t pid = started_witness(witness, /*ready=*/true);
    ::kill(pid, SIGTERM);
    EXPECT_EQ(witness.end(now), pid);
    EXPECT_TRUE(witness.saw(SIGTERM, now));
    EXPECT_EQ(witness.end(now), 0);
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "it has been reaped";
  });
}

TEST(TreeWitness, ResemblesAChildThatRunsAProgramOfItsFileSystem) {
  in_child([] {
    TreeWitness witness;
    (void)started_witness(witness, /*ready=*/true);
    const pid_t child = forked([] { return ::execl("/bin/cat", "cat", "/dev/zero", nullptr); });
    EXPECT_TRUE(eventually([child, &witness] { return witness.resembles(child); }));
    ::kill(child, SIGKILL);
    (void)status_of(child);
    EXPECT_FALSE(witness.resembles(child));
  });
}

}  // namespace
}  // namespace redlock::guard
