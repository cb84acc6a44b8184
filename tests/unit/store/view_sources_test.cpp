#include "store/redis/view_sources.hpp"

#include <gtest/gtest.h>

namespace redlock::redis {
namespace {

using Addresses = std::vector<Address>;

const Address a{"10.0.0.1", 7000};
const Address b{"10.0.0.2", 7000};
const Address c{"10.0.0.3", 7000};
const Address d{"10.0.0.4", 7000};

TEST(ViewSources, AreAskedInTheOrderGivenAtFirst) {
  EXPECT_EQ(ViewSources({b, a}).in_order(), (Addresses{b, a}));
}

TEST(ViewSources, BeginWithTheOneInUseAndEndWithThoseThatFailed) {
  ViewSources sources({a, b, c});
  sources.pass_over(a);
  EXPECT_EQ(sources.in_order(), (Addresses{b, c, a}));
  sources.prefer(c);
  EXPECT_EQ(sources.in_order(), (Addresses{c, b, a}));
  sources.pass_over(c);
  EXPECT_EQ(sources.in_order(), (Addresses{b, a, c}));
  sources.prefer(a);
  EXPECT_EQ(sources.in_order(), (Addresses{a, b, c}));
}

TEST(ViewSources, AreThoseConfiguredAndThoseThatTheViewInUseNames) {
  ViewSources sources({a, b});
  sources.pass_over(a);
  sources.learn({c, b});
  EXPECT_EQ(sources.in_order(), (Addresses{b, c, a}));
  sources.pass_over(c);
  sources.learn({d});
  EXPECT_EQ(sources.in_order(), (Addresses{b, d, a}));
}

TEST(ViewSources, AddTheirFaultsUpToSilenceUnlessAllAreOfOneKind) {
  Fault faults;
  add_fault(faults, {FaultKind::denied, "one"});
  EXPECT_EQ(faults.kind, FaultKind::denied);
  add_fault(faults, {FaultKind::denied, "two"});
  EXPECT_EQ(faults.kind, FaultKind::denied);
  add_fault(faults, {FaultKind::unavailable, "three"});
  EXPECT_EQ(faults.kind, FaultKind::silent);
  EXPECT_EQ(faults.text, "one; two; three");
}

}  // namespace
}  // namespace redlock::redis
