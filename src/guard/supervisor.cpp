#include "guard/supervisor.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "guard/step_trace.hpp"
#include "proc/cpu_share.hpp"
#include "proc/process_stat.hpp"
#include "proc/title.hpp"
#include "support/trace.hpp"

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

/// How long a dying process may take to end before it is reported as left running.
constexpr Milliseconds settle_timeout{50};
constexpr Milliseconds settle_interval{5};

bool is_dying(pid_t pid) {
  const auto state = proc::signal_state(pid);
  return state && state->is_dying;
}

}  // namespace

Supervisor::Supervisor(const Clock& clock, StopPlan plan, SharedPage& page,
                       const Isolation& isolation, std::function<void(bool)> on_end)
    : clock_(clock),
      plan_(plan),
      page_(page),
      isolation_(isolation),
      on_end_(std::move(on_end)),
      has_news_(clock.make_event()),
      schedule_(plan),
      signals_(plan.stop_signal, page.signals_of_front),
      tree_(page.target),
      hook_(page, tree_),
      meter_(plan.measure_interval, clock.now()),
      event_(clock.make_event()) {
  if (isolation_.cgroup() != nullptr) tree_.confine_to(*isolation_.cgroup());
}

Result<void, ExecFailure> Supervisor::prepare(const Command& command, SpawnOptions options,
                                              const InheritedSignals& inherited,
                                              std::optional<Command> hook) {
  options.cgroup = isolation_.cgroup();
  if (isolation_.uses_pid_namespace()) {
    auto made = PidNamespace::create();
    if (!made) return unexpected(ExecFailure{ExitCode::os_error, std::move(made.error())});
    pid_namespace_.emplace(std::move(*made));
    tree_.add_guard(pid_namespace_->init());
    options.pid_namespace = &*pid_namespace_;
  }

  auto ready = ReadyCommand::prepare(command, options, inherited);
  if (!ready) {
    end_namespace();
    return unexpected<ExecFailure>(std::move(ready.error()));
  }

  group_ = ::getpgid(ready->pid());
  joined_group_ = options.join_group.value_or(0);
  made_group_ = options.join_group ? 0 : group_;
  ready_.emplace(std::move(*ready));
  if (hook) hook_.prepare(std::move(*hook), std::move(options), inherited);
  return {};
}

void Supervisor::arm(Instant deadline, Instant granted) {
  schedule_.arm(deadline, granted);
  armed_ = true;
  page_.set_margin(schedule_.margin());
  page_.set_deadline(schedule_.deadline());
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
  const Instant now = clock_.now();
  if (!schedule_.leaves_time(now)) return false;
  page_.command_starts = true;
  pid_ = ready_->pid();
  page_.target.own_group = made_group_;
  page_.target.command = pid_;

  // After the fork, because the command must not inherit these.
  proc::leave_session(::getpgid(pid_));
  proc::claim_cpu_share();

  signals_.command_starts(now);
  if (auto started = ready_->start(); !started) {
    page_.target.command = 0;
    page_.target.own_group = 0;
    page_.command_starts = false;
    disarm();
    end_namespace();
    return unexpected<ExecFailure>(std::move(started.error()));
  }
  ready_.reset();
  // A command in a control group of its own would never resemble it.
  if (isolation_.cgroup() == nullptr) tree_witness_.begin(now);
  return true;
}

void Supervisor::end_namespace() {
  if (pid_namespace_) pid_namespace_->end();
  pid_namespace_.reset();
}

void Supervisor::move_deadline(Instant deadline) {
  schedule_.renew(deadline);
  if (armed_) page_.set_deadline(schedule_.deadline());
  event_->notify();
}

void Supervisor::lease_is_lost() {
  schedule_.lose();
  event_->notify();
}

void Supervisor::stop_for(StopReason why) {
  schedule_.ask(why);
  event_->notify();
}

void Supervisor::kill(StopReason why) {
  schedule_.kill_at_once(why);
  event_->notify();
}

void Supervisor::pass_on(int signal, Reached reached) {
  if (ended_) return pass_on_to_rest(signal, reached);
  pass_on_to_command(signal, reached);
}

/// TERM says no more than that the command must end, and the stop signal is how this program ends
/// in good order. What else is sent was meant as it is.
int Supervisor::sent_for(int signal) const {
  return signal == SIGTERM ? plan_.stop_signal : signal;
}

