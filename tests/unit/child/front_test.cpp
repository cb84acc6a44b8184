#include "child/front.hpp"

#include "in_child.hpp"

namespace redlock::child {
namespace {

using namespace testing;

/// Front in a process of its own, over a holder that says that the command runs until `deadline`, and then does nothing any more.
void guard_hung_holder(const StopPlan& plan, const std::function<void(const Verdict&, Instant deadline)>& then) {
  in_child([&] {
    const InheritedSignals inherited = InheritedSignals::capture();
    SignalGate gate(inherited);
    ProcessTree tree;
    Front front(gate, tree, plan, /*shares_group=*/false, std::nullopt);
    const Instant deadline = BootClock::now() + 2 * plan.margin;
    if (front.fork_holder()) {
      const Channel channel = front.take_channel();
      front.page().set_deadline(deadline);
      channel.send({Message::Kind::started, 0, {}});
      ::alarm(kHangSeconds);
      for (;;) ::pause();
    }
    then(front.guard(), deadline);
    EXPECT_TRUE(tree.nothing_left());
  });
}

StopPlan with_margin(Milliseconds margin, OnLost on_lost = OnLost::kill) {
  StopPlan plan{Duration::zero(), margin};
  plan.stop_signal = SIGTERM;
  plan.on_lost = on_lost;
  return plan;
}

TEST(Front, KillsBeforeTheDeadlineWhatAHungHolderDoesNot) {
  guard_hung_holder(with_margin(Milliseconds(1500)), [](const Verdict& verdict, Instant deadline) {
    EXPECT_LT(BootClock::now(), deadline);
    EXPECT_EQ(verdict.source, Verdict::Source::holder_hung);
  });
}

TEST(Front, LeavesTheHolderTimeToActFirst) {
  const StopPlan plan = with_margin(Milliseconds(400));
  guard_hung_holder(plan, [&](const Verdict&, Instant deadline) { EXPECT_GT(BootClock::now(), deadline - plan.margin); });
}

}  // namespace
}  // namespace redlock::child
