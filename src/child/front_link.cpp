#include "child/front_link.hpp"

#include <csignal>

#include "support/spawn.hpp"

namespace redlock::child {

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
      handlers_.signal({message->number, message->sender, message->reached_command});
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
    const Instant now = clock_.now();
    std::erase_if(got_, [now](const auto& got) { return now - got.second > twin_memory; });
    got_[{signal.number, signal.sender}] = now;
    for (Event* const event : twin_awaited_) event->notify();
  }
}

asio::awaitable<bool> FrontLink::gets_too(PassedSignal signal, Instant until) {
  const auto self = shared_from_this();
  const std::unique_ptr<Event> event = clock_.make_event();
  twin_awaited_.insert(event.get());
  bool got = take_twin(signal);
  for (bool in_time = true; !got && in_time; got = take_twin(signal))
    in_time = co_await event->wait_until(until);
  twin_awaited_.erase(event.get());
  co_return got;
}

bool FrontLink::take_twin(const PassedSignal& signal) {
  signals_->deliver_pending();
  const auto got = got_.find({signal.number, signal.sender});
  if (got == got_.end()) return false;
  const bool recent = clock_.now() - got->second <= twin_memory;
  got_.erase(got);
  return recent;
}

void FrontLink::forget_signals() {
  signals_->deliver_pending();
  got_.clear();
}

}  // namespace redlock::child
