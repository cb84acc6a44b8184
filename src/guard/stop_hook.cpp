#include "guard/stop_hook.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "core/stop_schedule.hpp"
#include "guard/signals.hpp"
#include "proc/descendants.hpp"

namespace redlock::guard {
namespace {

constexpr std::string_view reason_variable = "REDLOCK_STOP_REASON=";

}  // namespace

void StopHook::prepare(Command command, SpawnOptions options, const InheritedSignals& inherited) {
  command_.emplace(std::move(command));
  options_ = std::move(options);
  options_.join_group.reset();
  options_.is_hook = true;
  options_.front = 0;  // the sockets and the watchdog are the main command's
  inherited_ = &inherited;
}

void StopHook::start(std::string_view reason, Instant until) {
  if (!command_ || page_.hook_began.exchange(true)) return;
  auto& environment = options_.environment;
  std::erase_if(environment,
                [](const std::string& entry) { return entry.starts_with(reason_variable); });
  environment.push_back(std::string(reason_variable) + std::string(reason));
  until_ = until;
  is_unforked_ = true;
  retry();
}

void StopHook::retry() {
  if (!is_unforked_) return;
  auto ready = ReadyCommand::prepare(*command_, options_, *inherited_);
  if (!ready) {
    is_unforked_ = ready.error().may_pass;
    if (!is_unforked_) until_ = Instant::max();
    not_started_ = std::move(ready.error().text);
    return;
  }
  is_unforked_ = false;
  not_started_.clear();
  const pid_t pid = ready->pid();
  if (auto started = ready->start(); !started) {
    not_started_ = std::move(started.error().text);
    until_ = Instant::max();
    return;
  }
  pid_ = pid;
  tree_.spare(pid_);
}

void StopHook::note_end(const Ended& ended) noexcept {
  if (pid_ == 0 || ended.pid != pid_) return;
  pid_ = 0;
  status_ = ended.status;
  if (!is_dying()) until_ = Instant::max();
}

void StopHook::tend(Instant now, Instant limit) {
  if (now < until_) return;
  if (is_dying()) return stop_waiting();
  kill(limit);
}

void StopHook::kill(Instant limit) {
  until_ = Instant::max();
  is_unforked_ = false;
  if (pid_ == 0) return;
  // Stop its group first: a process that forks meanwhile could hide a child.
  ::kill(-pid_, SIGSTOP);
  dying_ = proc::living_descendants({pid_});
  for (const pid_t pid : dying_) ::kill(pid, SIGKILL);
  ::kill(-pid_, SIGKILL);
  dying_.push_back(pid_);
  until_ = limit;
}

void StopHook::note_deaths() {
  if (!is_dying()) return;
  const std::vector<pid_t> living = tree_.descendants();
  std::erase_if(dying_, [&](pid_t pid) { return std::ranges::find(living, pid) == living.end(); });
  if (!is_dying()) until_ = Instant::max();
}

void StopHook::stop_waiting() {
  dying_.clear();
  until_ = Instant::max();
}

Instant StopHook::next(Instant now) const noexcept {
  // Many of the processes whose end makes room for the hook are no children of ours.
  const bool must_poll = is_unforked_ || is_dying();
  return must_poll ? std::min(until_, now + max_kill_interval) : until_;
}

std::string StopHook::failure() const {
  if (!not_started_.empty()) return "--on-stop could not be run: " + not_started_;
  if (pid_ != 0) return "--on-stop still runs";
  if (!status_ || *status_ == 0) return {};
  if (WIFEXITED(*status_))
    return "--on-stop failed (exit status " + std::to_string(WEXITSTATUS(*status_)) + ")";
  return "--on-stop died of SIG" + signal_name(WTERMSIG(*status_));
}

}  // namespace redlock::guard
