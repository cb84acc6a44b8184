#include "child/front_link.hpp"

#include <csignal>

#include "support/spawn.hpp"

namespace redlock::child {
namespace {

/// How long after our own signal the front process may pass on its copy of the same sweep: it may
/// have to wait for a CPU. Each of ours cancels at most one from the front process.
constexpr Milliseconds sweep_memory{1000};

}  // namespace

FrontLink::FrontLink(asio::any_io_executor executor, const Clock& clock, Channel channel,
                     SignalGate& gate, pid_t front)
    : executor_(std::move(executor)),
      clock_(clock),
      front_(front),
      channel_(std::move(channel)),
      channel_readable_(executor_, channel_.fd()),
      signals_(std::make_shared<SignalPump>(executor_, gate)),
      event_(clock.make_event()) {}

void FrontLink::start(Handlers handlers) {
  handlers_ = std::move(handlers);
  spawn(executor_, [self = shared_from_this()] { return self->listen_to_front(); });
  signals_->start([weak = weak_from_this()](const ReceivedSignal& signal) {
    if (const auto self = weak.lock()) self->on_signal(signal);
  });
}

asio::awaitable<bool> FrontLink::may_start(Instant timeout) {
  ask();
  bool in_time = true;
  while (!answered() && !gone_ && in_time) in_time = co_await event_->wait_until(timeout);
  co_return answered() && !gone_;
}

void FrontLink::ask() {
  ++questions_;
  channel_.send({Message::Kind::may_start, questions_, {}});
}

void FrontLink::notify_service(const std::string& name, std::string value) {
  notification_[name] = std::move(value);
  send_notification();
}

void FrontLink::send_notification() {
  if (notifying_ || notification_.empty()) return;
  std::string text;
  for (const auto& [name, value] : notification_) text += name + "=" + value + "\n";
  notifying_ = channel_.send({Message::Kind::notify, 0, std::move(text)});
  notification_.clear();
}

asio::awaitable<void> FrontLink::until_continued() {
  while (!answered() && !gone_) co_await event_->wait_until(Instant::max());
}

asio::awaitable<bool> FrontLink::until_handed_over() {
  while (!handed_over_ && !gone_ && !given_up_) co_await event_->wait_until(Instant::max());
  co_return handed_over_;
}

void FrontLink::give_up_hand_over() {
  given_up_ = true;
  event_->notify();
}

asio::awaitable<void> FrontLink::listen_to_front() {
  while (!gone_) {
    const auto [message, empty] = channel_.receive();
    if (!message && empty == Channel::Empty::nothing_yet) {
      co_await channel_readable_.wait();
    } else if (!message) {
      gone_ = true;
      event_->notify();
      handlers_.front_gone();
    } else if (message->kind == Message::Kind::signal) {
      handlers_.signal(message->number);
    } else if (message->kind == Message::Kind::handed_over) {
      handed_over_ = true;
      event_->notify();
    } else if (message->kind == Message::Kind::notified) {
      notifying_ = false;
      send_notification();
    } else if (message->kind == Message::Kind::go) {
      answers_ = message->number;
      event_->notify();
    }
  }
}

void FrontLink::on_signal(const ReceivedSignal& signal) {
  // The front process acts on the rest: a signal meant for the job must not end us.
  if (signal.number == SIGCHLD) {
    handlers_.child();
  } else if (!signal.from_kernel && signal.sender != front_) {
    got_[signal.number] = clock_.now();
  }
}

bool FrontLink::got_ourselves(int signal) {
  signals_->deliver_pending();
  const auto got = got_.find(signal);
  if (got == got_.end()) return false;
  const bool recent = clock_.now() - got->second <= sweep_memory;
  got_.erase(got);
  return recent;
}

void FrontLink::forget_signals() {
  signals_->deliver_pending();
  got_.clear();
}

}  // namespace redlock::child
