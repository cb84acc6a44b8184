#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <string>

#include "support/result.hpp"
#include "support/unique_fd.hpp"

namespace redlock::child {

/// Why the process that started us cannot be watched, in one clause for the user.
struct NoParentProcess {
  bool may_have_ended;  ///< else the system does not let us
  std::string text;
};

/// A pidfd of the process that started us: readable once that has ended. PDEATHSIG would tell of
/// the end of the *thread* that started us. `parent_of_us` is getppid(2), asked again when the
/// pidfd is there: a process that ended in between may have left its number to another.
Result<UniqueFd, NoParentProcess> watch_parent_process(pid_t (*parent_of_us)() = ::getppid);

}  // namespace redlock::child
