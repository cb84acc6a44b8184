#include "referee.hpp"

#include <algorithm>
#include <bit>

#include "store/local/digest.hpp"
#include "store/local/keyspace.hpp"

namespace redlock::sim {
namespace {

/// What lies under a lock that is shared.
constexpr std::string_view shared_marker = "redlock:shared";

std::uint32_t bit_of(const Server& server) {
  return std::uint32_t{1} << server.number();
}

bool says(const Reply& reply, std::string_view word) {
  return reply.type == Reply::Type::array && !reply.elements.empty() && reply.elements[0].text == word;
}

std::string text_of(const Reply& reply) {
  switch (reply.type) {
    case Reply::Type::nil:
      return "nil";
    case Reply::Type::integer:
      return std::to_string(reply.integer);
    case Reply::Type::text:
    case Reply::Type::status:
    case Reply::Type::error:
      return reply.text.substr(0, 60);
    case Reply::Type::array:
      break;
  }
  std::string text;
  for (const Reply& element : reply.elements) text += (text.empty() ? "" : " ") + text_of(element).substr(0, 16);
  return text;
}

}  // namespace

std::string Referee::name_of(const std::string& token) const {
  const auto found = facts_.find(token);
  const std::string owner = found != facts_.end() && found->second.process != nullptr ? found->second.process->name() : "foreign";
  return owner + "/" + token.substr(0, 4);
}

void Referee::violate(std::string rule, std::string text) {
  if (violation_) return;
  history_.add("VIOLATION of {}: {}", rule, text);
  violation_ = Violation{std::move(rule), std::move(text)};
}

bool Referee::is_quorum(std::uint32_t servers) const {
  return static_cast<std::size_t>(std::popcount(servers)) >= quorum_;
}

Referee::Standing Referee::look(Server& server) const {
  Standing standing;
  local::Keyspace& keyspace = server.keyspace();
  if (const local::Entry* entry = keyspace.find(resource_.key())) {
    standing.there = true;
    if (const auto* value = std::get_if<std::string>(&entry->value)) standing.value = *value;
    if (const auto* hash = std::get_if<local::Hash>(&entry->value)) standing.value = hash->front().first;
    standing.expires = entry->expires;
  }
  if (const local::Entry* entry = keyspace.find(readers_)) {
    const auto now = static_cast<double>(keyspace.now().count());
    for (const auto& [end, id] : std::get<local::SortedSet>(entry->value).ranking()) {
      if (end > now) standing.shares.emplace(id, end);
    }
  }
  return standing;
}

bool Referee::has(const Standing& standing, const std::string& token, const Facts& facts) {
  return (standing.there && standing.value == token) || standing.shares.contains(facts.id);
}

void Referee::before(const Run& run) {
  ++scripts_;
  if (run.keys.front() != resource_.key()) return;
  before_ = look(run.server);
  if (run.script == "acquire") {
    Facts& facts = facts_[run.arguments[0]];
    facts.process = &run.process;
    facts.supervised = run.arguments[3] == "1";
    if (facts.id.empty()) facts.id = local::sha1_hex(run.arguments[0]);
  }
}

void Referee::after(const Run& run, const Reply& reply) {
  if (run.keys.front() != resource_.key()) return;
  if (history_.on()) {
    const bool has_token = run.arguments[0].size() == Token::digits;
    history_.add("s{} runs {} of {}{} -> {}", run.server.number() + 1, run.script, run.process.name(),
                 has_token ? " for " + run.arguments[0].substr(0, 4) : "", text_of(reply));
  }
  const Standing after = look(run.server);
  check_script(run, before_, after, reply);
  check_expiries(run, after);
  if (run.script == "break_lock" || run.script == "release") note_removals(run, before_, after);
  if (run.script == "heal") {
    Facts& facts = facts_[run.arguments[0]];
    if (!has(before_, run.arguments[0], facts) && has(after, run.arguments[0], facts)) facts.broken &= ~bit_of(run.server);
  }
}

void Referee::check_script(const Run& run, const Standing& before, const Standing& after, const Reply& reply) {
  const std::string what = fmt::format("{} of {} at s{}", run.script, run.process.name(), run.server.number() + 1);
  const bool same = before.there == after.there && before.value == after.value && before.expires == after.expires;
  if (run.script == "inspect" || run.script == "leave" || run.script == "raise_fence") {
    if (!same || before.shares != after.shares) violate("theft", what + " changed who holds the lock");
    return;
  }
  if (run.script == "break_lock") {
    // A condition is always one that nobody's lease fulfils.
    if (!run.arguments[0].empty() && before.there && !after.there) violate("theft", "a lock was broken that has another fence");
    return;
  }
  const std::string& token = run.arguments[0];
  Facts& facts = facts_[token];
  const bool ours = has(before, token, facts);
  if (before.there && before.value != shared_marker && before.value != token && !same) {
    violate("theft", what + " changed what is " + name_of(before.value) + "'s");
  }
  check_shares(run, facts, before, after, what);
  if (!ours && has(after, token, facts) && run.script != "acquire" && run.script != "heal") {
    violate("resurrection", what + " brought " + name_of(token) + " back");
  }
  if (says(reply, "granted")) {
    facts.votes[reply.elements[3].integer] |= bit_of(run.server);
    if (!has(after, token, facts)) violate("grant", what + " granted nothing");
  }
  if (run.script == "extend" && ours && before.value == token && after.expires < before.expires) {
    violate("shortening", what + " brought the end nearer");
  }
  if (run.script == "release" && ours && !has(after, token, facts) && run.arguments[1] == "1" && facts.supervised) {
    violate("theft", what + " by hand took a lease from the process that keeps it");
  }
}

void Referee::check_shares(const Run& run, const Facts& facts, const Standing& before, const Standing& after, const std::string& what) {
  for (const auto& [id, end] : before.shares) {
    const auto found = after.shares.find(id);
    if (id != facts.id && (found == after.shares.end() || found->second != end)) violate("theft", what + " changed another's share");
    if (id == facts.id && run.script == "extend" && found != after.shares.end() && found->second < end) {
      violate("shortening", what + " brought the end nearer");
    }
  }
  if (!after.shares.empty() && before.there && !after.there) violate("theft", what + " took the marker from those who share the lock");
  if (!after.shares.empty() && after.there && after.value != shared_marker && before.value != after.value) {
    violate("theft", what + " locked out those who share the lock");
  }
}

void Referee::check_expiries(const Run& run, const Standing& after) {
  for (const std::string& key : run.keys) {
    const local::Entry* entry = run.server.keyspace().find(key);
    if (entry == nullptr || entry->expires) continue;
    // A foreign client's may last for ever.
    if (key == resource_.key() && before_.there && !before_.expires) continue;
    violate("expiry", fmt::format("{} left {} without an end at s{}", run.script, key, run.server.number() + 1));
  }
  if (after.shares == before_.shares || !after.there || after.value != shared_marker) return;
  for (const auto& [id, end] : after.shares) {
    if (after.expires && static_cast<double>(after.expires->count()) < end) violate("expiry", "the marker ends before a share does");
  }
}

void Referee::finish(Facts& facts) const {
  facts.over = true;
  facts.until = std::min(facts.until, timeline_.now());
}

void Referee::note_removals(const Run& run, const Standing& before, const Standing& after) {
  const bool by_force = run.script == "break_lock";
  if (!by_force && run.arguments[1] != "1") return;
  for (auto& [token, facts] : facts_) {
    if (!has(before, token, facts) || has(after, token, facts)) continue;
    finish(facts);
    (by_force ? facts.broken : facts.released_by_hand) |= bit_of(run.server);
    if (!facts.broken_since && is_quorum(facts.broken)) facts.broken_since = timeline_.now();
  }
}

void Referee::saw_end(Server& server, Process& process) {
  if (!finished_.contains(&process) || broken_links_.contains({&process, &server}) || !process.is_done_at(server)) return;
  const Standing standing = look(server);
  for (const auto& [token, facts] : facts_) {
    if (facts.process != &process || !has(standing, token, facts)) continue;
    if (facts.granted && (facts.shared || !facts.gone_everywhere)) continue;
    violate("ghost", fmt::format("s{} keeps {}, which was {}", server.number() + 1, name_of(token),
                                 facts.granted ? "released" : "an attempt that failed"));
  }
}

void Referee::check_overlap(const std::string& token, const Facts& facts) {
  if (facts.over) return;
  for (const auto& [other, theirs] : facts_) {
    if (other == token || !is_valid(theirs)) continue;
    if (facts.hold.shared && theirs.hold.shared && (!facts.hold.seat || facts.hold.seat != theirs.hold.seat)) continue;
    violate("exclusion", fmt::format("{} until {:.3f} ms, and {} until {:.3f} ms", name_of(other), in_ms(theirs.until), name_of(token),
                                     in_ms(facts.until)));
  }
}

void Referee::check_fence(const std::string& token, const Facts& facts) {
  Fence above = facts.hold.shared ? largest_alone_ : largest_;
  if (facts.hold.seat) above = std::max(above, largest_in_seat_[*facts.hold.seat]);
  if (!facts.over && facts.fence <= above) {
    violate("fence", fmt::format("{} has {}, and one that comes before it had {}", name_of(token), facts.fence.text(), above.text()));
  }
  largest_ = std::max(largest_, facts.fence);
  if (!facts.hold.shared) largest_alone_ = std::max(largest_alone_, facts.fence);
  if (facts.hold.seat) largest_in_seat_[*facts.hold.seat] = std::max(largest_in_seat_[*facts.hold.seat], facts.fence);
}

void Referee::granted(Process& process, const Lease& lease) {
  const std::string& token = lease.token.secret();
  Facts& facts = facts_[token];
  facts.process = &process;
  facts.granted = true;
  facts.hold = lease.hold;
  facts.fence = lease.fence;
  facts.until = process.true_time(lease.deadline);
  const std::string how = lease.hold.seat ? fmt::format(" in seat {}", *lease.hold.seat) : lease.hold.shared ? " with others" : "";
  history_.add("{} HOLDS {}{} with fence {} until {:.3f} ms", process.name(), token.substr(0, 4), how, lease.fence.text(),
               in_ms(facts.until));
  ++grants_;
  if (facts.until <= timeline_.now()) violate("grant", name_of(token) + " was over when it was granted");
  const std::uint32_t votes = facts.votes[lease.hold.seat ? static_cast<std::int64_t>(*lease.hold.seat) : -1];
  if (!is_quorum(votes)) violate("quorum", fmt::format("{} has {} votes of {}", name_of(token), std::popcount(votes), quorum_));
  check_overlap(token, facts);
  check_fence(token, facts);
}

void Referee::extended(Process& process, const Token& token, Instant deadline, Duration asked) {
  Facts& facts = facts_[token.secret()];
  const Duration until = process.true_time(deadline);
  history_.add("{} extended {} until {:.3f} ms", process.name(), token.secret().substr(0, 4), in_ms(until));
  facts.until = std::max(facts.until, until);
  if (facts.broken_since && *facts.broken_since < asked && is_quorum(facts.broken)) {
    violate("resurrection", fmt::format("{} was taken away by force at {:.3f} ms and extended by a round that began at {:.3f} ms",
                                        name_of(token.secret()), in_ms(*facts.broken_since), in_ms(asked)));
  }
  check_overlap(token.secret(), facts);
}

void Referee::in_trouble(Process& process, const LeaseInTrouble& trouble) {
  history_.add("{} cannot extend: {} faults", process.name(), trouble.faults.size());
  if (trouble.faults.empty()) violate("trouble", process.name() + " cannot extend though every server answered");
}

void Referee::ended(Process& process, const Token& token, const LeaseEnded& end) {
  const bool lost = end.state == LeaseState::lost;
  const bool by_hand = end.not_ours && end.not_ours->why == NotOurs::Why::released;
  history_.add("{} {} {}{}", process.name(), lost ? "LOST" : "outlived", token.secret().substr(0, 4), by_hand ? ", released by hand" : "");
  Facts& facts = facts_[token.secret()];
  finish(facts);
  const bool was = is_quorum(facts.released_by_hand);
  if (lost && was && !by_hand && facts.broken == 0 && !data_lost_) {
    violate("tombstone", process.name() + " was not told that its lease was released by hand");
  }
}

void Referee::stopped(const Token& token) {
  history_.add("{} stops, releases", name_of(token.secret()));
  finish(facts_[token.secret()]);
}

void Referee::released(const Token& token, const ReleaseResult& result) {
  if (result.decision == ReleaseDecision::released && result.faults.empty()) facts_[token.secret()].gone_everywhere = true;
}

void Referee::foreign_granted(const std::string& value, Duration until) {
  Facts& facts = facts_[value];
  facts.granted = true;
  facts.until = until;
  history_.add("a foreign client HOLDS {} until {:.3f} ms", value.substr(0, 4), in_ms(until));
  check_overlap(value, facts);
}

void Referee::foreign_ended(const std::string& value) {
  history_.add("the foreign client with {} is done", value.substr(0, 4));
  finish(facts_[value]);
}

Duration Referee::busy_until() const {
  Duration last{};
  for (const auto& [token, facts] : facts_) {
    if (facts.granted) last = std::max(last, facts.until);
  }
  return last;
}

}  // namespace redlock::sim
