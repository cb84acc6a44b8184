#include "child/front_link.hpp"

#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "support/spawn.hpp"

namespace redlock::child {
namespace {

/// How long we look at a process that runs: it may be about to take a signal, which shows nowhere
/// in between.
constexpr Milliseconds look_timeout{2};
constexpr std::chrono::microseconds look_interval{50};

/// The state of a process, once it shows whether it is about to take a signal.
std::optional<SignalState> look_at(pid_t pid) {
  const Instant limit = BootClock::now() + look_timeout;
  for (;;) {
    const auto state = signal_state(pid);
    if (!state || state->is_dying || state->is_settled || BootClock::now() >= limit) return state;
    std::this_thread::sleep_for(look_interval);
  }
}

bool is_hung_up(int fd) noexcept {
  pollfd closed{fd, POLLRDHUP, 0};
  return ::poll(&closed, 1, 0) == 1;
}

}  // namespace

FrontLink::FrontLink(asio::any_io_executor executor, const Clock& clock, Channel channel,
                     SignalGate& gate, pid_t front)
    : executor_(std::move(executor)),
      clock_(clock),
      gate_(gate),
      front_(front),
      channel_(std::move(channel)),
      channel_readable_(executor_, channel_.fd()),
      signals_(std::make_shared<SignalPump>(executor_, gate)),
      event_(clock.make_event()) {}

void FrontLink::start(Handlers handlers, Shield shield) {
  handlers_ = std::move(handlers);
  shield_ = std::move(shield);
  if (shield_.pid != 0)
    spawn(executor_, [self = shared_from_this()] { return self->listen_to_shield(); });
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
      on_front_gone();
    } else if (message->kind == Message::Kind::signal) {
      handlers_.signal({message->number, message->sender, message->reached_job});
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

void FrontLink::on_front_gone() {
  if (std::exchange(gone_, true)) return;
  event_->notify();
  handlers_.front_gone();
}

asio::awaitable<void> FrontLink::listen_to_shield() {
  Readable ended(executor_, shield_.lifeline.get());
  co_await ended.wait();
  on_shield_gone();
}

void FrontLink::on_shield_gone() {
  if (std::exchange(shield_.pid, 0) != 0) handlers_.shield_gone();
}

SignalMask FrontLink::look_at_guards() {
  const auto front = look_at(front_);
  if (front ? front->is_dying : is_hung_up(channel_.fd())) on_front_gone();
  if (shield_.pid != 0) {
    // It is our parent: when it is not there any more, we have another.
    const auto shield = look_at(shield_.pid);
    if ((shield && shield->is_dying) || ::getppid() != shield_.pid) on_shield_gone();
  }
  return front ? gate_.readable_of(front->pending) : 0;
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
