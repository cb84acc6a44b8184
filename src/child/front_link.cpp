#include "child/front_link.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "child/control_group.hpp"
#include "support/spawn.hpp"

namespace redlock::child {
namespace {

/// How long the front process may take to say that the command may start. A paused one (^Z) does
/// not answer; the lock is released then.
constexpr Milliseconds go_timeout{500};

/// How long the manager of a control group, which signals its processes one by one, may take from
/// the front process to us. A signal to the front process alone comes so much later.
constexpr Milliseconds sweep_time{30};

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
                     SignalGate& gate, pid_t front, std::optional<pid_t> job_group)
    : executor_(std::move(executor)),
      clock_(clock),
      gate_(gate),
      front_(front),
      job_group_(job_group),
      channel_(std::move(channel)),
      channel_readable_(executor_, channel_.fd()),
      signals_readable_(executor_, gate.fd()),
      event_(clock.make_event()) {}

void FrontLink::start(Handlers handlers, Shield shield) {
  handlers_ = std::move(handlers);
  shield_ = std::move(shield);
  const auto self = shared_from_this();
  if (shield_.pid != 0) spawn(executor_, [self] { return self->listen_to_shield(); });
  spawn(executor_, [self] { return self->listen_to_front(); });
  spawn(executor_, [self] { return self->read_signals(); });
}

// --- What is read ---

asio::awaitable<void> FrontLink::listen_to_front() {
  while (!gone_) {
    const auto [message, empty] = channel_.receive();
    if (message) {
      on_message(*message);
    } else if (empty == Channel::Empty::nothing_yet) {
      co_await channel_readable_.wait();
    } else {
      on_guard_killed(StopReason::front_killed);
    }
  }
}

void FrontLink::on_message(const Message& message) {
  switch (message.kind) {
    case Message::Kind::signal:
      return take_signal({message.number, message.sender, message.reached_job});
    case Message::Kind::go:
      answers_ = message.number;
      return event_->notify();
    case Message::Kind::handed_over:
      handed_over_ = true;
      return event_->notify();
    case Message::Kind::notified:
      notifying_ = false;
      return send_notification();
    default:
      return;  // only we send the others
  }
}

asio::awaitable<void> FrontLink::listen_to_shield() {
  Readable ended(executor_, shield_.lifeline.get());
  co_await ended.wait();
  on_guard_killed(StopReason::shield_killed);
}

asio::awaitable<void> FrontLink::read_signals() {
  for (;;) {
    read_pending_signals();
    co_await signals_readable_.wait();
  }
}

/// The front process acts on most signals: one that is meant for the job must not end us. We only
/// note those that we get as well.
void FrontLink::read_pending_signals() {
  while (const auto signal = gate_.read()) {
    if (signal->number == SIGCHLD) {
      on_child();
    } else if (!signal->from_kernel && signal->sender != front_) {
      const Instant now = clock_.now();
      std::erase_if(got_, [now](const auto& got) { return now - got.second > twin_memory; });
      got_[{signal->number, signal->sender}] = now;
      for (Event* const event : twin_awaited_) event->notify();
    }
  }
}

void FrontLink::on_guard_killed(StopReason which) {
  if (which == StopReason::front_killed) {
    if (std::exchange(gone_, true)) return;
    event_->notify();
  } else if (std::exchange(shield_.pid, 0) == 0) {
    return;
  }
  if (!killed_guard_) killed_guard_ = which;
  if (supervisor_ != nullptr) supervisor_->kill(which);
  handlers_.guard_gone();
}

// --- The start of the command ---

asio::awaitable<bool> FrontLink::may_start() {
  send(Message::Kind::may_start, ++questions_);
  const Instant timeout = clock_.now() + go_timeout;
  bool in_time = true;
  while (!answered() && !gone_ && in_time) in_time = co_await event_->wait_until(timeout);
  co_return answered() && !gone_;
}

asio::awaitable<void> FrontLink::until_continued() {
  while (!answered() && !gone_) co_await event_->wait_until(Instant::max());
  send(Message::Kind::waiting);
}

void FrontLink::command_started(Supervisor& supervisor, SharedPage& page) {
  supervisor_ = &supervisor;
  if (job_group_) page_ = &page;
  // The command was not there to get those.
  read_pending_signals();
  got_.clear();
  send(Message::Kind::started);
}

// --- Signals ---

void FrontLink::take_signal(const PassedSignal& signal) {
  if (supervisor_ != nullptr) {
    spawn(executor_, [self = shared_from_this(), signal] { return self->pass_on(signal); });
  } else if (ends_a_wait(signal.number)) {
    handlers_.wait_ended(signal.number);
  }
}

asio::awaitable<void> FrontLink::pass_on(PassedSignal signal) {
  supervisor_->note_signals(mask_of(signal.number));
  const Reached reached = co_await reached_by(signal);
  if (handlers_.passed_on) handlers_.passed_on(signal.number, reached);
  supervisor_->pass_on(signal.number, reached);
}

/// Who has got the signal from its sender. In doubt none: twice is better than never.
/// A sender that reaches us, outside of the job's process group, as well as the front process picks
/// processes one by one. The manager of our control group leaves none of its processes out, others
/// may have looked for this program.
asio::awaitable<Reached> FrontLink::reached_by(PassedSignal signal) {
  const bool is_managed = is_managed_by(signal.sender, supervisor_->command());
  if (!is_managed && !signal.reached_job) co_return Reached::none;
  // A signal that is not to be passed on is waited for by no process: there is time to see that.
  const Duration time = signal.reached_job ? twin_memory : sweep_time;
  const bool one_by_one = co_await gets_too(signal, clock_.now() + time);
  if (one_by_one) co_return is_managed ? Reached::everything : Reached::none;
  co_return signal.reached_job ? Reached::job : Reached::none;
}

/// Whether this process gets the signal from the same sender, too: until now and not long ago, or
/// by `until`; true as soon as it does. Each signal is reported once. The front process and the
/// holder process share no process group, so it was sent to processes one by one: by the manager
/// of a control group to all that are in it, by `killall`, `fuser -k` or `start-stop-daemon
/// --exec` to those that run this program.
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
  read_pending_signals();
  const auto got = got_.find({signal.number, signal.sender});
  if (got == got_.end()) return false;
  const bool recent = clock_.now() - got->second <= twin_memory;
  got_.erase(got);
  return recent;
}

