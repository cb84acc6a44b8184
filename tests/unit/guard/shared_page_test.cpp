#include "guard/shared_page.hpp"

#include <gtest/gtest.h>

#include "../in_child.hpp"

namespace redlock::guard {
namespace {

using namespace testing;

constexpr Instant some_instant{std::chrono::hours(7)};

TEST(SharedPage, HasNoDeadlineAtFirst) {
  const auto page = make_shared_page();
  EXPECT_EQ(page->get_deadline(), Instant::max());
  EXPECT_FALSE(page->stopping);
}

TEST(SharedPage, KeepsADeadlineUntilItIsCleared) {
  const auto page = make_shared_page();
  page->set_deadline(some_instant);
  EXPECT_EQ(page->get_deadline(), some_instant);
  page->set_deadline(some_instant + Duration(1));
  EXPECT_EQ(page->get_deadline(), some_instant + Duration(1));
  page->clear_deadline();
  EXPECT_EQ(page->get_deadline(), Instant::max());
}

TEST(SharedPage, IsSharedWithEveryProcessForkedAfterwards) {
  const auto page = make_shared_page();
  EXPECT_EQ(status_of(forked([&page] {
              page->set_deadline(some_instant);
              page->stopping = true;
              return 0;
            })),
            0);
  EXPECT_EQ(page->get_deadline(), some_instant);
  EXPECT_TRUE(page->stopping);
}

TEST(SharedPage, PagesAreIndependent) {
  const auto first = make_shared_page();
  const auto second = make_shared_page();
  first->set_deadline(some_instant);
  EXPECT_EQ(second->get_deadline(), Instant::max());
}

}  // namespace
}  // namespace redlock::guard
