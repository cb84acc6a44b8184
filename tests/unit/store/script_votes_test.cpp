#include "store/script_votes.hpp"
#include "store/script_calls.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../samples.hpp"
#include "replies.hpp"
#include "store/owner_record.hpp"

namespace redlock {
namespace {

using namespace std::chrono_literals;
using namespace testing;
using Type = Reply::Type;
using Strings = std::vector<std::string>;

constexpr std::string_view secret = "0123456789abcdef0123456789abcdef";
const std::string record =
    R"({"v":1,"host":"web1","user":"alice","pid":7,"command":"sh","note":"why"})";

Token secret_token() {
  return Token::from_text(secret).value();
}

/// What describe() in lock.lua gives for a lease of ours.
Reply ours(std::string word, std::int64_t supervised = 0) {
  return array({text(std::move(word)), text("id"), text("string"), integer(5000), integer(1),
                text("42"), integer(1500), integer(supervised), text(record)});
}

Reply foreign(std::string word, std::string type = "string", std::int64_t left = -1) {
  return array({text(std::move(word)), text("id"), text(std::move(type)), integer(left), integer(0),
                text(""), integer(-1), integer(0), text("")});
}

Reply gone(std::int64_t released) {
  return array({text("gone"), integer(released)});
}

void expect_ours(const Holder& holder, bool supervised = false) {
  EXPECT_EQ(holder.id, LeaseId{"id"});
  EXPECT_FALSE(holder.foreign);
  EXPECT_EQ(holder.type, "string");
  EXPECT_EQ(holder.remaining, 5000ms);
  EXPECT_EQ(holder.age, 1500ms);
  EXPECT_EQ(holder.fence, Fence(42));
  ASSERT_TRUE(holder.owner.has_value());
  EXPECT_EQ(holder.owner->host, "web1");
  EXPECT_EQ(holder.owner->note, "why");
  EXPECT_EQ(holder.owner->pid, 7);
  EXPECT_EQ(holder.owner->supervised, supervised);
}

/// Of the second of two waiters, when one of three slots is free.
Reply queue() {
  return array({text("1700000000000"), text("1699999999999"), integer(2), integer(1), integer(1500),
                text("010"), integer(1), integer(1), text("w7"), text(std::string(record)),
                integer(3), text(""), text(R"({"host":"web1","reason":"why","user":"alice"})")});
}
Reply with_queue(Reply reply) {
  reply.elements.push_back(queue());
  return reply;
}
Reply parties() {
  return array({integer(0), array({}), integer(0), array({}), text(""), text("1700000000000"),
                text(""), array({array({integer(1500), text(std::string(record))})})});
}
Reply with_company(Reply reply) {
  reply.elements.push_back(parties());
  return reply;
}

void expect_foreign(const Holder& holder, const std::string& type) {
  EXPECT_EQ(holder.id, LeaseId{"id"});
  EXPECT_TRUE(holder.foreign);
  EXPECT_EQ(holder.type, type);
  EXPECT_EQ(holder.remaining, std::nullopt);
  EXPECT_EQ(holder.age, std::nullopt);
  EXPECT_EQ(holder.fence, std::nullopt);
  EXPECT_FALSE(holder.owner.has_value());
}

template <class Vote>
FaultKind kind_of(const Vote& vote) {
  const auto* fault = std::get_if<Fault>(&vote);
  EXPECT_NE(fault, nullptr) << "vote " << vote.index();
  return fault != nullptr ? fault->kind : FaultKind::silent;
}

TEST(ScriptCalls, HaveTheKeysInTheOrderOfThePrelude) {
  const Strings keys{"deploy",
                     "redlock:fence:{deploy}",
                     "redlock:owner:{deploy}",
                     "redlock:released:{deploy}",
                     "redlock:readers:{deploy}",
                     "redlock:shares:{deploy}",
                     "redlock:slots:{deploy}",
                     "redlock:queue:{deploy}",
                     "redlock:waiters:{deploy}"};
  const Provenance provenance{1500ms, true, record};
  EXPECT_EQ(acquire_call({resource(), secret_token(), ttl(), {}}).keys, keys);
  EXPECT_EQ(raise_fence_call({resource(), secret_token(), Fence(1), ttl()}).keys, keys);
  EXPECT_EQ(extend_call({resource(), secret_token(), ttl()}).keys, keys);
  EXPECT_EQ(heal_call({resource(), secret_token(), ttl(), Fence(1), provenance}).keys, keys);
  EXPECT_EQ(release_call({resource(), secret_token(), true}).keys, keys);
  EXPECT_EQ(break_call({resource()}).keys, keys);
  EXPECT_EQ(inspect_call(resource(), std::nullopt, RunsTold::none).keys, keys);
  EXPECT_EQ(leave_call(resource(), "me").keys, keys);
}

TEST(ScriptCalls, HaveTheKeyOfTheLastRunsWhereTheyAreWanted) {
  AcquireRequest asks{resource(), secret_token(), ttl(), {}};
  asks.wants_runs = true;
  ReleaseRequest tells{resource(), secret_token()};
  tells.run.emplace();
  for (const ScriptCall& call : {acquire_call(asks), release_call(tells),
                                 inspect_call(resource(), std::nullopt, RunsTold::last)}) {
    ASSERT_EQ(call.keys.size(), 10U);
    EXPECT_EQ(call.keys.back(), "redlock:last:{deploy}");
  }
}

TEST(ScriptCalls, HaveTheArgumentsOfTheirScripts) {
  const std::string token_text(secret);
  const Owner owner{"web1", "alice", "sh", "why", 7, true};
  const ScriptCall acquire = acquire_call({resource(), secret_token(), ttl(), owner});
  EXPECT_EQ(acquire.script, &scripts::acquire);
  EXPECT_EQ(acquire.arguments, (Strings{token_text, "30000", "1", encode_owner(owner), "x", "0", "",
                                        "", "0", "0", "0", "0", "0", "0", "1", "", "acquire"}));
  EXPECT_EQ(acquire_call({resource(), secret_token(), ttl(), {}}).arguments[2], "0");
  AcquireRequest slot{resource(),
                      secret_token(),
                      ttl(),
                      {},
                      Mode{true, 4},
                      {2},
                      QueueEntry{"me", 1'700'000'000'000, true, 2000ms}};
  const Strings modes = acquire_call(slot).arguments;
  EXPECT_EQ(Strings(modes.begin() + 4, modes.end()),
            (Strings{"s", "4", "2", "me", "1700000000000", "1", "2000", "0", "0", "0", "1", "",
                     "acquire"}));
  slot.replacement = StopRequest{"web1", "alice", "why", Place{7, "me"}};
  EXPECT_EQ(acquire_call(slot).arguments[15], encode_stop_request(*slot.replacement));

  const ScriptCall raise = raise_fence_call({resource(), secret_token(), Fence(Fence::max), ttl()});
  EXPECT_EQ(raise.script, &scripts::raise_fence);
  EXPECT_EQ(raise.arguments, (Strings{token_text, "4503599627370496", "30000", "raise_fence"}));

  const ScriptCall extend = extend_call({resource(), secret_token(), ttl()});
  EXPECT_EQ(extend.script, &scripts::extend);
  EXPECT_EQ(extend.arguments, (Strings{token_text, "30000", "", "0", "", "", "0", "extend"}));
  EXPECT_EQ(extend_call({resource(), secret_token(), ttl(), {1, 4}, Fence(42)}).arguments,
            (Strings{token_text, "30000", "1,4", "42", "", "", "0", "extend"}));
  EXPECT_EQ(extend_call({resource(), secret_token(), ttl(), {}, {}, LeaseUser{"u1", record}, true})
                .arguments,
            (Strings{token_text, "30000", "", "0", "u1", record, "1", "extend"}));

  const ScriptCall heal =
      heal_call({resource(), secret_token(), ttl(), Fence(42), {1500ms, true, record}});
  EXPECT_EQ(heal.script, &scripts::heal);
  EXPECT_EQ(heal.arguments,
            (Strings{token_text, "30000", "42", "1500", "1", record, "x", "", "", "", "heal"}));
  EXPECT_EQ(heal_call({resource(), secret_token(), ttl(), Fence(42), {}, Hold{true, {1, 4}}})
                .arguments[7],
            "1,4");

  EXPECT_EQ(release_call({resource(), secret_token(), false}).script, &scripts::release);
  EXPECT_EQ(release_call({resource(), secret_token(), false, 0s}).arguments,
            (Strings{token_text, "0", "0", "", "0", "0", "0", "x", "", "", "", "0", "", "0", "",
                     "release"}));
  EXPECT_EQ(release_call({resource(), secret_token(), true, 0s}).arguments,
            (Strings{token_text, "1", "0", "", "0", "0", "0", "x", "", "", "", "1", "", "0", "",
                     "release"}));
  ReleaseRequest use{resource(), secret_token()};
  use.user = "u1";
  EXPECT_EQ(release_call(use).arguments[10], "u1");
  ReleaseRequest detached{resource(), secret_token()};
  detached.may_have_users = true;
  detached.stop_users = StopRequest{"web1", "alice", "why"};
  EXPECT_EQ(release_call(detached).arguments[11], "1");
  EXPECT_EQ(release_call(detached).arguments[12], encode_stop_request(*detached.stop_users));
  EXPECT_EQ(release_call({resource(), secret_token(), false, 1500us}).arguments,
            (Strings{token_text, "0", "2", "", "0", "0", "0", "x", "", "", "", "0", "", "0", "",
                     "release"}));  // never too short
  ReleaseRequest back{resource(), secret_token()};
  back.requeue.emplace(Requeue{QueueEntry{"me", 17, false, 35s}, Mode{true, 0}, owner});
  EXPECT_EQ(release_call(back).arguments,
            (Strings{token_text, "0", "0", "me", "17", "0", "35000", "s", encode_owner(owner), "",
                     "", "0", "", "0", "", "release"}));
  ReleaseRequest lift{resource(), secret_token(), /*by_hand=*/true};
  lift.tombstone_life = 1h;
  EXPECT_EQ(release_call(lift).arguments[13], "3600000");
  ReleaseRequest stray{resource(), secret_token()};
  stray.slots = {1, 4};
  EXPECT_EQ(release_call(stray).arguments[14], "1,4");
  EXPECT_TRUE(may_keep_the_key(release_call(stray))) << "no undo may follow";

  EXPECT_EQ(leave_call(resource(), "me").script, &scripts::leave);
  EXPECT_EQ(leave_call(resource(), "me").arguments, (Strings{"me", "leave"}));

  EXPECT_EQ(break_call({resource()}).script, &scripts::break_lock);
  EXPECT_EQ(break_call({resource()}).arguments,
            (Strings{"", encode_owner({}), "", "", "0", "", "break_lock"}));
  EXPECT_EQ(break_call({resource(), Fence(42)}).arguments,
            (Strings{"42", encode_owner({}), "", "", "0", "", "break_lock"}));
  BreakRequest missing{resource()};
  missing.hold = LeaseId{"id"};
  missing.tombstone_life = 1h;
  EXPECT_EQ(break_call(missing).arguments,
            (Strings{"", encode_owner({}), "", "id", "3600000", "", "break_lock"}));
  BreakRequest in_slot{resource()};
  in_slot.slot = "phone1";
  EXPECT_EQ(break_call(in_slot).arguments,
            (Strings{"", encode_owner({}), "", "", "0", "phone1", "break_lock"}));

  EXPECT_EQ(ask_call({resource(), {}, "7"}).script, &scripts::ask);
  EXPECT_EQ(ask_call({resource(), {}, "phone1"}).arguments,
            (Strings{"", "phone1", "", "0", "ask"}));
  EXPECT_EQ(ask_call({resource(), LeaseId{"id"}, {}, {"web1", "alice", "why"}}).arguments,
            (Strings{"id", "-1", R"({"host":"web1","reason":"why","user":"alice"})", "0", "ask"}));

  EXPECT_EQ(inspect_call(resource(), std::nullopt, RunsTold::last).script, &scripts::inspect);
  EXPECT_EQ(inspect_call(resource(), std::nullopt, RunsTold::last).arguments,
            (Strings{"", "0", "", "inspect"}));
  const InspectScope scope{RunsTold::kept, {"phone1", "phone2"}};
  EXPECT_EQ(inspect_call(resource(), LeaseId{"id"}, scope).arguments,
            (Strings{"id", "1", "phone1,phone2", "inspect"}));
}

TEST(AcquireVote, IsReadFromEveryReply) {
  const auto granted =
      acquire_vote(array({text("granted"), text("42"), text("id"), text(""), queue(), text("")}));
  ASSERT_TRUE(std::holds_alternative<Granted>(granted));
  EXPECT_EQ(std::get<Granted>(granted).fence, Fence(42));
  EXPECT_EQ(std::get<Granted>(granted).id, LeaseId{"id"});
  EXPECT_EQ(std::get<Granted>(granted).slots, Slots());
  const auto slotted =
      acquire_vote(array({text("granted"), text("42"), text("id"), text("3"), queue(), text("")}));
  EXPECT_EQ(std::get<Granted>(slotted).slots, Slots{3});

  const auto queued = acquire_vote(array({text("queued"), queue()}));
  ASSERT_TRUE(std::holds_alternative<Queued>(queued));
  const QueueStatus& word = std::get<Queued>(queued).queue;
  EXPECT_EQ(word.time, 1'700'000'000'000ms);
  EXPECT_EQ(word.max_ticket, 1'699'999'999'999U);
  EXPECT_EQ(word.ahead, 2U);
  EXPECT_TRUE(word.queued);
  EXPECT_EQ(word.may_change, 1500ms);
  EXPECT_EQ(word.free_slots, "010");
  EXPECT_TRUE(word.offered);
  EXPECT_TRUE(word.cannot_publish);
  EXPECT_EQ(word.superseder, "w7");
  EXPECT_EQ(word.others, 3U);
  ASSERT_TRUE(word.dismissal.has_value());
  EXPECT_EQ(word.dismissal->user, "alice");
  ASSERT_TRUE(word.superseded_by.has_value());
  EXPECT_EQ(word.superseded_by->host, "web1");

  const auto held = acquire_vote(with_queue(ours("held", 1)));
  ASSERT_TRUE(std::holds_alternative<Held>(held));
  expect_ours(std::get<Held>(held).holder, /*supervised=*/true);

  EXPECT_TRUE(std::holds_alternative<Duplicate>(acquire_vote(array({text("duplicate")}))));
}

TEST(AcquireVote, KnowsForeignHolders) {
  for (const std::string type : {"string", "hash", "list", "ReJSON-RL"}) {
    const auto held = acquire_vote(with_queue(foreign("held", type)));
    ASSERT_TRUE(std::holds_alternative<Held>(held));
    expect_foreign(std::get<Held>(held).holder, type);
  }
}

TEST(RaiseVote, IsReadFromEveryReply) {
  EXPECT_TRUE(std::holds_alternative<Raised>(raise_vote(array({text("raised")}))));
  EXPECT_TRUE(std::holds_alternative<NotRaised>(raise_vote(gone(0))));
  EXPECT_TRUE(std::holds_alternative<NotRaised>(raise_vote(ours("held"))));
}

TEST(ExtendVote, IsReadFromEveryReply) {
  const auto extended = extend_vote(ours("extended", 1));
  ASSERT_TRUE(std::holds_alternative<Extended>(extended));
  EXPECT_EQ(std::get<Extended>(extended).fence, Fence(42));
  EXPECT_EQ(std::get<Extended>(extended).provenance.age, 1500ms);
  EXPECT_TRUE(std::get<Extended>(extended).provenance.supervised);
  EXPECT_EQ(std::get<Extended>(extended).provenance.record, record);
}

TEST(ExtendVote, CountsThoughTheOwnerRecordIsGone) {
  const auto extended = extend_vote(foreign("extended", "string", 5000));
  ASSERT_TRUE(std::holds_alternative<Extended>(extended));
  EXPECT_EQ(std::get<Extended>(extended).fence, Fence());
  EXPECT_EQ(std::get<Extended>(extended).provenance.age, 0ms);
}

/// What extend, heal and release answer to a client whose lease is not there.
template <class Vote>
void expect_not_ours(Vote (*vote_of)(const ScriptReply&)) {
  const auto nothing = vote_of(gone(0));
  ASSERT_TRUE(std::holds_alternative<NotOurs>(nothing));
  EXPECT_EQ(std::get<NotOurs>(nothing).why, NotOurs::Why::gone);

  const auto released = vote_of(gone(1));
  ASSERT_TRUE(std::holds_alternative<NotOurs>(released));
  EXPECT_EQ(std::get<NotOurs>(released).why, NotOurs::Why::released);

  const auto held = vote_of(ours("held"));
  ASSERT_TRUE(std::holds_alternative<NotOurs>(held));
  EXPECT_EQ(std::get<NotOurs>(held).why, NotOurs::Why::held);
  ASSERT_TRUE(std::get<NotOurs>(held).holder.has_value());
  expect_ours(*std::get<NotOurs>(held).holder);

  const auto hash = vote_of(foreign("held", "hash"));
  ASSERT_TRUE(std::holds_alternative<NotOurs>(hash));
  expect_foreign(*std::get<NotOurs>(hash).holder, "hash");
}

TEST(NotOursVotes, AreReadFromEveryReply) {
  expect_not_ours(extend_vote);
  expect_not_ours(heal_vote);
  expect_not_ours(release_vote);
}

TEST(HealVote, IsReadFromEveryReply) {
  EXPECT_TRUE(std::holds_alternative<Healed>(heal_vote(array({text("healed")}))));
}

TEST(ReleaseVote, IsReadFromEveryReply) {
  for (const int recorded : {0, 1}) {
    const auto vote = release_vote(array({text("released"), integer(recorded)}));
    ASSERT_TRUE(std::holds_alternative<Released>(vote));
    EXPECT_EQ(std::get<Released>(vote).recorded, recorded == 1);
    EXPECT_FALSE(std::get<Released>(vote).left_to_users);
  }
  const auto left = release_vote(array({text("released"), integer(1), integer(1)}));
  ASSERT_TRUE(std::holds_alternative<Released>(left));
  EXPECT_TRUE(std::get<Released>(left).left_to_users);
  const auto supervised = release_vote(ours("supervised", 1));
  ASSERT_TRUE(std::holds_alternative<Supervised>(supervised));
  expect_ours(std::get<Supervised>(supervised).holder, /*supervised=*/true);
}

TEST(BreakVote, IsReadFromEveryReply) {
  EXPECT_TRUE(std::holds_alternative<NothingToBreak>(break_vote(array({text("free")}))));
  const auto broken = break_vote(ours("broken"));
  ASSERT_TRUE(std::holds_alternative<Broken>(broken));
  expect_ours(std::get<Broken>(broken).holder);
  const auto other = break_vote(foreign("other", "hash"));
  ASSERT_TRUE(std::holds_alternative<OtherFence>(other));
  expect_foreign(std::get<OtherFence>(other).holder, "hash");
}

TEST(InspectVote, IsReadFromEveryReply) {
  EXPECT_TRUE(std::holds_alternative<Free>(inspect_vote(array({text("free"), parties()}))));
  const auto taken = inspect_vote(with_company(ours("held")));
  ASSERT_TRUE(std::holds_alternative<Taken>(taken));
  const Holder& holder = std::get<Taken>(taken).holder;
  expect_ours(holder);
  ASSERT_EQ(holder.users.size(), 1U);
  EXPECT_EQ(holder.users[0].age, 1500ms);
  EXPECT_EQ(holder.users[0].owner->host, "web1");
}

TEST(InspectVote, TellsWhoSharesAndWhoWaits) {
  Reply share = ours("share");
  share.elements.push_back(integer(3));
  const Reply waiter = array({text("s"), integer(1500), text(std::string(record))});
  const auto vote = inspect_vote(
      array({text("free"), array({integer(20), array({waiter}), integer(30), array({share}),
                                  text("1110"), text("1700000000000"), text(""), array({})})}));
  ASSERT_TRUE(std::holds_alternative<Free>(vote));
  const LockParties& seen = std::get<Free>(vote).parties;
  EXPECT_EQ(seen.waiters, 20U);
  ASSERT_EQ(seen.first_waiters.size(), 1U);
  EXPECT_TRUE(seen.first_waiters[0].shared);
  EXPECT_EQ(seen.first_waiters[0].since, 1500ms);
  EXPECT_EQ(seen.first_waiters[0].owner->host, "web1");
  EXPECT_EQ(seen.shares, 30U);
  ASSERT_EQ(seen.first_shares.size(), 1U);
  expect_ours(seen.first_shares[0].holder);
  EXPECT_EQ(seen.first_shares[0].slot, 3U);
  EXPECT_EQ(seen.free_slots, "1110");
}

/// What a server shows that has this text about the last runs.
LastRuns runs_in(const std::string& stored, const std::string& time = "1700000000000") {
  const auto vote =
      inspect_vote(array({text("free"), array({integer(0), array({}), integer(0), array({}),
                                               text(""), text(time), text(stored), array({})})}));
  return std::get<Free>(vote).runs;
}

const std::string succeeded = "1 7 1699989200000 1699989920000 1500 released 0 - ";
const std::string failed = "1 9 1699996400000 1699996401000 0 lost - 15 ";

TEST(LastRuns, AreReadWithTheirAges) {
  const LastRuns runs = runs_in("0 1699989200000 7\n" + failed + std::string(record) + "\n" +
                                succeeded + std::string(record));
  ASSERT_TRUE(runs.last && runs.success);
  EXPECT_EQ(runs.last->fence, Fence(9));
  EXPECT_EQ(runs.last->started, 1h);
  EXPECT_EQ(runs.last->result, "lost");
  EXPECT_EQ(runs.last->exit_code, std::nullopt);
  EXPECT_EQ(runs.last->signal, 15);
  EXPECT_EQ(runs.success->fence, Fence(7));
  EXPECT_EQ(runs.success->started, 3h);
  EXPECT_EQ(runs.success->ended, 3h - 12min);
  EXPECT_EQ(runs.success->waited, 1500ms);
  EXPECT_EQ(runs.success->exit_code, 0);
  EXPECT_EQ(runs.success->owner->host, "web1");
  EXPECT_FALSE(runs.newer);
}

TEST(LastRuns, HaveTheirAgesWhateverTheYearOfTheServersClock) {
  const std::string run = "1 7 4102444800000 4102444860000 0 released 0 - {}";
  const LastRuns runs = runs_in("0 4102444800000 7\n" + run, "4102448400000");
  ASSERT_TRUE(runs.success.has_value());
  EXPECT_EQ(runs.success->started, 1h);
  EXPECT_EQ(runs.success->ended, 59min);
  const LastRuns future = runs_in("0 4102444800000 7\n" + run);
  EXPECT_LT(future.success->started, -24h * 365 * 70);
  EXPECT_LT(runs_in("0 9223372036854775807 7", "0").success->started, -24h * 365 * 99);
}

TEST(LastRuns, AreKeptForSeventyDaysOrLonger) {
  EXPECT_EQ(runs_in("").kept_for, std::nullopt);
  EXPECT_EQ(runs_in("0 0 0\n" + failed + "{}").kept_for, std::nullopt);
  EXPECT_EQ(runs_in("2592000000 0 0\n" + failed + "{}").kept_for, 24h * 30);
  EXPECT_EQ(runs_in("8640000000 0 0\n" + failed + "{}").kept_for, 24h * 100);
}

TEST(LastRuns, MayBeOne) {
  const LastRuns runs = runs_in("72000000 1699989200000 7\n" + succeeded + "{}");
  EXPECT_EQ(runs.last->fence, Fence(7));
  EXPECT_EQ(runs.success->started, 3h);
  const LastRuns failure = runs_in("0 0 0\n" + failed + "{}");
  EXPECT_EQ(failure.last->fence, Fence(9));
  EXPECT_FALSE(failure.success);
}

TEST(LastRuns, OfANewerVersionTellWhenTheLastSuccessStarted) {
  const LastRuns runs = runs_in("0 1699989200000 7 and more\n2 7 what only it knows");
  EXPECT_TRUE(runs.newer);
  EXPECT_FALSE(runs.last);
  ASSERT_TRUE(runs.success.has_value());
  EXPECT_EQ(runs.success->started, 3h);
  EXPECT_EQ(runs.success->fence, Fence(7));
  EXPECT_EQ(runs.success->ended, std::nullopt);
}

/// The fences of the runs that are told in full, with their leases.
std::string kept_in(const std::string& stored) {
  std::string text;
  for (const PastRun& run : runs_in(stored).kept)
    text += run.fence.text() + (run.lease ? run.lease->text : "-") + " ";
  return text;
}

TEST(LastRuns, OfAnOlderVersionAreAllThatAreKept) {
  EXPECT_EQ(kept_in(""), "");
  EXPECT_EQ(kept_in("0 1699989200000 7\n" + succeeded + "{}"), "7- ");
  EXPECT_EQ(kept_in("0 1699989200000 7\n" + failed + "{}\n" + succeeded + "{}"), "9- 7- ");
}

TEST(LastRuns, AreFollowedByThoseThatAreKept) {
  const std::string head = "0 1699989200000 7\n";
  EXPECT_EQ(kept_in(head + succeeded + "{}\n\n\nb " + succeeded + "{}\na " + failed + "{}\n"),
            "7b 9a 7- ");
  const LastRuns runs = runs_in(head + failed + "{}\n" + succeeded + "{}\n\na " + failed + "{}");
  EXPECT_EQ(runs.last->fence, Fence(9));
  EXPECT_EQ(runs.success->fence, Fence(7));
  EXPECT_FALSE(runs.newer);
  // What is in another form is left out alone.
  EXPECT_EQ(kept_in(head + "\n\n\nb\n\na 2 9 later\n- " + failed + "{}\n"), "9- ");
}

TEST(LastRuns, TellWhatDidNotRunSince) {
  const LastRuns runs = runs_in("0 0 0\n\n\n3 1699989200000 1699996400000 busy\n");
  EXPECT_FALSE(runs.last || runs.success || runs.newer);
  ASSERT_TRUE(runs.skips.has_value());
  EXPECT_EQ(runs.skips->number, 3);
  EXPECT_EQ(runs.skips->first, 3h);
  EXPECT_EQ(runs.skips->last, 1h);
  EXPECT_EQ(runs.skips->why, "busy");
  for (const std::string line : {"", "3", "0 1 1 busy", "x 1 1 busy", "3 x 1 busy", "3 1 x busy"})
    EXPECT_FALSE(runs_in("0 0 0\n\n\n" + line).skips) << line;
}

TEST(LastRuns, ByAClockThatWasSetBackStartInTheFuture) {
  EXPECT_EQ(runs_in("0 1700003600000 7\n" + succeeded + "{}").success->started, 3h);
  EXPECT_EQ(runs_in("0 1700003600000 7\n1 7 1700003600000 1700003700000 0 released 0 - {}")
                .success->started,
            -1h);
}

TEST(LastRuns, AreNotReadFromWhatNoScriptWrites) {
  for (const std::string stored :
       {"", " ", "  ", "\n\n\n", "7", "0 7", "0 x 7", "0 -5 7", "0 1699989200000 x",
        "0 1699989200000 4503599627370497", "0 99999999999999999999 7", "no record at all"}) {
    const LastRuns runs = runs_in(stored);
    EXPECT_FALSE(runs.last || runs.success || runs.newer) << stored;
  }
  for (const std::string line :
       {"1", "1 9 1 2 3", "1 x 1 2 3 released 0 - {}", "1 9 x 2 3 released 0 - {}"})
    EXPECT_FALSE(runs_in("0 0 0\n" + line).last) << line;
  const LastRuns odd = runs_in("0 0 0\n1 9 1 2 3 released 256 -1 no record");
  ASSERT_TRUE(odd.last.has_value());
  EXPECT_EQ(odd.last->exit_code, std::nullopt);
  EXPECT_EQ(odd.last->signal, std::nullopt);
  EXPECT_FALSE(odd.last->owner);
}

TEST(LastRuns, ComeWithAGrantThatAskedForThem) {
  const auto vote = acquire_vote(array({text("granted"), text("42"), text("id"), text(""), queue(),
                                        text("0 1699989200000 7\n" + succeeded + "{}")}));
  EXPECT_EQ(std::get<Granted>(vote).runs.success->started, 3h);
}

TEST(ReleaseCall, TellsTheRunThatEnds) {
  PastRun run{Fence(7), 12min, Duration::zero(), 1500ms, "released", 0};
  ReleaseRequest request{resource(), secret_token()};
  EXPECT_EQ(release_call(request).arguments.at(protocol::argument::release::run), "");
  request.run = RunRecord{run, Instant(), /*success=*/true, 20h};
  EXPECT_EQ(release_call(request).arguments.at(protocol::argument::release::run),
            "72000000 720000 7\n1 7 720000 0 1500 released 0 - ");
  run.exit_code.reset();
  run.signal = 15;
  run.result = "lost";
  run.ended = 2s;
  request.run = RunRecord{run, Instant()};
  EXPECT_EQ(release_call(request).arguments.at(protocol::argument::release::run),
            "0 0 0\n1 7 720000 2000 1500 lost - 15 ");
}

TEST(Votes, HandOnTheFaultOfTheServer) {
  const ScriptReply fault = unexpected(Fault{FaultKind::denied, "no"});
  EXPECT_EQ(kind_of(acquire_vote(fault)), FaultKind::denied);
  EXPECT_EQ(kind_of(raise_vote(fault)), FaultKind::denied);
  EXPECT_EQ(kind_of(extend_vote(fault)), FaultKind::denied);
  EXPECT_EQ(kind_of(heal_vote(fault)), FaultKind::denied);
  EXPECT_EQ(kind_of(release_vote(fault)), FaultKind::denied);
  EXPECT_EQ(kind_of(break_vote(fault)), FaultKind::denied);
  EXPECT_EQ(kind_of(inspect_vote(fault)), FaultKind::denied);
}

void expect_garbage_everywhere(const Reply& reply) {
  EXPECT_EQ(kind_of(acquire_vote(reply)), FaultKind::garbage);
  EXPECT_EQ(kind_of(raise_vote(reply)), FaultKind::garbage);
  EXPECT_EQ(kind_of(extend_vote(reply)), FaultKind::garbage);
  EXPECT_EQ(kind_of(heal_vote(reply)), FaultKind::garbage);
  EXPECT_EQ(kind_of(release_vote(reply)), FaultKind::garbage);
  EXPECT_EQ(kind_of(break_vote(reply)), FaultKind::garbage);
  EXPECT_EQ(kind_of(inspect_vote(reply)), FaultKind::garbage);
}

TEST(Votes, AreNotReadFromWhatNoScriptAnswers) {
  expect_garbage_everywhere({});
  expect_garbage_everywhere(integer(1));
  expect_garbage_everywhere(text("granted"));
  expect_garbage_everywhere({Type::status, 0, "OK", {}});
  expect_garbage_everywhere(array({}));
  expect_garbage_everywhere(array({integer(1)}));
  expect_garbage_everywhere(array({text("")}));
  expect_garbage_everywhere(array({text("thanks")}));
  expect_garbage_everywhere(array({{Type::status, 0, "granted", {}}, text("42"), text("id")}));
}

TEST(Votes, AreNotReadFromAnotherScriptsReply) {
  EXPECT_EQ(kind_of(acquire_vote(array({text("released")}))), FaultKind::garbage);
  EXPECT_EQ(kind_of(acquire_vote(gone(0))), FaultKind::garbage);
  EXPECT_EQ(
      kind_of(extend_vote(array({text("granted"), text("42"), text("id"), text(""), queue()}))),
      FaultKind::garbage);
  EXPECT_EQ(kind_of(release_vote(array({text("healed")}))), FaultKind::garbage);
  EXPECT_EQ(kind_of(inspect_vote(ours("broken"))), FaultKind::garbage);
}

TEST(AcquireVote, IsNoGrantUnlessItIsWhole) {
  for (const Reply& reply : {
           array({text("granted")}),
           array({text("granted"), text("42")}),
           array({text("granted"), text("42"), text("id")}),
           array({text("granted"), text("42"), text("id"), integer(-1), array({})}),
           array({text("granted"), text("42"), text("id"), queue(), integer(-1)}),
           array({text("granted"), integer(42), text("id"), text(""), queue()}),
           array({text("granted"), text("42"), text("id"), text(""), queue()}),
           array({text("granted"), text("42"), text("id"), text(""), queue(), integer(0)}),
           array({text("granted"), text("42"), text("id"), text(""), queue(), text(""), text("")}),
           array({text("granted"), text(""), text("id"), text(""), queue(), text("")}),
           array({text("granted"), text("-1"), text("id"), text(""), queue(), text("")}),
           array({text("granted"), text("1e3"), text("id"), text(""), queue(), text("")}),
           array({text("granted"), text("4503599627370497"), text("id"), text(""), queue(),
                  text("")}),
       }) {
    EXPECT_EQ(kind_of(acquire_vote(reply)), FaultKind::garbage);
  }
}

TEST(Votes, NameNoHolderUnlessItIsWhole) {
  for (std::size_t missing = 1; missing < 9; ++missing) {
    Reply reply = with_queue(ours("held"));
    reply.elements.erase(reply.elements.begin() + static_cast<std::ptrdiff_t>(missing));
    EXPECT_EQ(kind_of(acquire_vote(reply)), FaultKind::garbage) << missing;

    Reply mistyped = with_company(ours("held"));
    mistyped.elements[missing] = array({});
    EXPECT_EQ(kind_of(inspect_vote(mistyped)), FaultKind::garbage) << missing;
  }
  EXPECT_EQ(kind_of(release_vote(array({text("supervised")}))), FaultKind::garbage);
  EXPECT_EQ(kind_of(extend_vote(array({text("extended")}))), FaultKind::garbage);
  EXPECT_EQ(kind_of(extend_vote(array({text("gone")}))), FaultKind::garbage);
  EXPECT_EQ(kind_of(break_vote(array({text("broken")}))), FaultKind::garbage);
}

TEST(Votes, SurviveAnUnreadableOwnerRecord) {
  Reply reply = with_company(ours("held"));
  reply.elements[5] = text("no number");
  reply.elements[8] = text("no record");
  const auto taken = inspect_vote(reply);
  ASSERT_TRUE(std::holds_alternative<Taken>(taken));
  EXPECT_FALSE(std::get<Taken>(taken).holder.foreign);
  EXPECT_EQ(std::get<Taken>(taken).holder.fence, std::nullopt);
  EXPECT_FALSE(std::get<Taken>(taken).holder.owner.has_value());
}

TEST(Votes, KeepEverySpanInsideTheClock) {
  for (const std::int64_t extreme :
       {INT64_MAX, INT64_MAX / 1000, std::int64_t{9'300'000'000'000}}) {
    Reply reply = with_company(ours("held"));
    reply.elements[3] = integer(extreme);
    reply.elements[6] = integer(extreme);
    const auto taken = inspect_vote(reply);
    ASSERT_TRUE(std::holds_alternative<Taken>(taken));
    const Holder& holder = std::get<Taken>(taken).holder;
    EXPECT_GT(holder.remaining, std::chrono::hours(24 * 365));
    EXPECT_GT(BootClock::now() + *holder.remaining, BootClock::now());
    EXPECT_GT(holder.age, std::chrono::hours(24 * 365));
  }
  Reply negative = with_company(ours("held"));
  negative.elements[6] = integer(INT64_MIN);
  EXPECT_EQ(std::get<Taken>(inspect_vote(negative)).holder.age, std::nullopt);
}

}  // namespace
}  // namespace redlock