void Supervisor::pass_on_to_command(int signal, Reached reached) {
  bool to_group = true;
  if (reached == Reached::none) {
    if (page_.target.command == 0) return;  // reaped: its pid may have been reused
    signal = sent_for(signal);
    note_signals(proc::mask_of(signal));
    const CommandReach reach(page_.target);
    to_group = plan_.signal_to == SignalTo::group && (made_group_ != 0 || reach.group() != 0);
    if (to_group) {
      reach.send(signal, /*wakes=*/false);
      // What it left in the group that was made for it.
      if (reach.group() != made_group_)
        for (const pid_t pid : rest_of_made_group()) ::kill(pid, signal);
      if (signal == plan_.stop_signal) passed_on_to_ = reach;
    }
    // Alone, or because it has left the group in this very moment.
    if (!to_group || !reach.includes(pid_)) ::kill(pid_, signal);
    if (is_traced())
      trace("signal", signal_name(signal) +
                          (to_group ? " sent to the group of command " : " sent to command ") +
                          std::to_string(pid_));
  } else if (signal == plan_.stop_signal) {
    passed_on_to_.reset();
  }
  signals_.note_reached(signal, to_group);
}

/// `reached` was determined for the command, which has ended. Which of the rest a signal to the job
/// has reached depends on their own groups.
void Supervisor::pass_on_to_rest(int signal, Reached reached) {
  if (reached == Reached::everything) return;
  signal = sent_for(signal);
  const pid_t spared_group = reached == Reached::job ? joined_group_ : 0;
  if (plan_.descendants == Descendants::wait) {
    tree_.signal(signal, schedule_.deadline(), [spared_group](pid_t pid) {
      return spared_group != 0 && ::getpgid(pid) == spared_group;
    });
  } else if (spared_group == 0 || group_ != spared_group) {
    for (const pid_t pid : rest_of_group()) ::kill(pid, signal);
  }
}

bool Supervisor::was_walked(int signal) {
  if (!tree_witness_.saw(signal, clock_.now())) return false;
  const auto reached = ended_ ? tree_.descendants() : std::vector<pid_t>{pid_};
  return std::ranges::all_of(reached, [this](pid_t pid) { return tree_witness_.resembles(pid); });
}

void Supervisor::on_child() {
  event_->notify();
}

asio::awaitable<CommandNews> Supervisor::next_news() {
  while (news_.empty()) co_await has_news_->wait_until(Instant::max());
  co_return *take_news();
}

std::optional<CommandNews> Supervisor::take_news() {
  if (news_.empty()) return std::nullopt;
  CommandNews first = std::move(news_.front());
  news_.pop_front();
  return first;
}

void Supervisor::add_news(CommandNews news) {
  news_.push_back(std::move(news));
  has_news_->notify();
}

asio::awaitable<CommandEnd> Supervisor::finish() {
  bool dead = true;  // whether all processes that had to be killed are dead
  const bool must_kill = co_await until_over();
  end_tree_witness();
  if (must_kill) dead = co_await kill_tree();

  Instant over = clock_.now();
  // If we noticed its end only after the lease expired, the command may have run on without the
  // lease.
  if (over > schedule_.deadline()) schedule_.lose();

  std::string swept;
  if (pid_namespace_ && dead) {
    swept = proc::processes_text(tree_.descendants());
    dead = co_await kill_all();
    if (schedule_.is_stopping()) over = clock_.now();
  }

  // Descendants may live on, so the front process must no longer kill at the deadline.
  disarm();

  CommandEnd end = make_end(dead, over);
  end.swept = std::move(swept);
  co_return end;
}

/// Returns true when what is left must be killed, false when all that must end has ended.
asio::awaitable<bool> Supervisor::until_over() {
  for (;;) {
    reap();
    if (ended_ && tree_witness_.exists() && tree_.no_descendant_lives()) end_tree_witness();
    hook_.retry();
    const Instant now = clock_.now();
    if (signals_.was_asked_to_end()) hook_.start("signal", schedule_.kill_by());
    if (page_.stopped_by_front) schedule_.other_has_signalled();

    if (ended_ && !schedule_.is_stopping() && !page_.stopped_by_front) {
      if (rest_may_stay(now)) co_return false;
      // A hook that cannot be forked waits for what the rest takes up.
      if (plan_.descendants == Descendants::kill && !hook_.is_running()) schedule_.end_rest();
    }

    const StopStep step = schedule_.step(now);
    trace_step(step);
    if (step.action == StopAction::kill) co_return true;
    if (step.action != StopAction::wait) {
      stop(step);
      continue;
    }
    const bool may_outlive_lease = schedule_.kill_at() == Instant::max();
    if (schedule_.is_stopping() && ended_ && (may_outlive_lease || all_ended())) co_return false;

    tend(now);
    const Instant next = next_poll(now, step.next);
    if (!co_await event_->wait_until(next)) meter_.note_timer(next, clock_.now());
  }
}

