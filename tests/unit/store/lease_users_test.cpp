// The users of a lease (PROTOCOL U1-U5), at the embedded engine and at a real Redis.
#include <sstream>

#include "../samples.hpp"
#include "script_stores.hpp"
#include "store/owner_record.hpp"
#include "support/digest.hpp"

namespace redlock {
namespace {

using namespace testing;
using namespace std::chrono_literals;

enum class UsedLease { exclusive, shared, slots };

class LeaseUsersTest : public ::testing::TestWithParam<std::tuple<ScriptStoreKind, UsedLease>> {
 protected:
  [[nodiscard]] Hold hold() const {
    const UsedLease kind = std::get<UsedLease>(GetParam());
    if (kind == UsedLease::exclusive) return {};
    return {true, kind == UsedLease::slots ? Slots{0, 2} : Slots{}};
  }
  [[nodiscard]] Mode mode() const {
    const UsedLease kind = std::get<UsedLease>(GetParam());
    if (kind == UsedLease::slots) return {true, 3, 2};
    return {kind == UsedLease::shared};
  }
  static LeaseUser user(char digit) {
    Owner owner = some_owner();
    owner.command = std::string("step-") + digit;
    return {std::string("user") + digit, encode_owner(owner)};
  }

  template <class Vote>
  Vote done(asio::awaitable<Vote> question) {
    return drive_.run(std::move(question));
  }

  void acquire(Ttl length = ttl(60s)) {
    Owner owner = some_owner();
    owner.take = mode().take;
    if (is_renewed_) owner.renewed_for = length.length();
    AcquireRequest request{deploy(), token(), length, owner, mode(), hold().slots};
    const AcquireVote vote = done(server_.acquire(request, drive_.soon()));
    ASSERT_TRUE(answers<Granted>(vote));
  }
  bool is_acquired_by_another() {
    return answers<Granted>(
        done(server_.acquire({deploy(), token('b'), ttl(), some_owner()}, drive_.soon())));
  }
  ExtendVote extend(std::optional<LeaseUser> as, bool is_new = false, Ttl length = ttl(30s)) {
    return done(server_.extend({deploy(), token(), length, hold().slots, {}, std::move(as), is_new},
                               drive_.soon()));
  }
  bool joins(char digit, Ttl length = ttl(30s)) {
    return answers<Extended>(extend(user(digit), /*is_new=*/true, length));
  }
  bool is_renewed(char digit) { return answers<Extended>(extend(user(digit))); }
  HealVote heal(std::optional<LeaseUser> as, bool supervised = false) {
    Owner owner = some_owner();
    owner.take = mode().take;
    const Provenance known{1500ms, supervised, encode_owner(owner)};
    return done(server_.heal({deploy(), token(), ttl(), Fence(7), known, hold(), std::move(as)},
                             drive_.soon()));
  }
  ReleaseVote release(bool by_hand = false, Duration expire_in = {}) {
    ReleaseRequest request{deploy(), token(), by_hand, expire_in};
    request.may_have_users = true;
    request.tombstone_life = tombstone_life_;
    request.stop_users = stop_users_;
    request.run = run_;
    return done(server_.release(request, drive_.soon()));
  }
  /// As a run with --min-hold ends.
  ReleaseVote end_for_a_while(Duration expire_in) {
    ReleaseRequest request{deploy(), token(), /*by_hand=*/false, expire_in};
    request.finished = some_owner();
    request.finished->take = mode().take;
    request.finished->finished = Finished{expire_in, 0, {}};
    return done(server_.release(request, drive_.soon()));
  }
  /// By an hour: what was to expire does so an hour later.
  void set_clock_back() {
    const std::vector<std::string> keys{deploy().key(), helper_.owner(), helper_.readers(),
                                        helper_.shares(), helper_.slots()};
    for (const std::string& key : keys) {
      const std::int64_t rest = store_->run({"PTTL", key}).integer;
      if (rest > 0) store_->run({"PEXPIRE", key, std::to_string(rest + 3'600'000)});
    }
    const std::string record = hold().shared ? helper_.shares() : helper_.owner();
    const std::string field = hold().shared ? "users:" + sha1_hex(token().secret()) : "users";
    std::istringstream users(store_->run({"HGET", record, field}).text);
    std::string moved;
    for (std::string line; std::getline(users, line); moved += line + "\n") {
      std::istringstream words(line);
      std::string id;
      std::int64_t ends = 0;
      if (words >> id >> ends) {
        std::string rest;
        std::getline(words, rest);
        line = id + " " + std::to_string(ends + 3'600'000) + rest;
      }
    }
    if (!moved.empty()) store_->run({"HSET", record, field, moved});
    for (const Reply& id : store_->run({"ZRANGE", helper_.readers(), "0", "-1"}).elements) {
      const Reply ends = store_->run({"ZSCORE", helper_.readers(), id.text});
      store_->run(
          {"ZADD", helper_.readers(), std::to_string(std::stoll(ends.text) + 3'600'000), id.text});
    }
  }
  ReleaseVote end(char digit) {
    ReleaseRequest request{deploy(), token()};
    request.user = user(digit).id;
    return done(server_.release(request, drive_.soon()));
  }
  InspectVote inspect() { return done(server_.inspect(deploy(), std::nullopt, drive_.soon())); }
  /// As `status` shows it.
  Owner shown_owner() {
    const InspectVote vote = inspect();
    const auto* taken = std::get_if<Taken>(&vote);
    return taken != nullptr ? taken->holder.owner.value_or(Owner()) : Owner();
  }
  bool is_free() { return answers<Free>(inspect()); }
  std::int64_t pttl() { return store_->run({"PTTL", deploy().key()}).integer; }
  std::size_t number_of_users() {
    const InspectVote vote = inspect();
    const auto* taken = std::get_if<Taken>(&vote);
    return taken != nullptr ? taken->holder.users.size() : 0;
  }
  bool knows_release(const ExtendVote& vote) {
    const auto* not_ours = std::get_if<NotOurs>(&vote);
    return not_ours != nullptr && not_ours->why == NotOurs::Why::released;
  }
  /// The record of the lease alone, not the lock.
  void lose_record() { store_->run({"DEL", hold().shared ? helper_.shares() : helper_.owner()}); }

