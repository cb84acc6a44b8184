#include "child/supervisor.hpp"

#include <asio/io_context.hpp>

#include "child/signal_pump.hpp"
#include "in_child.hpp"
#include "support/spawn.hpp"

namespace redlock::child {
namespace {

using namespace testing;
using namespace std::chrono_literals;

/// The boot clock, which a test can put forward, as waking from suspend does: waits that have gone by end at once.
class JumpingClock final : public Clock {
 public:
  explicit JumpingClock(asio::any_io_executor executor) : real_(std::move(executor)) {}

  [[nodiscard]] Instant now() const override { return real_.now() + ahead_; }
  [[nodiscard]] Milliseconds wall() const override { return real_.wall(); }
  [[nodiscard]] std::unique_ptr<Bell> make_bell() const override { return std::make_unique<JumpingBell>(*this); }

  void jump(Duration span) {
    ahead_ += span;
    for (Bell* bell : waiting_) bell->ring();
  }

 private:
  class JumpingBell final : public Bell {
   public:
    explicit JumpingBell(const JumpingClock& clock) : clock_(clock), bell_(clock.real_.make_bell()) { clock_.waiting_.push_back(this); }
    ~JumpingBell() override { std::erase(clock_.waiting_, this); }
    JumpingBell(const JumpingBell&) = delete;
    JumpingBell& operator=(const JumpingBell&) = delete;
    void ring() override { bell_->ring(); }
    asio::awaitable<bool> wait_until(Instant when) override {
      const Instant real = when == Instant::max() ? when : when - clock_.ahead_;
      return bell_->wait_until(real);
    }

   private:
    const JumpingClock& clock_;
    std::unique_ptr<Bell> bell_;
  };

  SystemClock real_;
  Duration ahead_{};
  mutable std::vector<Bell*> waiting_;
};

constexpr StopPlan plan{.grace = 5s, .margin = 250ms, .max_margin = 10s, .stop_signal = SIGTERM};
constexpr std::chrono::minutes lease_length{10};

enum class Jump { while_it_runs, when_it_has_ended };

/// A command under a lease of ten minutes, in a process of its own; the clock jumps. What became of it goes to `then`.
void jump(Jump when, const std::string& script, Duration span, const std::function<void(const Ending&)>& then) {
  in_child([&] {
    const InheritedSignals inherited = InheritedSignals::capture();
    SignalGate gate(inherited);
    asio::io_context io;
    JumpingClock clock(io.get_executor());
    const SharedPagePtr page = make_shared_page();
    const auto isolation = Isolation::make(IsolationMode::none, false);
    bool told = false;
    SupervisorEvents events;
    events.ended = [](bool) {};
    events.stopping = [&told](const Delay&) { told = true; };
    Supervisor supervisor(clock, plan, *page, *isolation, std::move(events));
    const auto pump = std::make_shared<SignalPump>(io.get_executor(), gate);
    pump->start([&supervisor](const ReceivedSignal&) { supervisor.on_child(); });

    Pipe ready;
    const StdoutTo out(ready);
    const Command command{"/bin/sh", {"sh", "-c", script}};
    ASSERT_TRUE(supervisor.prepare(command, {{"PATH=/usr/bin:/bin"}, std::nullopt}, inherited));
    supervisor.arm(clock.now() + lease_length);
    ASSERT_EQ(*supervisor.start(), true);
    ready.read(1);
    siginfo_t info{};
    if (when == Jump::when_it_has_ended) { ASSERT_EQ(::waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0); }

    std::optional<Ending> ending;
    redlock::spawn(io.get_executor(), [&]() -> asio::awaitable<void> {
      ending.emplace(co_await supervisor.finish());
      io.stop();
    });
    if (when == Jump::while_it_runs) io.poll();  // it waits now
    clock.jump(span);
    io.run();
    EXPECT_EQ(told, when == Jump::while_it_runs);
    then(*ending);
  });
}

std::string running(const std::string& trap) {
  return trap + "; echo; while :; do sleep 0.01; done";
}

TEST(Supervisor, KillsAtOnceWhenTheClockHasJumpedPastTheDeadline) {
  jump(Jump::while_it_runs, running("trap '' TERM"), lease_length + 1min, [](const Ending& ending) {
    EXPECT_TRUE(ending.lease_gone);
    EXPECT_TRUE(WIFSIGNALED(ending.status));
    EXPECT_EQ(WTERMSIG(ending.status), SIGKILL);
    EXPECT_TRUE(ending.left.empty());
    EXPECT_GE(ending.late, 1min) << "it was dead, but not in time";
  });
}

TEST(Supervisor, TellsTheCommandFirstWhenTheClockHasJumpedIntoTheGrace) {
  jump(Jump::while_it_runs, running("trap 'exit 7' TERM"), lease_length - 3s, [](const Ending& ending) {
    EXPECT_TRUE(ending.lease_gone);
    EXPECT_TRUE(WIFEXITED(ending.status));
    EXPECT_EQ(WEXITSTATUS(ending.status), 7);
    EXPECT_EQ(ending.late, Duration::zero());
  });
}

TEST(Supervisor, AnEndThatWasNotSeenBeforeTheDeadlineIsLate) {
  jump(Jump::when_it_has_ended, "echo", lease_length + 1min, [](const Ending& ending) {
    EXPECT_TRUE(ending.lease_gone) << "it may have run on without its lease";
    EXPECT_GT(ending.late, Duration::zero());
  });
}

}  // namespace
}  // namespace redlock::child
