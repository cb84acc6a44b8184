#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <string>

#include "support/result.hpp"
#include "support/unique_fd.hpp"

namespace redlock::proc {

/// Why the process that started us cannot be watched, in one clause for the user.
struct NoParentProcess {
  bool may_have_ended;  ///< false: the system does not let us watch it
  std::string text;
};

/// A pidfd of the process that started us, readable once that process has ended. (PDEATHSIG would
/// report the end of the *thread* that started us.) `parent_of_us` stands for getppid(2). It is
/// called again after the pidfd was opened, because the parent may have ended in between and its
/// pid been reused.
Result<UniqueFd, NoParentProcess> watch_parent_process(pid_t (*parent_of_us)() = ::getppid);

}  // namespace redlock::proc
