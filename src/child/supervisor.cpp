#include "child/supervisor.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "child/cpu_share.hpp"
#include "child/title.hpp"

namespace redlock::child {
namespace {

/// While a process cannot be killed, the user should know, but the complaints must not fill a disk.
constexpr Milliseconds first_complaint{1000};
constexpr Milliseconds complaint_interval{60'000};

/// We get no SIGCHLD when the command's orphans end in a pid namespace: they are its init's
/// children, not ours.
constexpr Milliseconds orphan_interval{20};

/// The same of processes in the command's group that are below others. They are rare.
constexpr Milliseconds group_interval{100};

/// What kills the command may be about to kill the front process: the clean-up of a CI agent
/// ends one process after the other, in any order.
constexpr Milliseconds clean_up_time{2000};

/// What is waited for is worth a line only when it takes a while.
constexpr Milliseconds awaited_unseen{1000};

/// How long after a signal, or for the grace if that is longer, a command that ends by itself is
/// taken to do so because of it: it may clean up first. A signal of long ago, such as a HUP for a
/// reload, has been acted upon.
constexpr Milliseconds signal_memory{60'000};

/// A process that has been killed takes a moment to end.
constexpr Milliseconds settle_timeout{50};
constexpr Milliseconds settle_interval{5};

bool is_dying(pid_t pid) {
  const auto state = signal_state(pid);
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
  if (isolation_.wants_pid_namespace()) {
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
  // Not before the command is forked: the command must not inherit this.
  leave_session(::getpgid(pid_));
  claim_cpu_share();
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
    if (page_.target.kill_argument == 0) return;  // reaped: the pid may be another process's
    note_signals(mask_of(signal));
    to_group = plan_.signal_to == SignalTo::group && ::getpgid(pid_) == pid_;
    ::kill(to_group ? -pid_ : pid_, signal);
  }
  signalled_alone_ |= !to_group && asks_to_end(signal);
  group_was_told_ |= to_group && signal == plan_.stop_signal;
}

/// The front process, which asked whether the command was in its group, did not ask about these.
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
  bool dead = true;  // the processes that had to be killed
  for (;;) {
    reap();
    const Instant now = clock_.now();
    if (is_told_to_end()) start_hook("signal", kill_by());
    if (status_ && !is_stopping() && !page_.stopped_by_front) {
      if (may_leave(now)) break;
      if (plan_.descendants == Descendants::kill && !hook_.is_running()) tell_rest_to_end(now);
    }
    if (const auto reason = reason_to_stop(now)) stop(*reason, now);
    if (is_stopping() && now >= *kill_at_) {
      if (*kill_at_ == Instant()) co_await kill_all_but_hook();
      dead = co_await kill_all();
      break;
    }
    if (is_stopping() && status_ && (*kill_at_ == Instant::max() || all_ended())) break;

    if (now >= hook_.until()) hook_.kill();
    if (awaits_group_ && now >= tell_awaited_at_) {
      tell_awaited_at_ = Instant::max();
      const auto awaited = rest_of_group();
      if (!is_stopping() && !awaited.empty()) events_.awaiting(awaited);
    }
    if (now >= meter_.next()) measure(now);
    const Instant next = next_poll(now);
    if (!co_await event_->wait_until(next)) meter_.note_timer(next, clock_.now());
  }
  Instant over = clock_.now();
  // It ended by itself, but we checked only after the lease expired: it may have run on without the
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
  // What it left may live on, and nested runs look after themselves, however long we renew for
  // them.
  disarm();
  CommandEnd end;
  if (dead) end.status = status_.value_or(SIGKILL);
  end.stopped = stopped_;
  end.unkillable = !dead;
  end.swept = std::move(swept);
  end.hook_failure = hook_.failure();
  if (is_promised) end.late = std::max(Duration::zero(), over - deadline_);
  if (!tree_.nothing_left()) end.left = tree_.descendants();
  // What `acquire` leaves behind in the command does no work that the lock is for.
  if (dead) {
    std::erase_if(end.left, has_guard_title);
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

/// True when no process is left. While a process cannot be killed (setuid, D state), the lease is
/// kept for as long as it can be. A tree that only takes long, because it is large and the machine
/// is busy, is never left alive.
asio::awaitable<bool> Supervisor::kill_all() {
  const Instant began = clock_.now();
  Instant got_on = began;
  Instant next_complaint = began + first_complaint;
  for (;;) {
    const Instant pass = clock_.now();
    const bool dead = tree_.kill_and_reap(pass + death_timeout, &page_.killing_at);
    const Instant now = clock_.now();
    if (tree_.got_on()) got_on = now;
    if (dead || now >= std::max(deadline_, got_on) + death_timeout) {
      reap();
      co_return dead;
    }
    if (now >= next_complaint && !tree_.got_on()) {
      events_.unkillable(tree_.descendants());
      next_complaint = now + complaint_interval;
    }
    // Dying processes need the CPU, too: a walk through thousands leaves them some of it.
    co_await sleep_until(
        clock_, now + std::clamp<Duration>(now - pass, kill_interval,
                                           std::max<Duration>(max_kill_interval, margin_ / 8)));
  }
}

/// Another guard was killed: the hook alone has time left.
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

/// In a pid namespace its init, our own, always remains.
bool Supervisor::all_ended() const {
  if (hook_.is_running()) return false;
  return pid_namespace_ ? tree_.descendants().empty() : tree_.nothing_left();
}

Instant Supervisor::next_poll(Instant now) const {
  Instant next = std::min(next_instant(), hook_.until());
  if (awaits_group_) next = std::min(next, tell_awaited_at_);
  if (pid_namespace_ && status_) return std::min(next, now + orphan_interval);
  const bool polls = awaits_group_ && plan_.descendants == Descendants::leave;
  return polls ? std::min(next, now + group_interval) : next;
}

bool Supervisor::may_leave(Instant now) const {
  const bool leaves = plan_.descendants == Descendants::leave && now >= may_leave_at_;
  return (leaves && !hook_.is_running() && rest_of_group().empty()) || all_ended();
}

bool Supervisor::asks_to_end(int signal) const noexcept {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT ||
         signal == plan_.stop_signal;
}

/// A signal that asks it to end was passed on, or is about to be.
bool Supervisor::is_told_to_end() const {
  const auto was_sent = [this](int signal) {
    return signals_.noted_since(signal, started_at_) ||
           page_.signals_of_front.noted_since(signal, started_at_);
  };
  return was_sent(SIGTERM) || was_sent(SIGINT) || was_sent(SIGHUP);
}

/// It died of one, from any sender, or ended by itself soon after one that asks to end.
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

/// What is waited for when a signal has ended the command.
std::vector<pid_t> Supervisor::rest_of_group() const {
  return awaits_group_ ? tree_.members_of(group_) : std::vector<pid_t>();
}

void Supervisor::note_end(int status) {
  status_ = status;
  ended_at_ = clock_.now();
  // The listener may learn of signals that were on their way to us.
  events_.ended(page_.stopping || page_.stopped_by_front);
  awaits_group_ = was_ended_by_signal(status);
  const bool was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  may_leave_at_ = was_killed ? ended_at_ + clean_up_time : ended_at_;
  // Others that the command left running see that we do not wait for them.
  if (awaits_group_ && plan_.descendants == Descendants::leave) set_name(awaiter_title);
  tell_awaited_at_ = ended_at_ + awaited_unseen;
  const bool are_told = plan_.descendants == Descendants::kill || is_stopping();
  if (awaits_group_ && signalled_alone_ && !are_told) {
    for (const pid_t pid : rest_of_group()) ::kill(pid, plan_.stop_signal);
  }
}

void Supervisor::tell_rest_to_end(Instant now) {
  page_.stopping = true;
  kill_at_ = grace_end(now);
  const bool has_heard = awaits_group_ && group_was_told_ && !signalled_alone_;
  tree_.signal(plan_.stop_signal, *kill_at_, has_heard ? group_ : 0);
}

/// Of two reasons the one that came first: it decides what becomes of the command, and the exit
/// code.
std::optional<StopReason> Supervisor::reason_to_stop(Instant now) const {
  if (is_stopping()) return std::nullopt;
  if (stopped_ == StopReason::lease || page_.stopped_by_front) return StopReason::lease;
  if (asked_to_stop_) return asked_to_stop_;
  if (now < std::min(terminate_at(), hold_until_)) return std::nullopt;
  return hold_until_ <= terminate_at() ? StopReason::max_hold : StopReason::lease;
}

void Supervisor::reap() {
  // A command in a group of others may have left it.
  if (const pid_t group = status_ || leads_group_ ? 0 : ::getpgid(pid_); group > 0) group_ = group;
  while (const auto ended = tree_.reap()) {
    if (ended->pid == pid_ && !status_) note_end(ended->status);
    hook_.note_end(*ended);
  }
}

void Supervisor::stop(StopReason reason, Instant now) {
  stopped_ = reason;
  // What --on-lost lets run on without the lock must end all the same before the lock is released.
  const OnLost how = keeps_lease(reason) ? OnLost::kill : plan_.on_lost;
  page_.stopping = how != OnLost::warn;
  kill_at_ = how == OnLost::kill ? grace_end(now) : Instant::max();
  if (how != OnLost::warn && !page_.stopped_by_front) tree_.signal(plan_.stop_signal, *kill_at_);
  start_hook(word_of(reason), *kill_at_);
  // Not before the signal: no message may delay it.
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

}  // namespace redlock::child
