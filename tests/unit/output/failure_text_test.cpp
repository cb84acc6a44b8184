#include "output/failure_text.hpp"

#include <gtest/gtest.h>

#include "../samples.hpp"

namespace redlock::output {
namespace {

using namespace std::chrono_literals;
using testing::resource;

TEST(MissingVotesText, NamesTheServersThatDoNotVote) {
  Fault fault;
  fault.text = "timeout after 50ms";
  EXPECT_EQ(missing_votes_text({{"redis://b:6379", fault}}, 5),
            "1 of 5 servers not voting; 2 tolerated: redis://b:6379: timeout after 50ms");
  EXPECT_EQ(missing_votes_text({}, 5), "");
}

TEST(FailureText, SaysThatAServersClockWasSetBack) {
  AttemptFailure failure{};
  failure.why = AcquireDecision::guarded;
  failure.restarted = {{"redis://a", -50min, 51min}};
  const std::string text = failure_text(resource(), failure, 3);
  EXPECT_NE(text.find("the clock of redis://a was set back to before its start; its vote counts in "
                      "51m"),
            std::string::npos)
      << text;
}

TEST(FailureText, AdvisesToUpgradeWhenANewerVersionComesFirst) {
  AttemptFailure failure{};
  failure.why = AcquireDecision::busy;
  failure.queue.newer = true;
  EXPECT_EQ(failure_text(Resource::from("deploy").value(), failure, 3),
            "a newer version waits for it and comes first: upgrade redlock-cli");
}

}  // namespace
}  // namespace redlock::output
