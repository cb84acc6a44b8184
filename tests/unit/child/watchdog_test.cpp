#include "child/watchdog.hpp"

#include "in_child.hpp"

namespace redlock::child {
namespace {

using namespace std::chrono_literals;
using namespace testing;

TEST(Watchdog, LooksAgainInTimeForTheLargestMargin) {
  in_child([] {
    const auto page = make_shared_page();
    StopPlan plan{.grace = 1s, .margin = 100ms, .max_margin = 4s};
    Watchdog watchdog(plan, *page, nullptr);
    const Instant deadline = BootClock::now() + 1h;
    page->set_deadline(deadline);
    EXPECT_LE(watchdog.next_instant(), deadline - 4s);
    page->set_margin(4s);
    EXPECT_GT(watchdog.next_instant(), deadline - 5s);
    // From then on again and again, as nothing else wakes us.
    page->set_margin(100ms);
    page->set_deadline(BootClock::now() + 3s);
    EXPECT_LT(watchdog.next_instant(), BootClock::now() + 1s);
  });
}

}  // namespace
}  // namespace redlock::child