/// Whether the command gets the stop signal first. Its pid may be reused once it has been reaped.
bool Supervisor::sends_to_command_alone() const {
  return plan_.signal_to == SignalTo::command && !ended_;
}

/// Does what a step says: the stop signal to the tree, unless the front process has sent it.
void Supervisor::stop(const StopStep& step) {
  page_.stopping = step.action != StopAction::warn;
  if (step.action == StopAction::terminate && step.why && sends_to_command_alone()) {
    send_signal(pid_, plan_.stop_signal);
  } else if (step.action == StopAction::terminate) {
    tree_.signal(plan_.stop_signal, schedule_.kill_at(),
                 [&](pid_t pid) { return !step.why && has_stop_signal(pid); });
  } else if (step.action == StopAction::terminate_rest) {
    tree_.signal_all_but(pid_, plan_.stop_signal, schedule_.kill_at());
    return;
  }
  if (!step.why) return;
  hook_.start(word_of(*step.why), schedule_.kill_at());
  // After the signal, which no message may delay.
  add_news(StopBegan{*step.why, meter_.worst_delay()});
}

/// What else is due while the command runs or its rest is waited for.
void Supervisor::tend(Instant now) {
  hook_.tend(now, schedule_.deadline());
  if (now >= report_awaiting_at_) {
    report_awaiting_at_ = Instant::max();
    const auto awaited = rest_of_group();
    if (!schedule_.is_stopping() && !awaited.empty()) add_news(AwaitsGroup{awaited});
  }
  if (now >= meter_.next()) measure(now);
  if (const pid_t witness = tree_witness_.tend(now); witness != 0) tree_.add_guard(witness);
}

/// It outlives the command: a program that walks the tree may reach the command first, and what the
/// command has left may have got the signal, too. Without it, nothing but that remains to be
/// reaped.
void Supervisor::end_tree_witness() {
  if (!tree_witness_.exists()) return;
  if (const pid_t witness = tree_witness_.end(clock_.now()); witness != 0)
    tree_.remove_guard(witness);
}

CommandEnd Supervisor::make_end(bool dead, Instant over) const {
  CommandEnd end;
  if (dead) end.status = ended_ ? ended_->status : SIGKILL;
  end.stopped = schedule_.stopped();
  end.interrupted = ended_ && ended_->interrupted;
  end.unkillable = !dead;
  end.hook_failure = hook_.failure();
  end.late = schedule_.late_by(over);
  end.all_dead = tree_.nothing_left();
  if (!end.all_dead) end.left = tree_.descendants();

  // A holder process that `acquire` left in the background does none of the work that the lock
  // protects.
  if (dead) {
    std::erase_if(end.left, proc::has_guard_title);
    std::erase_if(end.left, is_dying);
  }
  return end;
}

