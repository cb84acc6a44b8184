#include "output/lock_text.hpp"

#include <gtest/gtest.h>

namespace redlock::output {
namespace {

TEST(InspectionText, DoesNotReportFreeAndThenNameHolders) {
  // One of three servers still has a slot that the others have lost.
  Taken taken;
  taken.holder.shared = true;
  taken.parties.shares = 1;
  taken.parties.first_shares.push_back({Holder(), 0});
  const Inspection inspection = summarize({Free{}, taken, Free{}});
  EXPECT_EQ(inspection_text(inspection),
            "free, except for what is left on less than a quorum of servers:");
  EXPECT_EQ(inspection_text(summarize({Free{}, Free{}, Free{}})), "free");
}

}  // namespace
}  // namespace redlock::output