// --- The command pauses, continues and ends ---

void FrontLink::on_child() {
  if (supervisor_ == nullptr) return;
  siginfo_t info{};
  const auto next_change = [&] {
    info = {};
    return page_ != nullptr &&
           ::waitid(P_PID, static_cast<id_t>(supervisor_->command()), &info,
                    WSTOPPED | WCONTINUED | WNOHANG) == 0 &&
           info.si_pid != 0;
  };
  while (next_change()) {
    // The page first: the front process reads it while its own pause is under way.
    const bool paused = info.si_code == CLD_STOPPED;
    page_->paused_group = paused ? ::getpgid(supervisor_->command()) : 0;
    if (paused) {
      send(Message::Kind::paused, info.si_status);
    } else if (!page_->stopping && !gone_) {
      // Another process continued the command alone; not we, so that it acts on its stop signal.
      ::kill(front_, SIGCONT);
    }
  }
  supervisor_->on_child();
}

void FrontLink::command_ended(bool told_to_end) {
  supervisor_->note_signals(look_at_guards());
  SharedPage* const page = std::exchange(page_, nullptr);
  if (page == nullptr) return;
  const bool was_paused = page->paused_group.exchange(0) != 0;
  send(Message::Kind::ended);

  // It was killed while it was paused: the parent that waits for us must learn that. An end of our
  // own doing is reported when the job continues.
  if (was_paused && !told_to_end && !gone_) ::kill(front_, SIGCONT);
}

/// Looks at the front process and the shield themselves, whose end shows otherwise only once they
/// got a CPU to end. Returns the signals that were sent to the front process, and that it will
/// read.
SignalMask FrontLink::look_at_guards() {
  const auto front = look_at(front_);
  if (front ? front->is_dying : is_hung_up(channel_.fd()))
    on_guard_killed(StopReason::front_killed);
  if (shield_.pid != 0) {
    // It is our parent: when it is not there any more, we have another.
    const auto shield = look_at(shield_.pid);
    if ((shield && shield->is_dying) || ::getppid() != shield_.pid)
      on_guard_killed(StopReason::shield_killed);
  }
  return front ? gate_.readable_of(front->pending) : 0;
}

// --- What the front process is told ---

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

bool FrontLink::report(int exit_code, int signal, std::string text) {
  notifying_ = false;
  send_notification();
  if (signal != 0) return channel_.send({Message::Kind::died, signal, std::move(text)});
  return channel_.send({Message::Kind::exited, exit_code, std::move(text)});
}

asio::awaitable<bool> FrontLink::until_handed_over() {
  while (!handed_over_ && !gone_ && !given_up_) co_await event_->wait_until(Instant::max());
  co_return handed_over_;
}

void FrontLink::give_up_hand_over() {
  given_up_ = true;
  event_->notify();
}

}  // namespace redlock::child