asio::awaitable<void> Supervisor::settle(std::vector<pid_t>& left) {
  const Instant limit = ended_->at + settle_timeout;
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

asio::awaitable<bool> Supervisor::kill_tree() {
  if (schedule_.kill_at() == Instant()) co_await kill_all_but_hook();
  co_return co_await kill_all();
}

/// Returns whether no process is left. While a process cannot be killed (setuid, D state), the
/// lease is kept for as long as possible. A tree that only takes long, because it is large and the
/// machine is busy, is killed completely.
asio::awaitable<bool> Supervisor::kill_all() {
  schedule_.begin_killing(clock_.now());
  Instant next_report = clock_.now() + unkillable_delay;
  for (;;) {
    const Instant pass = clock_.now();
    const bool dead = tree_.kill_and_reap(pass + death_timeout, &page_.killing_at);
    const Instant now = clock_.now();
    const StopStep step = schedule_.after_pass(pass, now, tree_.made_progress());
    trace_step(step);
    if (dead || step.action == StopAction::give_up) {
      reap();
      co_return dead;
    }
    if (now >= next_report && !tree_.made_progress()) {
      add_news(SurvivesKill{tree_.descendants()});
      next_report = now + unkillable_interval;
    }
    co_await sleep_until(clock_, step.next);
  }
}

/// Another guard was killed: kills all at once except the hook, which gets its time.
asio::awaitable<void> Supervisor::kill_all_but_hook() {
  if (!hook_.exists()) co_return;
  tree_.kill(clock_.now() + death_timeout);
  hook_.start(word_of(StopReason::front_killed), schedule_.kill_by());
  const Instant until = std::min(hook_.until(), schedule_.kill_by());
  for (Instant now = clock_.now(); hook_.is_pending() && now < until; now = clock_.now()) {
    tree_.kill(now + death_timeout);
    co_await event_->wait_until(std::min(until, now + max_kill_interval));
    reap();
    hook_.retry();
  }
}

/// In a pid namespace our init process always remains.
bool Supervisor::all_ended() const {
  if (hook_.is_pending()) return false;
  return pid_namespace_ ? tree_.no_descendant_lives() : tree_.nothing_left();
}

/// `next`: the next step of the schedule.
Instant Supervisor::next_poll(Instant now, Instant next) const {
  if (!schedule_.is_stopping()) next = std::min(next, meter_.next());
  next = std::min({next, hook_.next(now), report_awaiting_at_, tree_witness_.next()});
  if (pid_namespace_ && ended_) return std::min(next, now + orphan_interval);
  const bool must_poll = awaits_group() && plan_.descendants == Descendants::leave;
  return must_poll ? std::min(next, now + group_interval) : next;
}

bool Supervisor::rest_may_stay(Instant now) const {
  const bool leaves = plan_.descendants == Descendants::leave && now >= ended_->rest_may_stay_at;
  const bool group_has_ended =
      !awaits_group() || std::ranges::all_of(groups_of_command(), [this](pid_t group) {
        return tree_.no_member_lives(group);
      });
  return (leaves && !hook_.is_pending() && group_has_ended) || all_ended();
}

/// The last one, and the one that was made for it.
std::vector<pid_t> Supervisor::groups_of_command() const {
  std::vector<pid_t> groups{group_};
  if (made_group_ != 0 && made_group_ != group_) groups.push_back(made_group_);
  return groups;
}

/// The processes that are waited for after a signal has ended the command.
std::vector<pid_t> Supervisor::rest_of_group() const {
  std::vector<pid_t> rest;
  if (!awaits_group()) return rest;
  for (const pid_t group : groups_of_command())
    std::ranges::copy(tree_.members_of(group), std::back_inserter(rest));
  return rest;
}

/// The number of a group without a leader may have been reused, so its members are found one by
/// one.
std::vector<pid_t> Supervisor::rest_of_made_group() const {
  return made_group_ != 0 ? tree_.members_of(made_group_) : std::vector<pid_t>();
}

/// Whether the process got the signal that ended the command with its group.
bool Supervisor::has_stop_signal(pid_t pid) const {
  if (!awaits_group() || !signals_.group_has_stop_signal()) return false;
  if (!passed_on_to_) return ::getpgid(pid) == group_;
  return passed_on_to_->includes(pid) || (made_group_ != 0 && ::getpgid(pid) == made_group_);
}

void Supervisor::reap() {
  // It may have moved to another group.
  if (const pid_t group = ended_ ? 0 : ::getpgid(pid_); group > 0) group_ = group;
  while (const auto ended = tree_.reap()) {
    const Instant now = clock_.now();
    if (ended->pid == pid_ && !ended_) note_end(ended->status, now);
    hook_.note_end(*ended);
    tree_witness_.note_end(*ended, now);
  }
  hook_.note_deaths();
}

void Supervisor::note_end(int status, Instant now) {
  ended_ = Ending{status, now};
  schedule_.command_has_ended();
  // May call note_signals() for signals that were still on their way to us.
  on_end_(page_.stopping || page_.stopped_by_front);

  ended_->interrupted = signals_.was_interrupted();
  ended_->by_signal = signals_.has_ended_command(status, now, plan_.grace);
  if (is_traced())
    trace("signal", ended_->by_signal ? "one has ended the command" : "none has ended the command");
  const bool was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  ended_->rest_may_stay_at = was_killed ? now + clean_up_delay : now;
  if (!awaits_group()) return;

  report_awaiting_at_ = now + awaiting_delay;
  // By this name, other descendants see that we do not wait for them (is_enclosing_run()).
  if (plan_.descendants == Descendants::leave) proc::set_name(proc::awaiter_title);

  const bool get_stop_signal = plan_.descendants == Descendants::kill || schedule_.is_stopping();
  if (signals_.asked_command_alone() && !get_stop_signal) {
    for (const pid_t pid : rest_of_group()) ::kill(pid, plan_.stop_signal);
  }
}

void Supervisor::measure(Instant now) {
  const auto cost = meter_.step({::getpid()}, now);
  if (!cost) return;
  const Duration needed = needed_margin(plan_.margin, *cost);
  schedule_.need_margin(needed);
  page_.set_margin(schedule_.margin());
  if (needed > plan_.max_margin && !std::exchange(strained_, true))
    add_news(IsStrained{*cost, needed});
}

}  // namespace redlock::guard
