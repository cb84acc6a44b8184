#include "proc/parent_process.hpp"

#include <cerrno>

#include "support/kernel_calls.hpp"
#include "support/text.hpp"

namespace redlock::proc {
namespace {

NoParentProcess gone(std::string text) {
  return {/*may_have_ended=*/true, std::move(text)};
}

}  // namespace

Result<UniqueFd, NoParentProcess> watch_parent_process(pid_t (*parent_of_us)()) {
  const pid_t parent = parent_of_us();
  if (parent == 0) {
    return unexpected(
        NoParentProcess{false, "the process that started redlock-cli is in another pid namespace"});
  }
  if (parent == 1) {
    return unexpected(
        gone("the parent of redlock-cli is process 1: what started it may have ended already"));
  }
  UniqueFd pidfd(pidfd_open(parent, 0));
  const int error = errno;
  if (parent_of_us() != parent)
    return unexpected(gone("the process that started redlock-cli has ended already"));
  if (!pidfd) {
    return unexpected(NoParentProcess{
        false, "the process that started redlock-cli cannot be watched: " + errno_text(error)});
  }
  return pidfd;
}

}  // namespace redlock::proc
