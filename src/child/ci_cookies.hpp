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

/// Whether a process is to do so: one that ends by itself with what it guards is, one that guards
/// nothing is what the agent is meant to find.
enum class CiCookies { hide, keep };

}  // namespace redlock::child
