#include "guard/watchdog.hpp"

#include "../in_child.hpp"

namespace redlock::guard {
namespace {

using namespace std::chrono_literals;
using namespace testing;

TEST(Watchdog, ChecksAgainInTimeForTheLargestMargin) {
  in_child([] {
    const auto page = make_shared_page();
    StopPlan plan{.grace = 1s, .margin = 100ms, .max_margin = 4s};
    Watchdog watchdog(plan, *page, nullptr);
    const Instant deadline = BootClock::now() + 1h;
    page->set_deadline(deadline);
    EXPECT_LE(watchdog.next_instant(), deadline - 4s);
    page->set_margin(4s);
    EXPECT_GT(watchdog.next_instant(), deadline - 5s);
    // From then on repeatedly, because nothing else wakes us, but not often.
    page->set_margin(100ms);
    const Instant now = BootClock::now();
    page->set_deadline(now + 4s);
    EXPECT_LT(watchdog.next_instant(), now + 2s);
    EXPECT_GT(watchdog.next_instant(), now + 300ms);
  });
}

}  // namespace
}  // namespace redlock::guard
