#include "core/decision.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/last_runs.hpp"

namespace redlock {

void PrintTo(AcquireDecision decision, std::ostream* out) {
  static constexpr const char* names[] = {"undecided", "granted",     "busy",   "maybe_busy",
                                          "split",     "unavailable", "denied", "misconfigured",
                                          "duplicate", "guarded"};
  *out << names[static_cast<std::size_t>(decision)];
}

void PrintTo(ExtendDecision decision, std::ostream* out) {
  static constexpr const char* names[] = {"undecided", "confirmed", "lost", "too_few_answers"};
  *out << names[static_cast<std::size_t>(decision)];
}

namespace {

using enum AcquireDecision;

Held held_by(char lease, bool foreign = false) {
  Held held;
  held.holder.id.text = std::string(1, lease);
  held.holder.foreign = foreign;
  return held;
}

Fault fault(FaultKind kind) {
  return Fault{kind, {}};
}

/// One letter a server: `.` missing, `g` granted, `A` `B` `C` held by a lease, `F` `G` held by a
/// foreign one, `2` duplicate, `s` silent, `d` denied, `u` unavailable, `m` misconfigured, `x`
/// garbage.
AcquireVote acquire_vote(char letter) {
  switch (letter) {
    case 'g':
      return Granted{Fence(1), LeaseId{"ours"}};
    case '2':
      return Duplicate{};
    case 's':
      return fault(FaultKind::silent);
    case 'd':
      return fault(FaultKind::denied);
    case 'u':
      return fault(FaultKind::unavailable);
    case 'm':
      return fault(FaultKind::misconfigured);
    case 'x':
      return fault(FaultKind::garbage);
    default:
      return held_by(letter, letter == 'F' || letter == 'G');
  }
}

AcquireTally tally_of(std::string_view letters) {
  AcquireTally tally(letters.size());
  for (std::size_t server = 0; server < letters.size(); ++server) {
    if (letters[server] != '.') tally.count(server, acquire_vote(letters[server]));
  }
  return tally;
}

AcquireDecision decide(std::string_view letters) {
  return tally_of(letters).decision();
}

/// `all_votes`: words, each the votes of some servers.
template <class Decision>
void expect_each(const std::string& all_votes, Decision decision,
                 Decision (*decided)(std::string_view)) {
  std::istringstream words(all_votes);
  for (std::string votes; words >> votes;) EXPECT_EQ(decided(votes), decision) << votes;
}
void expect_each(const std::string& all_votes, AcquireDecision decision) {
  expect_each(all_votes, decision, decide);
}

TEST(Quorum, IsMoreThanHalf) {
  const std::vector<std::size_t> quorums{1, 2, 2, 3, 3, 4, 4};
  for (std::size_t i = 0; i < quorums.size(); ++i) EXPECT_EQ(quorum_of(i + 1), quorums[i]);
}

TEST(AcquireTally, IsUndecidedWhileGrantsMayStillMakeAQuorum) {
  expect_each(". .. g. ... g.. A.. s.. gA. A... ggA. AA... ggAA. gsd..", undecided);
}

TEST(AcquireTally, IsGrantedByAQuorumWhateverTheOthersReply) {
  expect_each("g gg gg. gAg sgg ggg. gggA ggg.. gAgAg dmggg", granted);
}

TEST(AcquireTally, NeverTakesHalfForAQuorum) {
  expect_each("gA ggAA ggsA", split);
  expect_each("gs ggss", unavailable);
  expect_each("ggAs.", undecided);
}

TEST(AcquireTally, IsBusyWhenOneLeaseHasAQuorum) {
  expect_each("A AA AA. gAA AsA AAA. AAAB AAA.. BAAgA", busy);
}

TEST(AcquireTally, AwaitsAQuorumBeforeItReportsWhyItFailed) {
  expect_each("A. AA.. Au.. AB.. As.", undecided);
  expect_each("AAA.", busy);
  expect_each("ABA.", split);
}

TEST(AcquireTally, IsMaybeBusyWhenSilentServersMayMakeUpTheQuorum) {
  expect_each("gAs ABs gAAs ggAAs gABsA", maybe_busy);
}

TEST(AcquireTally, TakesAForeignLeaseForBusyWhenItMayHaveAQuorum) {
  expect_each("F FF. gFs gFFs", busy);
  expect_each("ggF", granted);
  expect_each("FGg gF", split);
}

TEST(AcquireTally, TakesNoFaultButSilenceForAHiddenVote) {
  expect_each("gAd gAu gAm gAx gAAu gFu", split);
}

TEST(AcquireTally, IsSplitWhenNoOtherLeaseCanHaveAQuorum) {
  expect_each("gAB AB. ABC gAAB ggAB ggAAB gABsC gABCs", split);
}

TEST(AcquireTally, IsUnavailableWithoutAQuorumOfAnswers) {
  expect_each("s u x gs As ss. Ass gss Fss dsA AAss AAsss usxAA", unavailable);
}

TEST(AcquireTally, IsDeniedOrMisconfiguredWhenNoQuorumIsLeft) {
  expect_each("d dg dd. dm. ddm ddAA dmAA dmmAA", denied);
  expect_each("m mA mm. mmd", misconfigured);
  expect_each("dAs dsg dsAA", unavailable);
  expect_each("ddAAA", busy);
}

TEST(LastingObstacle, IsWhatLeavesNoQuorum) {
  EXPECT_EQ(lasting_obstacle(2, 0, 3), FaultKind::denied);
  EXPECT_EQ(lasting_obstacle(0, 2, 3), FaultKind::misconfigured);
  EXPECT_EQ(lasting_obstacle(1, 2, 5), FaultKind::denied);
  EXPECT_EQ(lasting_obstacle(1, 3, 5), FaultKind::misconfigured);
  EXPECT_EQ(lasting_obstacle(1, 0, 3), std::nullopt);
  EXPECT_EQ(lasting_obstacle(0, 0, 1), std::nullopt);
}

TEST(Fence, IsTheOneThatAQuorumShowsOrElseTheLargest) {
  EXPECT_EQ(fence_of({Fence(9), Fence(8), Fence(8)}, 3), Fence(8));
  EXPECT_EQ(fence_of({Fence(7), Fence(7), Fence(8)}, 5), Fence(8));
  EXPECT_EQ(fence_of({}, 3), std::nullopt);
}

TEST(AcquireTally, SeesADuplicateBeforeAllElse) {
  expect_each("g2 gg2 2.. dd2 AA2..", duplicate);
}

TEST(Inspection, DescribesALeaseByAServerThatHasItsRecord) {
  Holder unknown;
  unknown.id = LeaseId{"a"};
  unknown.foreign = true;
  Holder known;
  known.id = unknown.id;
  known.owner.emplace().host = "here";
  const Inspection inspection = summarize({Taken{unknown}, Taken{unknown}, Taken{known}});
  EXPECT_EQ(inspection.state, InspectState::held);
  EXPECT_FALSE(inspection.holder->foreign);
  EXPECT_EQ(inspection.holder->owner->host, "here");
}

TEST(AcquireTally, ReplacesAnEarlierVoteOfTheSameServer) {
  AcquireTally tally(3);
  tally.count(0, acquire_vote('g'));
  tally.count(0, acquire_vote('g'));
  EXPECT_EQ(tally.grants(), 1U);
  EXPECT_EQ(tally.decision(), undecided);
  tally.count(0, acquire_vote('A'));
  EXPECT_EQ(tally.grants(), 0U);
}

constexpr auto guard = std::chrono::seconds(60);

AcquireVote granted_by(Duration up, std::string run_id = {}, Fence fence = Fence(1)) {
  return Granted{fence, LeaseId{"ours"}, ServerFacts{std::move(run_id), up}};
}

/// As tally_of, with a restart guard; besides `o` an old server that granted, `y` one that
/// restarted, `?` one that does not tell.
AcquireDecision decide_guarded(std::string_view letters) {
  AcquireTally tally(letters.size(), guard);
  for (std::size_t server = 0; server < letters.size(); ++server) {
    const char letter = letters[server];
    if (letter == '.') continue;
    tally.count(server, letter == 'o'   ? granted_by(std::chrono::hours(1))
                        : letter == 'y' ? granted_by(std::chrono::seconds(5))
                        : letter == '?' ? acquire_vote('g')
                                        : acquire_vote(letter));
  }
  return tally.decision();
}

TEST(AcquireTally, CountsNoGrantOfAServerThatRestarted) {
  expect_each("ooo oo. ooy ooo..", granted, decide_guarded);
  expect_each("oy. AAoy. Ayy.. ooyy.", undecided, decide_guarded);
  expect_each("yy. yyy oyy oys oyA AAooy Ayyoo yyyss ooyyA", guarded, decide_guarded);
  expect_each("yAA AAAyy", busy, decide_guarded);
  expect_each("yss yysss", unavailable, decide_guarded);
  expect_each("oyy22", duplicate, decide_guarded);
}

TEST(AcquireTally, TreatsAServerThatDoesNotReportItsUptimeAsOneThatDeniesIt) {
  EXPECT_EQ(decide_guarded("??o"), denied);
  EXPECT_EQ(decide_guarded("?oo"), granted);
}

TEST(AcquireTally, CountsAGrantFromTheEndOfTheGuardOn) {
  for (const auto& [up, decision] : std::vector<std::pair<Duration, AcquireDecision>>{
           {std::chrono::seconds(61), guarded},  // it tells whole seconds: 60.1 s may be 59.9 s
           {std::chrono::milliseconds(61'001), granted},
           {std::chrono::seconds(0), guarded},
           {std::chrono::seconds(-5), guarded},  // its clock was set back
       }) {
    AcquireTally tally(3, guard);
    tally.count(0, granted_by(up));
    tally.count(1, granted_by(std::chrono::hours(1)));
    tally.count(2, held_by('A'));
    EXPECT_EQ(tally.decision(), decision) << std::chrono::duration_cast<Milliseconds>(up).count();
  }
}

TEST(AcquireTally, NamesTheServersThatTheGuardHoldsBackAndForHowLong) {
  AcquireTally tally(5, guard);
  tally.count(0, granted_by(std::chrono::seconds(1)));
  tally.count(1, granted_by(std::chrono::seconds(41)));
  tally.count(2, granted_by(std::chrono::seconds(11)));
  tally.count(3, granted_by(std::chrono::hours(1)));
  tally.count(4, held_by('A'));
  const auto restarted = tally.restarted();
  ASSERT_EQ(restarted.size(), 2U);
  EXPECT_EQ(restarted[0].server, 1U);
  EXPECT_EQ(restarted[0].left, std::chrono::seconds(20));
  EXPECT_EQ(restarted[1].server, 2U);
  EXPECT_EQ(restarted[1].left, std::chrono::seconds(50));
}

TEST(AcquireTally, HoldsBackNoServerForAnotherSlot) {
  AcquireTally tally(5, guard);
  const auto in_seat = [](Duration up, std::size_t slot) {
    Granted granted = std::get<Granted>(granted_by(up));
    granted.slots = {slot};
    return granted;
  };
  tally.count(0, in_seat(std::chrono::hours(1), 0));
  tally.count(1, in_seat(std::chrono::hours(1), 0));
  tally.count(2, in_seat(std::chrono::seconds(1), 0));
  tally.count(3, in_seat(std::chrono::hours(1), 1));
  tally.count(4, held_by('A'));
  EXPECT_EQ(tally.decision(), guarded);
  EXPECT_EQ(tally.slots(), Slots{0});
  ASSERT_EQ(tally.restarted().size(), 1U);
  EXPECT_EQ(tally.restarted()[0].server, 2U);
}

TEST(AcquireTally, CountsTheGrantsOfOneSeatOnly) {
  AcquireTally tally(3);
  tally.count(0, Granted{Fence(1), LeaseId{"ours"}, {}, {0}});
  tally.count(1, Granted{Fence(1), LeaseId{"ours"}, {}, {1}});
  EXPECT_EQ(tally.decision(), undecided);
  tally.count(2, held_by('A'));
  EXPECT_EQ(tally.decision(), split);
  tally.count(2, Granted{Fence(1), LeaseId{"ours"}, {}, {1}});
  EXPECT_EQ(tally.decision(), granted);
  EXPECT_EQ(tally.grants(), 2U);
}

TEST(AcquireTally, CountsTheGrantsOfTheSameSetOfSlotsOnly) {
  AcquireTally tally(3);
  tally.count(0, Granted{Fence(1), LeaseId{"ours"}, {}, {0, 1}});
  tally.count(1, Granted{Fence(1), LeaseId{"ours"}, {}, {1, 2}});
  EXPECT_EQ(tally.decision(), undecided);
  tally.count(2, Granted{Fence(1), LeaseId{"ours"}, {}, {0, 2}});
  EXPECT_EQ(tally.decision(), split) << "each slot alone has a quorum";
  tally.count(2, Granted{Fence(1), LeaseId{"ours"}, {}, {1, 2}});
  EXPECT_EQ(tally.decision(), granted);
  EXPECT_EQ(tally.slots(), (Slots{1, 2}));
}

TEST(AcquireTally, TakesNoFenceFromAServerThatRestarted) {
  AcquireTally tally(3, guard);
  tally.count(0, granted_by(std::chrono::seconds(5), {}, Fence(9)));
  tally.count(1, granted_by(std::chrono::hours(1), {}, Fence(3)));
  tally.count(2, granted_by(std::chrono::hours(1), {}, Fence(2)));
  EXPECT_EQ(tally.fence(), Fence(3));
  EXPECT_EQ(tally.granted_below(Fence(3)), std::vector<std::size_t>{2});
}

TEST(AcquireTally, SeesOneProcessUnderTwoNames) {
  AcquireTally tally(3);
  tally.count(0, granted_by(std::chrono::hours(1), "abc"));
  EXPECT_EQ(tally.decision(), undecided);
  tally.count(2, granted_by(std::chrono::hours(1), "abc"));
  EXPECT_EQ(tally.decision(), duplicate);
}

TEST(AcquireTally, TakesUnknownProcessesForDifferentOnes) {
  AcquireTally tally(3);
  tally.count(0, granted_by(std::chrono::hours(1)));
  tally.count(2, granted_by(std::chrono::hours(1)));
  EXPECT_EQ(tally.decision(), granted);
}

TEST(AcquireTally, KnowsWhatIsIn) {
  const AcquireTally tally = tally_of("g.A");
  ASSERT_NE(tally.vote_of(0), nullptr);
  EXPECT_TRUE(std::holds_alternative<Granted>(*tally.vote_of(0)));
  EXPECT_EQ(tally.vote_of(1), nullptr);
}

TEST(AcquireTally, TakesTheLargestFenceAndNamesThoseBelow) {
  AcquireTally tally(5);
  EXPECT_EQ(tally.fence(), Fence());
  tally.count(0, Granted{Fence(7), {}});
  tally.count(1, Granted{Fence(9), {}});
  Held other = held_by('A');
  other.holder.fence = Fence(100);
  tally.count(2, other);
  tally.count(4, Granted{Fence(8), {}});
  EXPECT_EQ(tally.fence(), Fence(9));
  EXPECT_EQ(tally.granted_below(Fence(9)), (std::vector<std::size_t>{0, 4}));
  EXPECT_EQ(tally.granted_below(Fence(7)), std::vector<std::size_t>{});
}

TEST(AcquireTally, NamesTheHolderWithTheMostVotes) {
  EXPECT_EQ(tally_of("gs.").main_holder(), nullptr);
  EXPECT_EQ(tally_of("gAs").main_holder()->id.text, "A");
  EXPECT_EQ(tally_of("ABBgs").main_holder()->id.text, "B");
  EXPECT_EQ(tally_of("BAABg").main_holder()->id.text, "B");
}

bool is_success(AcquireDecision decision) {
  return decision == granted;
}

void for_each_combination(std::size_t length, std::string_view letters,
                          const std::function<void(const std::string&)>& visit) {
  std::string votes(length, letters.front());
  std::vector<std::size_t> at(length, 0);
  for (;;) {
    visit(votes);
    std::size_t i = 0;
    while (i < length && ++at[i] == letters.size()) {
      at[i] = 0;
      votes[i] = letters.front();
      ++i;
    }
    if (i == length) return;
    votes[i] = letters[at[i]];
  }
}

std::size_t count_of(const std::string& votes, char letter) {
  return static_cast<std::size_t>(std::count(votes.begin(), votes.end(), letter));
}

TEST(AcquireTallyOverAllVotes, NeverGrantsBelowAQuorumAndAlwaysDecidesInTheEnd) {
  for (std::size_t servers = 1; servers <= 4; ++servers) {
    for_each_combination(servers, ".gABsd", [&](const std::string& votes) {
      const AcquireDecision decision = decide(votes);
      ASSERT_EQ(decision == granted, 2 * count_of(votes, 'g') > servers) << votes;
      const std::size_t missing = count_of(votes, '.');
      const std::size_t answers =
          count_of(votes, 'g') + count_of(votes, 'A') + count_of(votes, 'B');
      const bool may_be_granted =
          decision != granted && 2 * (count_of(votes, 'g') + missing) > servers;
      const bool cannot_tell_why_not = 2 * answers <= servers && 2 * (answers + missing) > servers;
      ASSERT_EQ(decision == undecided, may_be_granted || cannot_tell_why_not) << votes;
      if (count_of(votes, '.') == 0) {
        ASSERT_NE(decision, undecided) << votes;
      }
    });
  }
}

TEST(AcquireTallyOverAllVotes, NeverTurnsSuccessIntoFailureOrBack) {
  for (std::size_t servers = 1; servers <= 4; ++servers) {
    for_each_combination(servers, ".gABsd", [&](const std::string& votes) {
      const AcquireDecision before = decide(votes);
      if (before == undecided) return;
      for (std::size_t server = 0; server < servers; ++server) {
        if (votes[server] != '.') continue;
        for (const char letter : std::string_view("gABsd")) {
          std::string more = votes;
          more[server] = letter;
          const AcquireDecision after = decide(more);
          ASSERT_NE(after, undecided) << votes << " -> " << more;
          ASSERT_EQ(is_success(after), is_success(before)) << votes << " -> " << more;
          if (before == busy || before == denied || before == unavailable) {
            // Certain whatever arrives, but for rights, which may turn out to be the reason for too
            // few answers.
            ASSERT_TRUE(after == before || after == denied) << votes << " -> " << more;
          }
        }
      }
    });
  }
}

TEST(AcquireTallyOverAllVotes, ReportsBusyOnlyIfALeaseHasAQuorum) {
  for (std::size_t servers = 1; servers <= 4; ++servers) {
    for_each_combination(servers, ".gABsd", [&](const std::string& votes) {
      const std::size_t most = std::max(count_of(votes, 'A'), count_of(votes, 'B'));
      const AcquireDecision decision = decide(votes);
      if (decision == busy) {
        ASSERT_GT(2 * most, servers) << votes;
      }
      if (decision == maybe_busy) {
        ASSERT_GT(2 * (most + count_of(votes, 's')), servers) << votes;
      }
      if (decision == split) {
        ASSERT_LE(2 * (most + count_of(votes, 's')), servers) << votes;
      }
    });
  }
}

/// `e` extended, `n` not ours, `s` silent, `.` missing.
ExtendDecision decide_extend(std::string_view letters) {
  ExtendTally tally(letters.size());
  for (std::size_t server = 0; server < letters.size(); ++server) {
    if (letters[server] == 'e') tally.count(server, Extended{});
    if (letters[server] == 'n') tally.count(server, NotOurs{});
    if (letters[server] == 's') tally.count(server, fault(FaultKind::silent));
  }
  return tally.decision();
}

TEST(ExtendTally, DecidesAsSoonAsItIsCertain) {
  using enum ExtendDecision;
  constexpr ExtendDecision too_few = too_few_answers;
  expect_each(". .. e. s. en. es. ns. ee.. een. nss. ees.. eess. nnss.", undecided, decide_extend);
  expect_each("e ee ee. eee. eee..", confirmed, decide_extend);
  expect_each("n n. en nn. nsn nn.. eenn nnn..", lost, decide_extend);
  expect_each("s es ss ens ss. nse sss eens ess. eesss esss. nssss", too_few, decide_extend);
}

TEST(ExtendTallyOverAllVotes, NeverChangesItsMindAndAlwaysDecidesInTheEnd) {
  for (std::size_t servers = 1; servers <= 5; ++servers) {
    for_each_combination(servers, ".ens", [&](const std::string& votes) {
      const ExtendDecision before = decide_extend(votes);
      ASSERT_EQ(before == ExtendDecision::confirmed, 2 * count_of(votes, 'e') > servers) << votes;
      if (count_of(votes, '.') == 0) {
        ASSERT_NE(before, ExtendDecision::undecided) << votes;
      }
      if (before == ExtendDecision::undecided) return;
      for (std::size_t server = 0; server < servers; ++server) {
        if (votes[server] != '.') continue;
        for (const char letter : std::string_view("ens")) {
          std::string more = votes;
          more[server] = letter;
          ASSERT_EQ(decide_extend(more), before) << votes << " -> " << more;
        }
      }
    });
  }
}

TEST(ExtendTally, CountsTheLastVoteOfAServer) {
  ExtendTally tally(3);
  tally.count(1, Extended{});
  tally.count(1, Extended{});
  EXPECT_EQ(tally.decision(), ExtendDecision::undecided);
  EXPECT_EQ(tally.vote_of(0), nullptr);
  ASSERT_NE(tally.vote_of(1), nullptr);
  EXPECT_TRUE(std::holds_alternative<Extended>(*tally.vote_of(1)));
}

TEST(ExtendTally, CountsAServerOnceWhateverItsNames) {
  const auto extended_by = [](const std::string& run_id) {
    return Extended{{}, {}, ServerFacts{run_id, {}}};
  };
  ExtendTally moved(3);
  moved.count(0, extended_by("one"));
  moved.count(1, extended_by("one"));
  EXPECT_EQ(moved.decision(), ExtendDecision::undecided);
  moved.count(0, extended_by("one"));  // again: no twin of itself
  EXPECT_TRUE(std::holds_alternative<Extended>(*moved.vote_of(0)));
  EXPECT_TRUE(std::holds_alternative<Fault>(*moved.vote_of(1)));
  moved.count(2, fault(FaultKind::silent));
  EXPECT_EQ(moved.decision(), ExtendDecision::too_few_answers);

  ExtendTally gone(3);  // what one server lost is not lost by a quorum
  gone.count(0, NotOurs{NotOurs::Why::gone, {}, {}, ServerFacts{"one", {}}});
  gone.count(1, NotOurs{NotOurs::Why::gone, {}, {}, ServerFacts{"one", {}}});
  gone.count(2, extended_by("two"));
  EXPECT_EQ(gone.decision(), ExtendDecision::too_few_answers);

  ExtendTally unknown(3);  // they do not tell
  unknown.count(0, extended_by(""));
  unknown.count(1, extended_by(""));
  EXPECT_EQ(unknown.decision(), ExtendDecision::confirmed);
}

/// `r` released, `n` not ours, `v` supervised, `s` silent.
/// `r` released, `t` the tombstone of an earlier release, `n` not ours, `v` supervised, `s` silent.
std::vector<ReleaseVote> release_votes(std::string_view letters) {
  std::vector<ReleaseVote> votes;
  for (const char letter : letters) {
    if (letter == 'r') votes.emplace_back(Released{});
    if (letter == 't') votes.emplace_back(NotOurs{NotOurs::Why::released, {}});
    if (letter == 'n') votes.emplace_back(NotOurs{});
    if (letter == 'v') votes.emplace_back(Supervised{});
    if (letter == 's') votes.emplace_back(fault(FaultKind::silent));
  }
  return votes;
}

ReleaseDecision decide_release_of(std::string_view letters) {
  return decide_release(release_votes(letters));
}

TEST(DecideRelease, CountsQuorums) {
  using enum ReleaseDecision;
  expect_each("r rr rrn rrs rrrn", released, decide_release_of);
  expect_each("n rn rnn rrnn", not_ours, decide_release_of);
  expect_each("s rs rns rss rrns", ReleaseDecision::unavailable, decide_release_of);
  expect_each("v rrv nnv ssv", supervised, decide_release_of);
  EXPECT_EQ(decide_release_of(""), ReleaseDecision::unavailable);
}

TEST(DecideRelease, KnowsAnEarlierReleaseByAQuorum) {
  for (const char* letters : {"t", "tt", "ttn", "tts", "trs", "tttss"})
    EXPECT_TRUE(was_released(release_votes(letters))) << letters;
  for (const char* letters : {"n", "tn", "tnn", "tss", "ttnnn", "s"})
    EXPECT_FALSE(was_released(release_votes(letters))) << letters;
}

/// `f` free, `A` `B` held by a lease, `k` lease A kept by --min-hold, `s` silent.
std::vector<InspectVote> inspect_votes(std::string_view letters) {
  std::vector<InspectVote> votes;
  for (const char letter : letters) {
    if (letter == 'f') {
      votes.emplace_back(Free{});
    } else if (letter == 's') {
      votes.emplace_back(fault(FaultKind::silent));
    } else {
      Taken taken{held_by(letter == 'k' ? 'A' : letter).holder};
      if (letter == 'k') taken.holder.owner.emplace().finished.emplace();
      votes.emplace_back(std::move(taken));
    }
  }
  return votes;
}

Inspection inspection_of(std::string_view letters) {
  return summarize(inspect_votes(letters));
}

InspectState state_of(std::string_view letters) {
  return inspection_of(letters).state;
}

TEST(Summarize, CountsAServerUnderTwoNamesOnce) {
  const ServerFacts one{"one", {}};
  const ServerFacts two{"two", {}};
  const Taken taken{held_by('A').holder};
  EXPECT_EQ(summarize({Free{{}, one}, Free{{}, one}, taken}).state, InspectState::partly_held);
  EXPECT_EQ(summarize({Free{{}, one}, Free{{}, two}, taken}).state, InspectState::free);
  EXPECT_EQ(summarize({Free{}, Free{}, taken}).state, InspectState::free)
      << "those that do not tell";
}

TEST(Summarize, KeepsWhatEachServerReportsOfTheRuns) {
  using namespace std::chrono_literals;
  Free old_run;
  old_run.runs.success = PastRun{Fence(9), 47h};
  Free fresh_run;
  fresh_run.runs.success = PastRun{Fence(7), 3h};
  const Inspection inspection = summarize({old_run, fresh_run, fault(FaultKind::silent)});
  EXPECT_EQ(inspection.runs.success->fence, Fence(9));
  ASSERT_EQ(inspection.runs_by_server.size(), 2U);
  EXPECT_EQ(fresh_success(inspection.runs_by_server, 26h)->fence, Fence(7));
}

TEST(FreeSlots, AreThoseThatAreFreeOnAQuorum) {
  const auto slots = [](const std::string& free) {
    Taken taken{held_by('A').holder};
    taken.holder.shared = true;
    taken.parties.free_slots = free;
    return taken;
  };
  const Taken alone{held_by('A').holder};
  const Fault silent = fault(FaultKind::silent);
  EXPECT_EQ(free_slots({Free{}}, 4).size(), 4U);
  EXPECT_EQ(free_slots({alone}, 4).size(), 0U);
  EXPECT_EQ(free_slots({slots("0010")}, 4).size(), 1U);
  EXPECT_EQ(free_slots({slots("0010")}, 2).size(), 0U);
  EXPECT_EQ(free_slots({slots("0010")}, 6).size(), 3U) << "behind the last taken one all are free";
  EXPECT_EQ(free_slots({slots("01"), slots("10"), Free{}}, 2).size(), 2U) << "a quorum for each";
  EXPECT_EQ(free_slots({slots("01"), slots("10"), silent}, 2).size(), 0U);
}

TEST(Summarize, DistinguishesFreeHeldAndNeither) {
  using enum InspectState;
  expect_each("f ff ffA ffs ffff", free, state_of);
  expect_each("A AAs AAf AAAf", held, state_of);
  expect_each("s fs Ass AAss", InspectState::unavailable, state_of);
  expect_each("fA AB ABf fAs ABs ffAA", partly_held, state_of);
  EXPECT_EQ(state_of(""), InspectState::unavailable);
}

bool a_is_gone(std::string_view letters) {
  return is_gone(inspect_votes(letters), held_by('A').holder.id);
}

TEST(IsGone, ReportsThatNoQuorumCanHaveTheLease) {
  expect_each("f B k ff fs Bff fBA ffs Bfs kks kkA kfk ffBAs", true, a_is_gone);
  expect_each("A s AA sA AAf Ass fAs Bss kAs BfAsA", false, a_is_gone);
}

TEST(Summarize, NamesTheLeaseWithTheMostVotesInEveryState) {
  EXPECT_FALSE(inspection_of("ffs").holder.has_value());
  for (const std::string_view votes : {"ABB", "ffB", "Bss", "BAAB"}) {
    ASSERT_TRUE(inspection_of(votes).holder.has_value()) << votes;
    EXPECT_EQ(inspection_of(votes).holder->id.text, "B") << votes;
  }
}

}  // namespace
}  // namespace redlock
