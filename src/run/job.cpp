#include "run/job.hpp"

#include <signal.h>

#include "child/control_group.hpp"

namespace redlock::run {
namespace {

/// How long the front process may take to say that the command may start. A paused one (^Z) does
/// not answer; the lock is released then.
constexpr Milliseconds go_timeout{500};

/// How long the manager of a control group, which signals its processes one by one, may take from
/// the front process to us. A signal to the front process alone comes so much later.
constexpr Milliseconds sweep_time{30};

}  // namespace

Job::Job(Session& session, child::Channel channel, child::SignalGate& gate, child::SharedPage& page,
         pid_t front, pid_t group, child::Shield shield)
    : session_(session),
      link_(std::make_shared<child::FrontLink>(session.io().get_executor(), session.clock(),
                                               std::move(channel), gate, front)),
      shield_(std::move(shield)) {
  if (group == 0) return;
  group_ = group;
  control_.emplace(page, link_, front);
}

void Job::listen() {
  link_->start({[this](const child::PassedSignal& signal) { on_signal(signal); },
                [this] { on_child(); }, [this] { on_guard_gone(child::Guard::front); },
                [this] { on_guard_gone(child::Guard::shield); }},
               std::move(shield_));
}

void Job::on_signal(const child::PassedSignal& signal) {
  if (supervisor_ != nullptr) {
    return spawn(session_.io().get_executor(), [this, signal] { return pass_on(signal); });
  }
  if (!child::ends_a_wait(signal.number)) return;
  ended_by_ = signal.number;
  session_.interrupt().raise();
}

asio::awaitable<void> Job::pass_on(child::PassedSignal signal) {
  supervisor_->note_signals(child::mask_of(signal.number));
  const child::Reached reached = co_await reached_by(signal);
  // Of the processes that the command left behind, only the nested runs are ours to end.
  if (nested_runs_ && reached != child::Reached::everything)
    nested_runs_->pass_on(signal.number, reached == child::Reached::job ? group_.value_or(0) : 0);
  supervisor_->pass_on(signal.number, reached);
}

/// Who has got the signal from its sender. In doubt nobody: twice is better than never.
/// A sender that reaches us, outside of the job's process group, as well as the front process picks
/// processes one by one. The manager of our control group leaves none of its processes out, others
/// may have looked for this program.
asio::awaitable<child::Reached> Job::reached_by(child::PassedSignal signal) {
  using child::Reached;
  const bool is_managed = child::is_managed_by(signal.sender, supervisor_->command());
  if (!is_managed && !signal.reached_job) co_return Reached::none;
  // Nobody waits for a signal that is not to be passed on: there is time to see that it is.
  const Duration time = signal.reached_job ? child::twin_memory : sweep_time;
  const bool one_by_one = co_await link_->gets_too(signal, session_.clock().now() + time);
  if (one_by_one) co_return is_managed ? Reached::everything : Reached::none;
  co_return signal.reached_job ? Reached::job : Reached::none;
}

void Job::on_child() {
  if (supervisor_ == nullptr) return;
  if (control_) control_->on_child();
  supervisor_->on_child();
}

void Job::on_guard_gone(child::Guard which) {
  if (which == child::Guard::shield) shield_is_gone_ = true;
  if (supervisor_ != nullptr) supervisor_->guard_is_gone(which);
  session_.interrupt().raise();
}

asio::awaitable<bool> Job::may_start() {
  co_return co_await link_->may_start(session_.clock().now() + go_timeout);
}

asio::awaitable<void> Job::until_continued() {
  co_await link_->until_continued();
  link_->tell_waiting();
}

void Job::command_started(child::Supervisor& supervisor) {
  supervisor_ = &supervisor;
  if (control_) control_->command_started(supervisor.command());
  link_->forget_signals();  // the command was not there to get them
  link_->tell_started();
}

/// Another guard may have been killed before the command without having ended yet, or the front
/// process have got a signal that it has not read: then the command did not end by itself.
void Job::command_ended(bool told_to_end) {
  const child::SignalMask unread = link_->look_at_guards();
  if (supervisor_ != nullptr) supervisor_->note_signals(unread);
  if (control_) control_->command_ended(told_to_end);
}

void Job::report(const Finish& finish, std::string text) const {
  if (link_->report(finish.exit_code, finish.signal, std::move(text))) return;
  // A long text needs a file. Where the front process is gone, this fails as well.
  if (!link_->report(finish.exit_code, finish.signal, {})) return;
  session_.console().error(
      "the result for --json or --status-fd cannot be passed on: no memory, descriptors or file "
      "size (ulimit -f) are left");
}

}  // namespace redlock::run
