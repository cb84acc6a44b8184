#include "proc/cpu_share.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace redlock::proc {
namespace {

/// The shorter the slice that we request, the sooner we get the CPU. 1 ms is a third of the usual
/// slice, and long enough for most of our work.
constexpr std::uint64_t short_slice_ns = 1'000'000;

constexpr int highest_nice = -20;

/// The maximum on Linux, see sched(7); saves a call of sched_get_priority_max(2).
constexpr std::uint32_t highest_priority = 99;

/// SCHED_FLAG_RESET_ON_FORK of Linux 3.14, which libc does not declare.
constexpr std::uint64_t reset_on_fork = 1;

/// How far our priority is above the command's: one level for killed processes, and one above that
/// for us.
constexpr std::uint32_t levels_above = 2;

/// struct sched_attr as of Linux 3.14, which libc does not declare.
struct SchedulingAttributes {
  std::uint32_t size;
  std::uint32_t policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime;
  std::uint64_t deadline;
  std::uint64_t period;
};

/// pid 0 means this thread, as everywhere in sched(7).
bool set(const SchedulingAttributes& attributes, pid_t pid = 0) noexcept {
  return ::syscall(SYS_sched_setattr, pid, &attributes, 0U) == 0;
}

/// Nullopt where the kernel returns more attributes than we know.
std::optional<SchedulingAttributes> own_attributes() noexcept {
  SchedulingAttributes attributes{};
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0U) != 0) return std::nullopt;
  attributes.size = sizeof attributes;
  return attributes;
}

bool is_real_time_policy(std::uint32_t policy) noexcept {
  return policy == SCHED_FIFO || policy == SCHED_RR;
}

/// The highest level that RLIMIT_NICE allows an ordinary user.
int permitted_nice() noexcept {
  constexpr int lowest_nice = 19;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NICE, &limit) != 0 || limit.rlim_cur == 0) return lowest_nice;
  return std::max(highest_nice,
                  lowest_nice + 1 - static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 40)));
}

/// RLIMIT_RTTIME limits how long a real-time process may run without blocking: with such a limit, a
/// long walk through /proc would kill us.
bool real_time_is_unlimited() noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_RTTIME, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY;
}

/// A limit on CPU time that is meant for the command would end us, too (SIGXCPU), because we
/// measure for as long as it runs. An ordinary user can raise only the soft limit.
void lift_time_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_CPU, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
  if (::setrlimit(RLIMIT_CPU, &none) == 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_CPU, &limit);
}

}  // namespace

void claim_cpu_share() noexcept {
  lift_time_limit();
  const auto own = own_attributes();
  if (!own || own->policy == SCHED_DEADLINE) return;
  SchedulingAttributes attributes = *own;

  const bool is_real_time = is_real_time_policy(attributes.policy);
  SchedulingAttributes real_time = attributes;
  real_time.policy = is_real_time ? attributes.policy : SCHED_RR;
  real_time.priority = std::min(attributes.priority + levels_above, highest_priority);
  real_time.runtime = 0;
  if (real_time_is_unlimited() && set(real_time)) return;
  if (is_real_time) return;

  const int nice = ::getpriority(PRIO_PROCESS, 0);
  attributes.policy = SCHED_OTHER;  // also for BATCH and IDLE
  attributes.runtime = short_slice_ns;
  for (const int better : {highest_nice, std::min(nice, permitted_nice()), nice}) {
    attributes.nice = better;
    if (set(attributes)) return;
  }
}

void lend_cpu_share(pid_t killed) noexcept {
  auto own = own_attributes();
  if (!own || own->policy == SCHED_DEADLINE) return;
  if (is_real_time_policy(own->policy)) {
    // A process that is real-time already may have a higher priority: leave it as it is. All others
    // get a priority below ours, because thousands of them must not delay us.
    const int policy = ::sched_getscheduler(killed) & ~SCHED_RESET_ON_FORK;
    if (policy == SCHED_FIFO || policy == SCHED_RR) return;
    own->priority = std::max(own->priority, 2U) - 1;
  }
  own->flags |= reset_on_fork;
  set(*own, killed);
}

bool lends_real_time() noexcept {
  const auto own = own_attributes();
  return own && is_real_time_policy(own->policy);
}

void give_up_cpu_share() noexcept {
  SchedulingAttributes usual{};
  usual.size = sizeof usual;
  usual.policy = SCHED_OTHER;
  set(usual);
}

void leave_session(pid_t group) noexcept {
  if (::setsid() >= 0) return;
  ::setpgid(0, group);
  if (::setsid() < 0) ::setpgid(0, 0);
}

}  // namespace redlock::proc
