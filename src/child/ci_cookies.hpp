#pragma once

namespace redlock::child {

/// CI agents (GitHub's and Gitea's runners, Jenkins) end what a job left behind by a variable: they
/// kill each process whose environment has it, in one pass. A process that guards others must
/// outlive that pass, so that it can kill those that have an environment of their own (sudo,
/// `env -i`) and release the lock.
///
/// Takes these variables out of this process's environment block, which /proc/PID/environ shows.
/// `environ` keeps them, so what is started from here has them still. Call it before there are
/// threads.
void hide_ci_cookies();

/// Whether the holder process hides them. The holder of a `run` or of --while-pid does: it ends
/// with the command or process that it guards. The holder of --detach does not: it guards no
/// process, and the agent is to end it with the job.
enum class CiCookies { hide, keep };

}  // namespace redlock::child
