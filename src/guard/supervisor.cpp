#include "guard/supervisor.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "proc/cpu_share.hpp"
#include "proc/title.hpp"

namespace redlock::guard {
namespace {

/// When to report that processes survive KILL: first after a delay, then rarely enough not to fill
/// a disk.
constexpr Milliseconds unkillable_delay{1000};
constexpr Milliseconds unkillable_interval{60'000};

/// How often to check for orphans in a pid namespace. Their end sends us no SIGCHLD, because they
/// are children of its init.
constexpr Milliseconds orphan_interval{20};

/// How often to check for members of the command's group that are not our children. Such members
/// are rare.
constexpr Milliseconds group_interval{100};

/// How long to wait, after KILL has ended the command, before its descendants may be left running.
/// The clean-up of a CI agent kills processes one by one, in any order, and may kill the front
/// process next.
constexpr Milliseconds clean_up_delay{2000};

/// After which time it is worth reporting that the process group is waited for.
constexpr Milliseconds awaiting_delay{1000};

/// If a command ends by itself within this time (or the grace, if longer) after a signal, it counts
/// as ended by the signal, because it may clean up first. An earlier signal, such as a HUP for a
/// reload, has been handled.
constexpr Milliseconds signal_memory{60'000};

/// How long a dying process may take to end before it is reported as left running.
constexpr Milliseconds settle_timeout{50};
constexpr Milliseconds settle_interval{5};

bool is_dying(pid_t pid) {
  const auto state = proc::signal_state(pid);
  return state && state->is_dying;
}

}  // namespace

Supervisor::Supervisor(const Clock& clock, StopPlan plan, SharedPage& page,
                       const Isolation& isolation, SupervisorEvents events)
    : clock_(clock),
      plan_(plan),
      page_(page),
      isolation_(isolation),
      events_(std::move(events)),
      tree_(page.target),
      hook_(page),
      meter_(plan.measure_interval, clock.now()),
      margin_(plan.margin),
      event_(clock.make_event()) {
  if (isolation_.cgroup() != nullptr) tree_.confine_to(*isolation_.cgroup());
}

Result<void, ExecFailure> Supervisor::prepare(const Command& command, SpawnOptions options,
                                              const InheritedSignals& inherited,
                                              std::optional<Command> hook) {
  options.cgroup = isolation_.cgroup();
  if (isolation_.uses_pid_namespace()) {
    auto made = PidNamespace::create();
    if (!made) return unexpected(ExecFailure{cannot_start_code, std::move(made.error())});
    pid_namespace_.emplace(std::move(*made));
    tree_.add_guard(pid_namespace_->init());
    options.pid_namespace = &*pid_namespace_;
  }

  auto ready = ReadyCommand::prepare(command, options, inherited);
  if (!ready) {
    end_namespace();
    return unexpected<ExecFailure>(std::move(ready.error()));
  }

  leads_group_ = !options.join_group;
  joined_group_ = options.join_group.value_or(0);
  group_ = options.join_group.value_or(ready->pid());
  ready_.emplace(std::move(*ready));
  if (hook) hook_.prepare(std::move(*hook), std::move(options), inherited);
  return {};
}

void Supervisor::arm(Instant deadline, Instant granted) {
  deadline_ = deadline;
  if (plan_.max_hold) hold_until_ = later(granted, *plan_.max_hold);
  armed_ = true;
  page_.set_margin(margin_);
  page_.set_deadline(deadline_);
}

void Supervisor::disarm() {
  armed_ = false;
  page_.clear_deadline();
}

void Supervisor::drop() {
  ready_.reset();
  end_namespace();
  disarm();
}

Result<bool, ExecFailure> Supervisor::start() {
  if (clock_.now() >= terminate_at()) return false;
  pid_ = ready_->pid();
  page_.target.own_group = leads_group_ ? pid_ : 0;
  page_.target.kill_argument = leads_group_ ? -pid_ : pid_;

  // After the fork, because the command must not inherit these.
  proc::leave_session(::getpgid(pid_));
  proc::claim_cpu_share();

  started_at_ = clock_.now();
  if (auto started = ready_->start(); !started) {
    page_.target.kill_argument = 0;
    disarm();
    end_namespace();
    return unexpected<ExecFailure>(std::move(started.error()));
  }
  ready_.reset();
  return true;
}

void Supervisor::end_namespace() {
  if (pid_namespace_) pid_namespace_->end();
  pid_namespace_.reset();
}

void Supervisor::move_deadline(Instant deadline) {
  deadline_ = std::max(deadline_, deadline);
  if (armed_) page_.set_deadline(deadline_);
  event_->notify();
}

void Supervisor::lease_is_lost() {
  if (!stopped_ || !keeps_lease(*stopped_)) stopped_ = StopReason::lease;
  event_->notify();
}

void Supervisor::stop_for(StopReason why) {
  if (!asked_to_stop_) asked_to_stop_ = why;
  event_->notify();
}

void Supervisor::kill(StopReason why) {
  if (!stopped_) stopped_ = why;
  kill_at_ = Instant();
  event_->notify();
}

void Supervisor::pass_on(int signal, Reached reached) {
  if (status_) return pass_on_to_rest(signal, reached);
  pass_on_to_command(signal, reached);
}

void Supervisor::pass_on_to_command(int signal, Reached reached) {
  bool to_group = true;
  if (reached == Reached::none) {
    if (page_.target.kill_argument == 0) return;  // reaped: its pid may have been reused
    note_signals(proc::mask_of(signal));
    to_group = plan_.signal_to == SignalTo::group && ::getpgid(pid_) == pid_;
    ::kill(to_group ? -pid_ : pid_, signal);
  }
  signalled_alone_ |= !to_group && asks_to_end(signal);
  group_got_stop_signal_ |= to_group && signal == plan_.stop_signal;
}

/// `reached` was determined for the command, which has ended. Which of the rest a signal to the job
/// has reached depends on their own groups.
void Supervisor::pass_on_to_rest(int signal, Reached reached) {
  if (reached == Reached::everything) return;
  const pid_t spared_group = reached == Reached::job ? joined_group_ : 0;
  if (plan_.descendants == Descendants::wait) {
    tree_.signal(signal, deadline_, spared_group);
  } else if (spared_group == 0 || group_ != spared_group) {
    for (const pid_t pid : rest_of_group()) ::kill(pid, signal);
  }
}

void Supervisor::on_child() {
  event_->notify();
}

asio::awaitable<CommandEnd> Supervisor::finish() {
  bool dead = true;  // whether all processes that had to be killed are dead
  for (;;) {
    reap();
    const Instant now = clock_.now();
    if (was_asked_to_end()) start_hook("signal", kill_by());

    if (status_ && !is_stopping() && !page_.stopped_by_front) {
      if (rest_may_stay(now)) break;
      if (plan_.descendants == Descendants::kill && !hook_.is_running()) terminate_descendants(now);
    }

    if (const auto reason = reason_to_stop(now)) stop(*reason, now);
    if (is_stopping() && now >= *kill_at_) {
      if (*kill_at_ == Instant()) co_await kill_all_but_hook();
      dead = co_await kill_all();
      break;
    }
    if (is_stopping() && status_ && (*kill_at_ == Instant::max() || all_ended())) break;

    if (now >= hook_.until()) hook_.kill();
    if (awaits_group_ && now >= report_awaiting_at_) {
      report_awaiting_at_ = Instant::max();
      const auto awaited = rest_of_group();
      if (!is_stopping() && !awaited.empty()) events_.awaiting(awaited);
    }

    if (now >= meter_.next()) measure(now);
    const Instant next = next_poll(now);
    if (!co_await event_->wait_until(next)) meter_.note_timer(next, clock_.now());
  }

  Instant over = clock_.now();
  // If we noticed its end only after the lease expired, the command may have run on without the
  // lease.
  if (over > deadline_) lease_is_lost();
  const bool is_promised =
      stopped_ &&
      (keeps_lease(*stopped_) || (stopped_ == StopReason::lease && plan_.on_lost == OnLost::kill));

  std::vector<pid_t> swept;
  if (pid_namespace_ && dead) {
    swept = tree_.descendants();
    dead = co_await kill_all();
    if (is_stopping()) over = clock_.now();
  }

  // Descendants may live on, and nested runs guard themselves, so the front process must no longer
  // kill at the deadline, even if we keep renewing for nested runs.
  disarm();

  CommandEnd end;
  if (dead) end.status = status_.value_or(SIGKILL);
  end.stopped = stopped_;
  end.unkillable = !dead;
  end.swept = std::move(swept);
  end.hook_failure = hook_.failure();
  if (is_promised) end.late = std::max(Duration::zero(), over - deadline_);
  if (!tree_.nothing_left()) end.left = tree_.descendants();

  // A holder process that `acquire` left in the background does none of the work that the lock
  // protects.
  if (dead) {
    std::erase_if(end.left, proc::has_guard_title);
    std::erase_if(end.left, is_dying);
  }
  co_return end;
}

asio::awaitable<void> Supervisor::settle(std::vector<pid_t>& left) {
  const Instant limit = ended_at_ + settle_timeout;
  for (;;) {
    reap();
    const std::vector<pid_t> living = tree_.descendants();
    std::erase_if(left, [&](pid_t pid) {
      return std::find(living.begin(), living.end(), pid) == living.end();
    });
    const Instant now = clock_.now();
    if (left.empty() || now >= limit) co_return;
    co_await event_->wait_until(std::min(limit, now + settle_interval));
  }
}

asio::awaitable<bool> Supervisor::kill_rest() {
  return kill_all();
}

asio::awaitable<bool> Supervisor::stop_rest() {
  const Instant kill_at = grace_end(clock_.now());
  tree_.signal(plan_.stop_signal, kill_at);
  do {
    reap();
    if (tree_.nothing_left()) co_return true;
  } while (co_await event_->wait_until(kill_at));
  co_return co_await kill_all();
}

/// Returns whether no process is left. While a process cannot be killed (setuid, D state), the
/// lease is kept for as long as possible. A tree that only takes long, because it is large and the
/// machine is busy, is killed completely.
asio::awaitable<bool> Supervisor::kill_all() {
  const Instant began = clock_.now();
  Instant last_progress = began;
  Instant next_report = began + unkillable_delay;
  for (;;) {
    const Instant pass = clock_.now();
    const bool dead = tree_.kill_and_reap(pass + death_timeout, &page_.killing_at);
    const Instant now = clock_.now();
    if (tree_.made_progress()) last_progress = now;
    if (dead || now >= std::max(deadline_, last_progress) + death_timeout) {
      reap();
      co_return dead;
    }
    if (now >= next_report && !tree_.made_progress()) {
      events_.unkillable(tree_.descendants());
      next_report = now + unkillable_interval;
    }

    // Dying processes need the CPU, too, so pause for as long as the last pass took.
    co_await sleep_until(
        clock_, now + std::clamp<Duration>(now - pass, kill_interval,
                                           std::max<Duration>(max_kill_interval, margin_ / 8)));
  }
}

/// Another guard was killed: kills all at once except the hook, which gets its time.
asio::awaitable<void> Supervisor::kill_all_but_hook() {
  if (!hook_.exists()) co_return;
  tree_.kill(clock_.now() + death_timeout);
  start_hook(word_of(StopReason::front_killed), kill_by());
  const Instant until = std::min(hook_.until(), kill_by());
  for (Instant now = clock_.now(); hook_.is_running() && now < until; now = clock_.now()) {
    tree_.kill(now + death_timeout);
    co_await event_->wait_until(std::min(until, now + max_kill_interval));
    reap();
  }
}

void Supervisor::start_hook(std::string_view reason, Instant until) {
  hook_.start(reason, until);
  tree_.spare(hook_.pid());
}

/// In a pid namespace our init process always remains, so list the descendants there.
bool Supervisor::all_ended() const {
  if (hook_.is_running()) return false;
  return pid_namespace_ ? tree_.descendants().empty() : tree_.nothing_left();
}

Instant Supervisor::next_poll(Instant now) const {
  Instant next = std::min(next_instant(), hook_.until());
  if (awaits_group_) next = std::min(next, report_awaiting_at_);
  if (pid_namespace_ && status_) return std::min(next, now + orphan_interval);
  const bool must_poll = awaits_group_ && plan_.descendants == Descendants::leave;
  return must_poll ? std::min(next, now + group_interval) : next;
}

bool Supervisor::rest_may_stay(Instant now) const {
  const bool leaves = plan_.descendants == Descendants::leave && now >= rest_may_stay_at_;
  return (leaves && !hook_.is_running() && rest_of_group().empty()) || all_ended();
}

bool Supervisor::asks_to_end(int signal) const noexcept {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT ||
         signal == plan_.stop_signal;
}

/// Whether a signal that asks the command to end was passed on, or is about to be.
bool Supervisor::was_asked_to_end() const {
  const auto was_sent = [this](int signal) {
    return signals_.noted_since(signal, started_at_) ||
           page_.signals_of_front.noted_since(signal, started_at_);
  };
  return was_sent(SIGTERM) || was_sent(SIGINT) || was_sent(SIGHUP);
}

/// Whether the command died of a signal, from any sender, or ended by itself soon after one that
/// asks it to end.
bool Supervisor::was_ended_by_signal(int status) const {
  if (WIFSIGNALED(status)) return true;
  const Instant recent = ended_at_ - std::max<Duration>(plan_.grace, signal_memory);
  for (int signal = 1; signal < NSIG; ++signal) {
    if (asks_to_end(signal) && (signals_.noted_since(signal, recent) ||
                                page_.signals_of_front.noted_since(signal, recent)))
      return true;
  }
  return false;
}

/// The processes that are waited for after a signal has ended the command.
std::vector<pid_t> Supervisor::rest_of_group() const {
  return awaits_group_ ? tree_.members_of(group_) : std::vector<pid_t>();
}

void Supervisor::note_end(int status) {
  status_ = status;
  ended_at_ = clock_.now();
  // May call note_signals() for signals that were still on their way to us.
  events_.ended(page_.stopping || page_.stopped_by_front);

  awaits_group_ = was_ended_by_signal(status);
  const bool was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  rest_may_stay_at_ = was_killed ? ended_at_ + clean_up_delay : ended_at_;
  // By this name, other descendants see that we do not wait for them (is_enclosing_run()).
  if (awaits_group_ && plan_.descendants == Descendants::leave) proc::set_name(proc::awaiter_title);
  report_awaiting_at_ = ended_at_ + awaiting_delay;

  const bool get_stop_signal = plan_.descendants == Descendants::kill || is_stopping();
  if (awaits_group_ && signalled_alone_ && !get_stop_signal) {
    for (const pid_t pid : rest_of_group()) ::kill(pid, plan_.stop_signal);
  }
}

void Supervisor::terminate_descendants(Instant now) {
  page_.stopping = true;
  kill_at_ = grace_end(now);
  const bool group_has_it = awaits_group_ && group_got_stop_signal_ && !signalled_alone_;
  tree_.signal(plan_.stop_signal, *kill_at_, group_has_it ? group_ : 0);
}

/// Of two reasons, returns the one that came first: it decides how the command is stopped, and the
/// exit code.
std::optional<StopReason> Supervisor::reason_to_stop(Instant now) const {
  if (is_stopping()) return std::nullopt;
  if (stopped_ == StopReason::lease || page_.stopped_by_front) return StopReason::lease;
  if (asked_to_stop_) return asked_to_stop_;
  if (now < std::min(terminate_at(), hold_until_)) return std::nullopt;
  return hold_until_ <= terminate_at() ? StopReason::max_hold : StopReason::lease;
}

void Supervisor::reap() {
  // A command that was started in our job may have moved to another group.
  if (const pid_t group = status_ || leads_group_ ? 0 : ::getpgid(pid_); group > 0) group_ = group;
  while (const auto ended = tree_.reap()) {
    if (ended->pid == pid_ && !status_) note_end(ended->status);
    hook_.note_end(*ended);
  }
}

void Supervisor::stop(StopReason reason, Instant now) {
  stopped_ = reason;
  // If the lease is still valid, the command must be dead before it is released, whatever --on-lost
  // says.
  const OnLost how = keeps_lease(reason) ? OnLost::kill : plan_.on_lost;

  page_.stopping = how != OnLost::warn;
  kill_at_ = how == OnLost::kill ? grace_end(now) : Instant::max();
  if (how != OnLost::warn && !page_.stopped_by_front) tree_.signal(plan_.stop_signal, *kill_at_);
  start_hook(word_of(reason), *kill_at_);
  // After the signal, which no message may delay.
  events_.stopping(reason, meter_.worst_delay());
}

void Supervisor::measure(Instant now) {
  const auto cost = meter_.step({::getpid()}, now);
  if (!cost) return;
  const Duration needed = needed_margin(plan_.margin, *cost);
  set_margin(std::min(needed, std::max(plan_.margin, plan_.max_margin)));
  if (needed > plan_.max_margin && !std::exchange(strained_, true)) events_.strained(*cost, needed);
}

void Supervisor::set_margin(Duration margin) {
  margin_ = margin;
  page_.set_margin(margin);
}

}  // namespace redlock::guard
