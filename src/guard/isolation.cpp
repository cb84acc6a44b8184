#include "guard/isolation.hpp"

#include "guard/pid_namespace.hpp"

namespace redlock::guard {

Result<Isolation, std::string> Isolation::make(IsolationMode mode, bool has_terminal) {
  Isolation isolation(mode);
  if (mode == IsolationMode::cgroup) {
    auto cgroup = proc::Cgroup::create();
    if (!cgroup) return unexpected<std::string>(std::move(cgroup.error()));
    isolation.cgroup_.emplace(std::move(*cgroup));
  }
  if (mode == IsolationMode::pid_namespace) {
    // The command would have to join our process group, which has no number in the namespace.
    if (has_terminal)
      return unexpected<std::string>(
          "not with a controlling terminal; run it from cron or a service, or under `setsid -w`");
    if (auto works = PidNamespace::check(); !works)
      return unexpected<std::string>(std::move(works.error()));
  }
  return isolation;
}

}  // namespace redlock::guard
