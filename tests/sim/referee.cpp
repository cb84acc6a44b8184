#include "referee.hpp"

#include <algorithm>
#include <bit>

namespace redlock::sim {

std::string Referee::name_of(const std::string& token) const {
  const auto found = facts_.find(token);
  const std::string owner = found != facts_.end() && found->second.process != nullptr
                                ? found->second.process->name()
                                : "foreign";
  return owner + "/" + token.substr(0, 4);
}

void Referee::violate(std::string rule, std::string text) {
  if (violation_ || (!judged_.empty() && judged_.find(rule) == std::string_view::npos)) return;
  history_.add("VIOLATION of {}: {}", rule, text);
  violation_ = Violation{std::move(rule), std::move(text)};
}

bool Referee::is_quorum(std::uint32_t servers) const {
  return static_cast<std::size_t>(std::popcount(servers)) >= quorum_;
}

void Referee::check_support(const std::string& token, const Facts& facts) {
  // A lease that was released by hand beside users ends with them, before its keeper learns of it.
  if (facts.over || (facts.handed_over && facts.released_by_hand != 0)) return;
  const auto supporters = static_cast<std::size_t>(
      std::ranges::count_if(facts.ends, [&](const Duration& end) { return end >= facts.until; }));
  if (supporters >= quorum_) return;
  violate("deadline",
          fmt::format("{} is relied on until {:.3f} ms, and only {} servers keep it for so long",
                      name_of(token), in_ms(facts.until), supporters));
}

void Referee::finish(Facts& facts) const {
  facts.over = true;
  facts.until = std::min(facts.until, timeline_.now());
}

/// Whether another lease can have a quorum, because enough servers do not have this one.
bool Referee::may_be_taken(const std::string& token, const Facts& facts) const {
  std::uint32_t votes = 0;
  std::uint32_t keepers = 0;
  for (Server* server : servers_) {
    votes |= bit_of(*server);
    if (has(standing_at(*server), token, facts)) keepers |= bit_of(*server);
  }
  return is_quorum(votes & ~keepers);
}

/// Nothing runs under the lease: its holder was killed, it was released by hand at some servers,
/// and at others it ended sooner, as the holder knew. Or it was released by hand beside users, who
/// have ended before its holder learned of that.
bool Referee::is_abandoned(const std::string& token, const Facts& facts) const {
  return (facts.orphaned || facts.handed_over) && facts.released_by_hand != 0 &&
         may_be_taken(token, facts);
}

bool Referee::was_broken(const Process& process) const {
  return std::ranges::any_of(facts_, [&](const auto& known) {
    return known.second.process == &process && !known.second.granted && known.second.broken != 0;
  });
}

/// One of several attempts that a server has not read yet may be read apart from its undo. A
/// process that takes over the undo repeats it for one ttl only.
bool Referee::is_given_up(const Facts& facts, const Server& server) const {
  if (timeline_.now() < facts.asked_at + facts.ttl) return false;
  const auto unread = std::ranges::count_if(facts_, [&](const auto& known) {
    return known.second.process == facts.process && (known.second.told & bit_of(server)) == 0;
  });
  return unread > 1;
}

void Referee::check_overlap(const std::string& token, const Facts& facts) {
  // An extension may be confirmed after the lease ended, when no holder relies on it.
  if (facts.over || facts.until <= timeline_.now() || is_abandoned(token, facts)) return;
  for (const auto& [other, theirs] : facts_) {
    if (token_in(other) == token_in(token) || !is_valid(theirs) || may_be_together(facts, theirs))
      continue;
    if (is_abandoned(other, theirs)) continue;
    violate("exclusion", fmt::format("{} until {:.3f} ms, and {} until {:.3f} ms", name_of(other),
                                     in_ms(theirs.until), name_of(token), in_ms(facts.until)));
  }
}

bool Referee::may_be_together(const Facts& one, const Facts& other) {
  const bool share = one.hold.shared && other.hold.shared;
  const std::set<std::string> taken = slots_of(other.hold);
  const bool are_alike = one.hold.slots.empty() || other.hold.slot_names.empty();
  const bool are_alike_too = one.hold.slot_names.empty() || other.hold.slots.empty();
  return share && are_alike && are_alike_too &&
         std::ranges::none_of(slots_of(one.hold),
                              [&](const std::string& slot) { return taken.contains(slot); });
}

Referee::Votes Referee::votes_of(const Facts& facts) {
  const auto found = facts.votes.find(slots_of(facts.hold));
  return found == facts.votes.end() ? Votes{} : found->second;
}

/// A holder that stood still may learn of its grant after later ones were granted, if its server
/// forgot it.
void Referee::check_fence(const std::string& token, const Facts& facts) {
  if (facts.over) return;
  const std::size_t quorum_at = votes_of(facts).quorum_at;
  for (const auto& [other, theirs] : facts_) {
    const bool is_ours = theirs.granted && theirs.process != nullptr;
    if (other == token || !is_ours || may_be_together(facts, theirs)) continue;
    const bool is_later = votes_of(theirs).quorum_at > quorum_at;
    if (is_later ? facts.fence < theirs.fence : facts.fence > theirs.fence) continue;
    violate("fence", fmt::format("{} has {}, and {} one has {}", name_of(token), facts.fence.text(),
                                 is_later ? "a later" : "an earlier", theirs.fence.text()));
  }
}

/// Until when it keeps a quorum from others.
Duration Referee::kept_until(const Facts& facts) const {
  std::array<Duration, max_servers> ends = facts.ends;
  std::ranges::sort(ends, std::greater<>());
  return ends[quorum_ - 1];
}

Duration Referee::busy_until(const Process& but) const {
  Duration last = orphaned_until_;
  for (const auto& [token, facts] : facts_) {
    if (facts.granted) last = std::max(last, facts.until);
    if (!facts.granted && facts.process != &but) last = std::max(last, kept_until(facts));
  }
  return last;
}

Duration Referee::kept_out_until(const Mode& mode, const Process& process) const {
  Duration last = orphaned_until_;
  std::vector<const Facts*> in_slots;
  for (const auto& [token, facts] : facts_) {
    if (!facts.granted || facts.process == &process) continue;
    const bool is_beside = mode.shared && facts.hold.shared;
    // A lease left to expire keeps others out for longer than its holder may rely on it.
    const Duration until =
        facts.left_to_expire ? std::max(facts.until, kept_until(facts)) : facts.until;
    if (!is_beside) last = std::max(last, until);
    if (mode.slots > 0 && !slots_of(facts.hold).empty()) in_slots.push_back(&facts);
  }
  // Others were kept out until this lease ended if too many slots were taken just before.
  for (const Facts* ending : in_slots) {
    const Duration end = std::min(ending->until, timeline_.now());
    std::size_t taken = 0;
    for (const Facts* other : in_slots) {
      if (other->granted_at >= end || other->until < end) continue;
      // A client counts all slots by number, and of those by name the ones in its list.
      taken += static_cast<std::size_t>(std::ranges::count_if(
          slots_of(other->hold),
          [&](const std::string& slot) { return mode.only.empty() || is_in(mode, slot); }));
    }
    if (taken + mode.take > mode.slots) last = std::max(last, end);
  }
  return last;
}

}  // namespace redlock::sim