  Drive drive_;
  std::unique_ptr<ScriptStore> store_ = std::get<ScriptStoreKind>(GetParam()).make(drive_);
  LockServer& server_ = store_->client();
  HelperKeys helper_{deploy()};
  std::optional<StopRequest> stop_users_;
  Duration tombstone_life_{};
  bool is_renewed_ = true;  ///< by its keeper
  std::optional<RunRecord> run_;
};

std::string name_of_used_lease(
    const ::testing::TestParamInfo<std::tuple<ScriptStoreKind, UsedLease>>& about) {
  constexpr std::array kinds{"Exclusive", "Shared", "Slots"};
  return std::string(std::get<ScriptStoreKind>(about.param).name) +
         kinds.at(static_cast<std::size_t>(std::get<UsedLease>(about.param)));
}

INSTANTIATE_TEST_SUITE_P(Store, LeaseUsersTest,
                         ::testing::Combine(::testing::ValuesIn(script_stores),
                                            ::testing::Values(UsedLease::exclusive,
                                                              UsedLease::shared, UsedLease::slots)),
                         name_of_used_lease);

// --- A server's clock that was set back (PROTOCOL R4) ---

TEST_P(LeaseUsersTest, AClockThatWasSetBackLetsTheLeaseLastForTheLongestTtlRequestedOfIt) {
  acquire(ttl(60s));
  set_clock_back();
  ASSERT_GT(pttl(), 59 * 60'000);
  EXPECT_TRUE(answers<Extended>(extend(std::nullopt, false, ttl(10s))));
  EXPECT_LE(pttl(), 60'000);
  EXPECT_GT(pttl(), 50'000) << "not its own ttl";

  EXPECT_TRUE(answers<Extended>(extend(std::nullopt, false, ttl(10min))));
  set_clock_back();
  EXPECT_TRUE(answers<Extended>(extend(std::nullopt, false, ttl(10s))));
  EXPECT_LE(pttl(), 10 * 60'000);
  EXPECT_GT(pttl(), 9 * 60'000);
}

TEST_P(LeaseUsersTest, AnExtensionBesideALongerOneByHandShortensNothing) {
  acquire(ttl(60s));
  EXPECT_TRUE(answers<Extended>(extend(std::nullopt, false, ttl(1h))));
  EXPECT_TRUE(answers<Extended>(extend(std::nullopt, false, ttl(60s))));
  EXPECT_GT(pttl(), 59 * 60'000);
}

TEST_P(LeaseUsersTest, NothingIsShortenedBelowTheEndOfAUser) {
  acquire(ttl(60s));
  set_clock_back();
  ASSERT_TRUE(joins('1', ttl(60s)));
  EXPECT_LE(pttl(), 60'000);
  ASSERT_TRUE(joins('2', ttl(20min)));
  set_clock_back();
  EXPECT_TRUE(is_renewed('1'));
  EXPECT_GT(pttl(), 79 * 60'000) << "the end of the other, which its server moved away";
  EXPECT_TRUE(is_renewed('2'));
  EXPECT_LE(pttl(), 20 * 60'000);
  EXPECT_GT(pttl(), 19 * 60'000);
}

TEST_P(LeaseUsersTest, AUserDoesNotRelyOnAnEndThatAClockSetBackHasMovedAway) {
  acquire(ttl(60s));
  ASSERT_TRUE(joins('1'));
  ASSERT_TRUE(joins('2'));
  set_clock_back();
  const ExtendVote vote = extend(user('1'));
  ASSERT_TRUE(answers<Extended>(vote));
  EXPECT_LE(std::get<Extended>(vote).remaining, 60s);
  EXPECT_GT(std::get<Extended>(vote).remaining, 50s);
  EXPECT_GT(pttl(), 59 * 60'000) << "the other may rely on it";
  EXPECT_TRUE(is_renewed('2'));
  EXPECT_LE(pttl(), 60'000);
}

TEST_P(LeaseUsersTest, NothingIsShortenedThatWasKeptForLonger) {
  acquire(ttl(60s));
  EXPECT_TRUE(answers<Released>(end_for_a_while(30min)));
  EXPECT_TRUE(answers<Extended>(extend(std::nullopt)));
  EXPECT_GT(pttl(), 29 * 60'000);
}

TEST_P(LeaseUsersTest, NothingIsShortenedIfTheRecordWasLost) {
  if (hold().shared) return;  // without its data a share is not extended
  acquire(ttl(60s));
  set_clock_back();
  lose_record();
  EXPECT_TRUE(answers<Extended>(extend(std::nullopt)));
  EXPECT_GT(pttl(), 59 * 60'000);
  EXPECT_TRUE(answers<Healed>(heal(std::nullopt)));
  EXPECT_TRUE(answers<Extended>(extend(std::nullopt)));
  EXPECT_GT(pttl(), 59 * 60'000);
}

// --- Its end, and that of the lease ---

TEST_P(LeaseUsersTest, AUserMayRelyOnTheEndOfTheLeaseAsItIsNow) {
  acquire(ttl(1h));
  const ExtendVote vote = extend(user('1'), /*is_new=*/true);
  ASSERT_TRUE(answers<Extended>(vote));
  EXPECT_GT(std::get<Extended>(vote).remaining, 59min);
  release();
  EXPECT_GT(pttl(), 59 * 60'000) << "the user may be cut off until then";
}

TEST_P(LeaseUsersTest, AUserKeepsALeaseThatItsKeeperDoesNotRenew) {
  acquire(ttl(10s));
  const ExtendVote vote = extend(user('1'), /*is_new=*/true);
  ASSERT_TRUE(answers<Extended>(vote));
  EXPECT_GT(std::get<Extended>(vote).remaining, 29s);
  EXPECT_GT(pttl(), 29'000);
}

TEST_P(LeaseUsersTest, TheEndOfAUserLeavesTheLeaseToItsKeeper) {
  acquire();
  ASSERT_TRUE(joins('1'));
  EXPECT_TRUE(answers<Released>(end('1')));
  EXPECT_EQ(number_of_users(), 0U);
  EXPECT_FALSE(is_free());
  EXPECT_TRUE(answers<Extended>(extend(std::nullopt)));
  EXPECT_TRUE(answers<Released>(release()));
  EXPECT_TRUE(is_free());
}

TEST_P(LeaseUsersTest, AReleaseOfTheKeeperLeavesTheLeaseToItsUsers) {
  for (const bool by_hand : {false, true}) {
    acquire();
    ASSERT_TRUE(joins('1'));
    EXPECT_TRUE(answers<Released>(release(by_hand)));
    EXPECT_FALSE(is_acquired_by_another());
    EXPECT_TRUE(is_renewed('1'));
    EXPECT_TRUE(answers<Released>(end('1')));
    EXPECT_TRUE(is_free());
    store_->clear();
  }
}

TEST_P(LeaseUsersTest, TheLastUserFreesALeaseThatItsKeeperHasLeft) {
  acquire();
  ASSERT_TRUE(joins('1'));
  ASSERT_TRUE(joins('2'));
  EXPECT_EQ(number_of_users(), 2U);
  EXPECT_TRUE(answers<Released>(release()));
  EXPECT_TRUE(answers<Released>(end('2')));
  EXPECT_FALSE(is_free());
  EXPECT_TRUE(is_renewed('1'));
  EXPECT_TRUE(answers<Released>(end('1')));
  EXPECT_TRUE(is_acquired_by_another());
}

TEST_P(LeaseUsersTest, OfTheEndsThatRemainTheLargestCounts) {
  acquire(ttl(20s));
  ASSERT_TRUE(joins('1', ttl(40s)));
  ASSERT_TRUE(joins('2', ttl(80s)));
  EXPECT_TRUE(answers<Released>(release()));
  EXPECT_GT(pttl(), 79'000);
  EXPECT_TRUE(answers<Released>(end('2')));
  EXPECT_LE(pttl(), 40'000);
  EXPECT_GT(pttl(), 39'000);
}

TEST_P(LeaseUsersTest, TheLastUserTakesItsEndWithIt) {
  acquire(ttl(20s));
  ASSERT_TRUE(joins('1', ttl(1h)));
  ASSERT_TRUE(joins('2', ttl(40s)));
  EXPECT_GT(pttl(), 59 * 60'000);
  EXPECT_TRUE(answers<Released>(end('1')));
  EXPECT_GT(pttl(), 59 * 60'000) << "on which the other relies";
  EXPECT_TRUE(answers<Released>(end('2')));
  EXPECT_GT(pttl(), 18'000);
  EXPECT_LE(pttl(), 20'000);
  EXPECT_FALSE(is_free());
}

TEST_P(LeaseUsersTest, ALeaseThatNoProcessKeepsLastsAsItsUserRenewedIt) {
  is_renewed_ = false;
  acquire(ttl(20s));
  ASSERT_TRUE(joins('1', ttl(1h)));
  EXPECT_TRUE(answers<Released>(end('1')));
  EXPECT_GT(pttl(), 59 * 60'000) << "for the next step of the script";
}

TEST_P(LeaseUsersTest, TheLeaseNeverEndsBeforeWhatItsKeeperWasPromised) {
  acquire(ttl(20s));
  ASSERT_TRUE(joins('1', ttl(1h)));
  ASSERT_TRUE(answers<Extended>(extend(std::nullopt, false, ttl(90s))));
  ASSERT_TRUE(answers<Extended>(extend(std::nullopt, false, ttl(30s))));
  ASSERT_TRUE(is_renewed('1'));
  EXPECT_TRUE(answers<Released>(end('1')));
  EXPECT_GT(pttl(), 88'000);
  EXPECT_LE(pttl(), 90'000);
}

TEST_P(LeaseUsersTest, ALeaseWhoseRecordWasLostIsNotShortened) {
  if (std::get<UsedLease>(GetParam()) == UsedLease::slots) return;
  acquire(ttl(20s));
  ASSERT_TRUE(joins('1', ttl(1h)));
  lose_record();
  EXPECT_TRUE(is_renewed('1'));
  EXPECT_TRUE(answers<Released>(end('1')));
  EXPECT_GT(pttl(), 59 * 60'000);
}

TEST_P(LeaseUsersTest, TheRestOfMinHoldOutlastsTheUsers) {
  acquire();
  ASSERT_TRUE(joins('1'));
  EXPECT_TRUE(answers<Released>(release(/*by_hand=*/false, 100s)));
  EXPECT_GT(pttl(), 99'000);
  EXPECT_FALSE(shown_owner().finished) << "the user works";
  EXPECT_TRUE(answers<Released>(end('1')));
  EXPECT_FALSE(is_free());
  EXPECT_GT(pttl(), 98'000);
  ASSERT_TRUE(shown_owner().finished);
  EXPECT_GT(shown_owner().finished->expire_in, 98s);
}

// --- What the keeper and others learn ---

TEST_P(LeaseUsersTest, TheKeeperLearnsThatTheLeaseWasReleased) {
  acquire();
  ASSERT_TRUE(joins('1'));
  EXPECT_TRUE(answers<Released>(release(/*by_hand=*/true)));
  EXPECT_TRUE(knows_release(extend(std::nullopt)));
  EXPECT_TRUE(answers<NotOurs>(heal(std::nullopt)));
  EXPECT_TRUE(answers<Released>(end('1')));
  EXPECT_TRUE(knows_release(extend(std::nullopt)));
  EXPECT_TRUE(answers<NotOurs>(heal(std::nullopt)));
  EXPECT_TRUE(is_free());
}

TEST_P(LeaseUsersTest, ARepeatedReleaseChangesNothing) {
  acquire();
  ASSERT_TRUE(joins('1'));
  EXPECT_TRUE(answers<Released>(release()));
  EXPECT_TRUE(answers<NotOurs>(release()));
  EXPECT_TRUE(is_renewed('1'));
  EXPECT_TRUE(answers<Released>(end('1')));
  EXPECT_TRUE(is_acquired_by_another());
  EXPECT_TRUE(answers<NotOurs>(release()));
  EXPECT_TRUE(answers<NotOurs>(end('1')));
  EXPECT_FALSE(is_free());
}

TEST_P(LeaseUsersTest, NoUserComesOnceTheKeeperHasLeft) {
  acquire();
  ASSERT_TRUE(joins('1'));
  EXPECT_TRUE(answers<Released>(release()));
  EXPECT_TRUE(knows_release(extend(user('2'), /*is_new=*/true)));
  EXPECT_EQ(number_of_users(), 1U);
}

TEST_P(LeaseUsersTest, AUserThatThisServerMissedIsKnownFromItsNextRenewalOn) {
  acquire();
  ASSERT_TRUE(joins('1'));
  EXPECT_TRUE(answers<Released>(release()));
  EXPECT_TRUE(is_renewed('2'));
  EXPECT_TRUE(answers<Released>(end('1')));
  EXPECT_FALSE(is_free());
  EXPECT_TRUE(answers<Released>(end('2')));
  EXPECT_TRUE(is_free());
}

TEST_P(LeaseUsersTest, AStopRequestReachesTheUsersThatAKeeperLeaves) {
  acquire();
  ASSERT_TRUE(joins('1'));
  stop_users_ = StopRequest{"web1", "alice", "--max-hold 2h has ended"};
  EXPECT_TRUE(answers<Released>(release()));
  const ExtendVote vote = extend(user('1'));
  ASSERT_TRUE(answers<Extended>(vote));
  ASSERT_TRUE(std::get<Extended>(vote).stop_request);
  EXPECT_EQ(std::get<Extended>(vote).stop_request->reason, "--max-hold 2h has ended");
}

TEST_P(LeaseUsersTest, ALeaseThatIsLeftToUsersHasTheRunOfItsKeeperOnRecord) {
  acquire();
  ASSERT_TRUE(joins('1'));
  run_ = RunRecord{PastRun{Fence(7), 2s, 1s, 0s, "released", 0}, Instant(), /*success=*/true};
  const ReleaseVote left = release();
  ASSERT_TRUE(answers<Released>(left));
  EXPECT_TRUE(std::get<Released>(left).recorded);
  EXPECT_TRUE(std::get<Released>(left).left_to_users);
  const ReleaseVote ended = end('1');
  ASSERT_TRUE(answers<Released>(ended));
  EXPECT_FALSE(std::get<Released>(ended).left_to_users);
  EXPECT_TRUE(is_free());
}

TEST_P(LeaseUsersTest, TheUsersAreShownToWhoAsksTheHolderToStop) {
  acquire();
  ASSERT_TRUE(joins('1'));
  AskRequest question{deploy(), LeaseId{sha1_hex(token().secret())}};
  question.request = StopRequest{"web2", "bob", "why"};
  const InspectVote vote = done(server_.ask_holder(question, drive_.soon()));
  ASSERT_TRUE(answers<Taken>(vote));
  const auto& users = std::get<Taken>(vote).holder.users;
  ASSERT_EQ(users.size(), 1U);
  EXPECT_EQ(users[0].owner->command, "step-1");
  const ExtendVote told = extend(user('1'));
  ASSERT_TRUE(answers<Extended>(told));
  EXPECT_TRUE(std::get<Extended>(told).stop_request);
}

TEST_P(LeaseUsersTest, ABreakEndsTheLeaseOfItsUsers) {
  acquire();
  ASSERT_TRUE(joins('1'));
  EXPECT_TRUE(answers<Released>(release()));
  EXPECT_TRUE(answers<Broken>(done(server_.break_lock({deploy()}, drive_.soon()))));
  EXPECT_TRUE(is_free());
  EXPECT_TRUE(answers<NotOurs>(extend(user('1'))));
  EXPECT_TRUE(answers<NotOurs>(heal(user('1')))) << "a lease that was broken stays so";
  EXPECT_TRUE(is_free());
}

// --- What a server lost ---

TEST_P(LeaseUsersTest, AUserRestoresTheLeaseAndItsEntry) {
  acquire();
  ASSERT_TRUE(joins('1'));
  store_->clear();
  EXPECT_TRUE(answers<Healed>(heal(user('1'))));
  EXPECT_EQ(number_of_users(), 1U);
  EXPECT_TRUE(is_renewed('1'));
  EXPECT_TRUE(answers<Released>(release()));
  EXPECT_FALSE(is_free());
}

TEST_P(LeaseUsersTest, AUserRestoresALeaseThatItsKeeperReleasedHere) {
  acquire();
  EXPECT_TRUE(answers<Released>(release(/*by_hand=*/true)));
  ASSERT_TRUE(is_free());
  const ExtendVote gone = extend(user('1'));
  ASSERT_TRUE(answers<NotOurs>(gone));
  EXPECT_EQ(std::get<NotOurs>(gone).why, NotOurs::Why::gone) << "of the keeper's end only";
  EXPECT_TRUE(answers<Healed>(heal(user('1'))));
  EXPECT_TRUE(is_renewed('1'));
  EXPECT_TRUE(knows_release(extend(std::nullopt)));
  EXPECT_TRUE(answers<Released>(end('1')));
  EXPECT_TRUE(is_free());
}

TEST_P(LeaseUsersTest, ALeaseThatAUserRestoredAfterAReleaseWithoutUsersEndsWithTheUser) {
  acquire();
  EXPECT_TRUE(answers<Released>(release()));
  ASSERT_TRUE(is_free());
  EXPECT_TRUE(answers<Healed>(heal(user('1'))));
  EXPECT_TRUE(answers<NotOurs>(heal(std::nullopt)));
  EXPECT_TRUE(answers<Released>(end('1')));
  EXPECT_TRUE(is_free());
}

TEST_P(LeaseUsersTest, ALeaseThatWasNotHereWhenItWasReleasedEndsWithTheUserThatRestoresIt) {
  tombstone_life_ = 30s;
  EXPECT_TRUE(answers<NotOurs>(release()));
  EXPECT_TRUE(answers<Healed>(heal(user('1'))));
  EXPECT_TRUE(answers<Released>(end('1')));
  EXPECT_TRUE(is_free());
}

TEST_P(LeaseUsersTest, AReleaseByHandTellsForHowLongTheLeaseWouldHaveLasted) {
  acquire(ttl(60s));
  const ReleaseVote vote = release(/*by_hand=*/true);
  ASSERT_TRUE(answers<Released>(vote));
  EXPECT_FALSE(std::get<Released>(vote).left_to_users);
  EXPECT_NEAR(static_cast<double>(std::get<Released>(vote).rest.count()), 60e9, 5e9);
}

TEST_P(LeaseUsersTest, WithoutTheRecordALeaseIsNotReleasedBesidePossibleUsers) {
  acquire();
  ASSERT_TRUE(joins('1'));
  lose_record();
  if (std::get<UsedLease>(GetParam()) == UsedLease::slots) {
    EXPECT_TRUE(answers<Released>(release()));
    EXPECT_FALSE(is_acquired_by_another());
    return;  // without its data, a share in a slot is lost, and so extended by nobody
  }
  EXPECT_TRUE(answers<Released>(release()));
  EXPECT_FALSE(is_acquired_by_another());
  EXPECT_TRUE(is_renewed('1'));
  EXPECT_TRUE(answers<Healed>(heal(user('1'))));
  EXPECT_EQ(number_of_users(), 1U);
  EXPECT_FALSE(is_acquired_by_another());
}

TEST_P(LeaseUsersTest, AHealOfTheRecordKeepsTheUsers) {
  acquire();
  if (std::get<UsedLease>(GetParam()) == UsedLease::slots) return;
  lose_record();
  EXPECT_TRUE(is_renewed('1'));
  EXPECT_TRUE(answers<Healed>(heal(std::nullopt)));
  EXPECT_TRUE(answers<Released>(release()));
  EXPECT_FALSE(is_acquired_by_another());
  EXPECT_TRUE(answers<Released>(end('1')));
  EXPECT_FALSE(is_acquired_by_another()) << "there may have been others";
}

TEST_P(LeaseUsersTest, AHealOfTheRecordDoesNotTakeLostUsersForNone) {
  if (std::get<UsedLease>(GetParam()) == UsedLease::slots) return;
  for (const bool supervised : {false, true}) {
    acquire();
    ASSERT_TRUE(joins('1'));
    lose_record();
    EXPECT_TRUE(answers<Healed>(heal(std::nullopt, supervised)));
    EXPECT_TRUE(answers<Released>(release()));
    EXPECT_FALSE(is_acquired_by_another());
    EXPECT_TRUE(is_renewed('1'));
    store_->clear();
  }
}

TEST_P(LeaseUsersTest, ALeaseThatWasHealedIsNotTakenForAStrayGrantOfOtherSlots) {
  if (std::get<UsedLease>(GetParam()) != UsedLease::slots) return;
  EXPECT_TRUE(answers<Healed>(heal(user('1'))));
  ReleaseRequest stray{deploy(), token()};
  stray.slots = {0, 1};
  EXPECT_TRUE(answers<NotOurs>(done(server_.release(stray, drive_.soon()))));
  EXPECT_TRUE(is_renewed('1'));
  stray.slots = {0, 2};
  EXPECT_TRUE(answers<Released>(done(server_.release(stray, drive_.soon()))));
  EXPECT_TRUE(is_free());
}

TEST_P(LeaseUsersTest, UsersThatCannotBeReadAreNotTakenForNone) {
  acquire();
  ASSERT_TRUE(joins('1'));
  const bool shared = hold().shared;
  const std::string field = shared ? "users:" + sha1_hex(token().secret()) : "users";
  store_->run({"HSET", shared ? helper_.shares() : helper_.owner(), field, "a newer form"});
  EXPECT_TRUE(answers<Fault>(release()));
  EXPECT_TRUE(answers<Fault>(end('1')));
  EXPECT_FALSE(is_acquired_by_another());
}

TEST_P(LeaseUsersTest, TheNextLeaseHasNoUsersOfTheLast) {
  acquire();
  ASSERT_TRUE(joins('1'));
  store_->run({"DEL", deploy().key()});
  store_->run({"DEL", helper_.readers()});
  AcquireRequest next{deploy(), token('b'), ttl(), some_owner()};
  ASSERT_TRUE(answers<Granted>(done(server_.acquire(next, drive_.soon()))));
  EXPECT_EQ(number_of_users(), 0U);
  ReleaseRequest request{deploy(), token('b'), /*by_hand=*/true};
  EXPECT_TRUE(answers<Released>(done(server_.release(request, drive_.soon()))));
  EXPECT_TRUE(is_free());
}

}  // namespace
}  // namespace redlock
