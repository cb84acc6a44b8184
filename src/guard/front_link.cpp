#include "guard/front_link.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "proc/control_group.hpp"
#include "support/spawn.hpp"
#include "support/trace.hpp"

namespace redlock::guard {
namespace {

/// How long the front process may take to answer may_start. A paused one (^Z) does not answer; then
/// the lock is released.
constexpr Milliseconds go_timeout{500};

/// How much time may pass between the signal to the front process and the one to us when the
/// manager of a control group signals its processes one by one. A signal that only the front
/// process received is passed on with this delay.
constexpr Milliseconds sweep_timeout{30};

/// How often to check whether a sender walks the process tree.
constexpr Milliseconds walk_interval{3};

/// How long to poll a running process: it may be receiving a signal that no longer shows as
/// pending.
constexpr Milliseconds state_timeout{2};
constexpr std::chrono::microseconds state_interval{50};

/// The state of a process, once it is settled or dying, or the timeout has passed.
std::optional<proc::SignalState> settled_state(pid_t pid) {
  const auto is_final = [](const auto& state) {
    return !state || state->is_dying || state->is_settled;
  };
  auto state = proc::signal_state(pid);
  if (is_final(state)) return state;
  const Instant limit = BootClock::now() + state_timeout;
  do {
    std::this_thread::sleep_for(state_interval);
    state = proc::signal_state(pid);
  } while (!is_final(state) && BootClock::now() < limit);
  return state;
}

std::string word_of(Reached reached) {
  switch (reached) {
    case Reached::none:
      return "none";
    case Reached::job:
      return "the job";
    case Reached::everything:
      break;
  }
  return "everything";
}

bool is_hung_up(int fd) noexcept {
  pollfd closed{fd, POLLRDHUP, 0};
  return ::poll(&closed, 1, 0) == 1;
}

}  // namespace

FrontLink::FrontLink(asio::any_io_executor executor, const Clock& clock, Interrupt& interrupt,
                     Channel channel, SignalGate& gate, pid_t front, std::optional<pid_t> job_group)
    : executor_(std::move(executor)),
      clock_(clock),
      interrupt_(interrupt),
      gate_(gate),
      front_(front),
      job_group_(job_group),
      channel_(std::move(channel)),
      channel_readable_(executor_, channel_.fd()),
      signals_readable_(executor_, gate.fd()),
      event_(clock.make_event()) {}

void FrontLink::start(Shield shield) {
  shield_ = std::move(shield);
  const auto self = shared_from_this();
  if (shield_.pid != 0) spawn(executor_, [self] { return self->listen_to_shield(); });
  spawn(executor_, [self] { return self->listen_to_front(); });
  spawn(executor_, [self] { return self->read_signals(); });
}

// --- Reading ---

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

/// The front process handles all signals but SIGCHLD: one that is meant for the job must not end
/// us. We only note those that we receive as well (see gets_too()).
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
  if (is_traced())
    trace("guard",
          which == StopReason::front_killed ? "the front process is gone" : "the shield is gone");
  if (!killed_guard_) killed_guard_ = which;
  if (supervisor_ != nullptr) supervisor_->kill(which);
  interrupt_.raise();
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
  // Signals that came before the command could receive them do not count.
  read_pending_signals();
  got_.clear();
  send(Message::Kind::started);
}

// --- Signals ---

void FrontLink::take_signal(const PassedSignal& signal) {
  if (supervisor_ != nullptr) {
    spawn(executor_, [self = shared_from_this(), signal] { return self->pass_on(signal); });
  } else if (ends_a_wait(signal.number)) {
    wait_ended_by_ = signal.number;
    interrupt_.raise();
  }
}

asio::awaitable<void> FrontLink::pass_on(PassedSignal signal) {
  supervisor_->note_signals(proc::mask_of(signal.number));
  const Reached reached = co_await reached_by(signal);
  if (is_traced()) trace("signal", signal_name(signal.number) + " has reached " + word_of(reached));
  supervisor_->pass_on(signal.number, reached);
}

