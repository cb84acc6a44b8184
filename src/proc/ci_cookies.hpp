#pragma once

namespace redlock::proc {

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
