#pragma once

#include <sys/types.h>

#include <string_view>

namespace redlock::proc {

/// The titles of those processes of this program that only keep a lease, release it, or assist one
/// that does.
inline constexpr std::string_view holder_title = "lock-holder";
inline constexpr std::string_view shield_title = "lock-shield";  ///< the parent of such a holder
inline constexpr std::string_view awaiter_title =
    "lock-awaiter";  ///< such a holder, after a signal has ended its command: it awaits the rest of
                     ///< the process group
inline constexpr std::string_view releaser_title = "lock-releaser";
inline constexpr std::string_view witness_title = "lock-witness";  ///< it observes signals to a job

/// One that tells who walks the process tree (guard/tree_witness): a child of a holder process,
/// with this name in `comm`, that runs this program.
inline constexpr std::string_view tree_witness_name = "3";
inline constexpr const char* tree_witness_program = "/bin/cat";

/// Sets the name of this process in `comm`, truncated to 15 bytes.
void set_name(std::string_view name) noexcept;

/// Sets the name of this process in `comm` and overwrites its command line, so that `killall
/// redlock-cli`, or a `pkill -f` aimed at the program or one of its arguments, misses it. `argc`
/// and `argv` are main's.
void set_title(std::string_view title, int argc, char** argv) noexcept;

/// Whether the process has one of these titles and runs the same program file as we do, since any
/// process can take such a name, or is a tree witness. The file is not compared if the process is
/// just ending. False when /proc does not show it.
bool has_guard_title(pid_t pid);

/// CI agents (GitHub's and Gitea's runners, Jenkins) find the processes that a job left behind by
/// an environment variable: in one pass they kill each process whose environment contains it. A
/// process that guards others must survive that pass, so that it can kill those that have another
/// environment (sudo, `env -i`) and release the lock.
///
/// Removes these variables from this process's initial environment block, which is what
/// /proc/PID/environ shows. `environ` keeps them, so child processes still inherit them. Call it
/// before there are threads.
void hide_ci_cookies();

/// Whether the holder process hides them. The holder process of a `run` or of --while-pid does,
/// because it ends with the command or process that it guards. That of --detach does not: it guards
/// no process, and the agent should end it with the job.
enum class CiCookies { hide, keep };

}  // namespace redlock::proc
