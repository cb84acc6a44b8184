#include "run/job.hpp"

#include <signal.h>

namespace redlock::run {
namespace {

/// How long the front process may take to say that the command may start. A paused one (^Z) does
/// not answer; the lock is released then.
constexpr Milliseconds go_timeout{500};

/// How long a sender that signals all processes of the job, one by one, may take from the front
/// process to us.
constexpr Milliseconds sweep_time{10};

}  // namespace

Job::Job(Session& session, child::Channel channel, child::SignalGate& gate, child::SharedPage& page,
         pid_t front, pid_t group)
    : session_(session),
      link_(std::make_shared<child::FrontLink>(session.io().get_executor(), session.clock(),
                                               std::move(channel), gate, front)) {
  if (group == 0) return;
  group_ = group;
  control_.emplace(page, link_, front);
}

void Job::listen() {
  link_->start({[this](int signal) { on_signal(signal); }, [this] { on_child(); },
                [this] { on_front_gone(); }});
}

void Job::on_signal(int signal) {
  if (supervisor_ != nullptr) {
    return spawn(session_.io().get_executor(), [this, signal] { return pass_on(signal); });
  }
  if (!child::ends_a_wait(signal)) return;
  ended_by_ = signal;
  session_.interrupt().raise();
}

/// A signal that we got ourselves, too, was sent to every process of the job, so the command gets
/// it as well.
asio::awaitable<void> Job::pass_on(int signal) {
  // In a job, the front process has waited as long for its witness.
  if (!group_) co_await sleep_until(session_.clock(), session_.clock().now() + sweep_time);
  if (link_->got_ourselves(signal)) co_return;

  // Of the processes that the command left behind, only the nested runs are ours to end.
  if (nested_runs_) nested_runs_->pass_on(signal);
  supervisor_->pass_on(signal);
}

void Job::on_child() {
  if (supervisor_ == nullptr) return;
  if (control_) control_->on_child();
  supervisor_->on_child();
}

void Job::on_front_gone() {
  if (supervisor_ != nullptr) supervisor_->front_is_gone();
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

void Job::command_ended(bool told_to_end) {
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