/// Which processes the sender has reached. In doubt none, because a signal that arrives twice is
/// better than one that never arrives.
///
/// We are outside the job's process group. So a sender that reaches us as well as the front process
/// signals processes one by one. The manager of our control group signals all processes in it, and
/// one who walks the process tree all that are below; other senders may have selected those that
/// run this program.
asio::awaitable<Reached> FrontLink::reached_by(PassedSignal signal) {
  const bool is_managed = proc::is_managed_by(signal.sender, supervisor_->command());

  // If the signal has reached the job already, passing it on is not urgent, so there is more time.
  // Who walks the tree takes no longer than the front process, which has waited.
  Duration time = is_managed ? sweep_timeout : Milliseconds(0);
  if (signal.reached_job) time = twin_memory;
  const bool one_by_one = co_await gets_too(signal, clock_.now() + time);
  if (one_by_one && is_traced())
    trace("signal", signal_name(signal.number) + ": the holder process got it, too");
  if (!one_by_one) co_return signal.reached_job ? Reached::job : Reached::none;
  if (is_managed) co_return Reached::everything;
  const bool walked = co_await is_walk(signal.number);
  if (walked && is_traced())
    trace("signal", signal_name(signal.number) + ": its sender walks the process tree");
  co_return walked ? Reached::everything : Reached::none;
}

/// Whether this process receives the signal from the same sender, too: it has done so recently, or
/// does so by `until`. Returns as soon as it does. Each signal that we receive counts once. The
/// front process and the holder process share no process group, so it was sent to processes one by
/// one: by the manager of a control group to all that are in it; by `killall`, `fuser -k` or
/// `start-stop-daemon --exec` to those that run this program.
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

/// The tree witness may get the signal last, and takes a moment to die.
asio::awaitable<bool> FrontLink::is_walk(int signal) {
  const auto self = shared_from_this();
  const Instant until = clock_.now() + sweep_timeout;
  bool is_seen = supervisor_->was_walked(signal);
  while (!is_seen && clock_.now() < until) {
    co_await sleep_until(clock_, clock_.now() + walk_interval);
    is_seen = supervisor_->was_walked(signal);
  }
  co_return is_seen;
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
    // Set the page first: the front process reads it while it pauses itself.
    const bool paused = info.si_code == CLD_STOPPED;
    page_->paused_group = paused ? ::getpgid(supervisor_->command()) : 0;
    if (paused) {
      send(Message::Kind::paused, info.si_status);
    } else if (!page_->stopping && !gone_) {
      // Another process has continued the command alone. (If we did, it was to let it handle the
      // stop signal.)
      ::kill(front_, SIGCONT);
    }
  }
  supervisor_->on_child();
}

void FrontLink::command_ended(bool got_stop_signal) {
  if (const auto signals = check_guards(); signals != 0) supervisor_->note_signals(signals);

  SharedPage* const page = std::exchange(page_, nullptr);
  if (page == nullptr) return;
  const bool was_paused = page->paused_group.exchange(0) != 0;
  send(Message::Kind::ended);

  // The command was killed while it was paused: continue the front process, so that its parent
  // learns of the end. If we stopped the command, that waits until the job is continued.
  if (was_paused && !got_stop_signal && !gone_) ::kill(front_, SIGCONT);
}

/// Checks the state of the front process and the shield in /proc, because a killed process closes
/// its descriptors only once it gets a CPU. Returns the pending signals of the front process that
/// it will read.
proc::SignalMask FrontLink::check_guards() {
  const auto front = settled_state(front_);
  if (front ? front->is_dying : is_hung_up(channel_.fd()))
    on_guard_killed(StopReason::front_killed);
  if (shield_.pid != 0) {
    // The shield is our parent: once it is dead, we have another one.
    const auto shield = settled_state(shield_.pid);
    if ((shield && shield->is_dying) || ::getppid() != shield_.pid)
      on_guard_killed(StopReason::shield_killed);
  }
  return front ? gate_.readable_of(front->pending) : 0;
}

// --- Reports to the front process ---

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

}  // namespace redlock::guard
