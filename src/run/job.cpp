#include "run/job.hpp"

#include <signal.h>

namespace redlock::run {
namespace {

/// How long the front process may take to say that the command may start. One that is stopped (^Z) says nothing; the lock is released then.
constexpr Milliseconds go_timeout{500};

/// How long one who signals all processes of the job, one by one, may take from the front process to us.
constexpr Milliseconds sweep_time{10};

}  // namespace

Job::Job(Session& session, child::Channel channel, child::SignalGate& gate, child::SharedPage& page, pid_t front, pid_t group)
    : session_(session),
      page_(page),
      front_(front),
      link_(std::make_shared<child::FrontLink>(session.io().get_executor(), session.clock(), std::move(channel), gate)) {
  if (group != 0) group_ = group;
}

void Job::listen() {
  link_->start({[this](int signal) { on_signal(signal); }, [this] { on_child(); }, [this] { on_front_gone(); }});
}

void Job::on_signal(int signal) {
  if (supervisor_ != nullptr) {
    return spawn(session_.io().get_executor(), [this, signal] { return pass_on(signal); });
  }
  if (!child::ends_a_wait(signal)) return;
  ended_by_ = signal;
  session_.interrupt().raise();
}

/// What we got ourselves, too, somebody sends to every process of the job, and the command gets
/// it as well.
asio::awaitable<void> Job::pass_on(int signal) {
  // In a job, the front process has waited as long for its witness.
  if (!group_) co_await sleep_until(session_.clock(), session_.clock().now() + sweep_time);
  if (link_->got_ourselves(signal)) co_return;

  // Of what the command left behind nothing else is ours to end.
  if (nested_runs_) nested_runs_->pass_on(signal);
  supervisor_->pass_on(signal);
}

void Job::on_child() {
  if (supervisor_ == nullptr) return;
  if (group_) follow_stops();
  supervisor_->on_child();
}

/// The front process stops when the command has stopped, and goes on when somebody lets the command alone go on.
void Job::follow_stops() {
  while (const auto change = supervisor_->stop_change()) {
    page_.stopped_group = change->group;  // first: the front process looks when its own stop is under way
    if (change->signal != 0) {
      link_->tell_stopped(change->signal);
    } else if (!link_->gone()) {
      ::kill(front_, SIGCONT);
    }
  }
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
  link_->forget_signals();  // the command was not there to get them
  link_->tell_started();
}

void Job::command_ended(bool stopped_by_us) {
  const bool was_stopped = page_.stopped_group.exchange(0) != 0;
  if (group_) link_->tell_ended();
  // Killed while it was stopped: the parent that waits for us must learn it. What we stopped ourselves is told when the job goes on.
  if (was_stopped && !stopped_by_us && !link_->gone()) ::kill(front_, SIGCONT);
}

void Job::report(const Finish& finish, std::string text) const {
  link_->report(finish.exit_code, finish.signal, std::move(text));
}

}  // namespace redlock::run
