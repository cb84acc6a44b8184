// What the servers do.
#include "referee.hpp"

#include <algorithm>
#include <functional>

#include "store/local/keyspace.hpp"
#include "support/digest.hpp"

namespace redlock::sim {
namespace {

/// What lies under a lock that is shared.
constexpr std::string_view shared_marker = "redlock:shared";

/// How long the fence counter outlives the last use of a lease at least (PROTOCOL K3).
constexpr std::chrono::hours counter_life{30 * 24};

bool says(const Reply& reply, std::string_view word) {
  return reply.type == Reply::Type::array && !reply.elements.empty() &&
         reply.elements[0].text == word;
}

Fence fence_in(const std::string& text) {
  return Fence(std::stoull(text));
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
  for (const Reply& element : reply.elements)
    text += (text.empty() ? "" : " ") + text_of(element).substr(0, 16);
  return text;
}

}  // namespace

Referee::Standing Referee::look(Server& server) const {
  Standing standing;
  local::Keyspace& keyspace = server.keyspace();
  if (const local::Entry* entry = keyspace.find(resource_.key())) {
    standing.there = true;
    if (const auto* value = std::get_if<std::string>(&entry->value)) standing.value = *value;
    if (const auto* hash = std::get_if<local::Hash>(&entry->value))
      standing.value = hash->front().first;
    standing.expires = entry->expires;
  }
  if (const local::Entry* entry = keyspace.find(readers_)) {
    const auto now = static_cast<double>(keyspace.now().count());
    for (const auto& [end, id] : std::get<local::SortedSet>(entry->value).ranking()) {
      if (end > now) standing.shares.emplace(id, end);
    }
  }
  if (const local::Entry* entry = keyspace.find(slots_);
      entry != nullptr && !standing.shares.empty()) {
    for (const auto& [slot, id] : std::get<local::Hash>(entry->value)) {
      if (standing.shares.contains(id)) standing.slots.emplace(slot, id);
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
    facts.supervised = run.arguments[2] == "1";
    facts.ttl = Milliseconds(std::stoll(run.arguments[1]));
    if (facts.id.empty()) facts.id = sha1_hex(run.arguments[0]);
    if (!run.arguments[7].empty()) waiters_[&run.process].insert(run.arguments[7]);
  }
}

void Referee::after(const Run& run, const Reply& reply) {
  if (run.keys.front() != resource_.key()) return;
  if (history_.on()) {
    const bool has_token = run.arguments[0].size() == Token::digits;
    history_.add("s{} runs {} of {}{} -> {}", run.server.number() + 1, run.script,
                 run.process.name(), has_token ? " for " + run.arguments[0].substr(0, 4) : "",
                 text_of(reply));
  }
  const Standing after = look(run.server);
  // What was refused is asked for again, perhaps by another process.
  if (reply.type == Reply::Type::error) broken_links_.insert({&run.process, &run.server});
  check_script(run, before_, after, reply);
  check_expiries(run, after);
  if (run.script == "acquire" && reply.type != Reply::Type::error) note_superseder(run);
  if (run.script == "release" && reply.type != Reply::Type::error) check_place(run);
  if (run.script == "break_lock" || run.script == "release") note_removals(run, before_, after);
  if (run.script == "heal") {
    Facts& facts = facts_[run.arguments[0]];
    if (!has(before_, run.arguments[0], facts) && has(after, run.arguments[0], facts)) {
      facts.broken &= ~bit_of(run.server);
      check_tombstone(run, facts);
    }
  }
}

void Referee::check_script(const Run& run, const Standing& before, const Standing& after,
                           const Reply& reply) {
  const std::string what =
      fmt::format("{} of {} at s{}", run.script, run.process.name(), run.server.number() + 1);
  const bool same =
      before.there == after.there && before.value == after.value && before.expires == after.expires;
  if (run.script == "inspect" || run.script == "leave" || run.script == "raise_fence") {
    if (!same || before.shares != after.shares)
      violate("theft", what + " changed who holds the lock");
    if (run.script != "raise_fence") return;
  }
  if (run.script == "break_lock") {
    // A condition is always one that nobody's lease fulfils.
    if (!run.arguments[0].empty() && before.there && !after.there)
      violate("theft", "a lock was broken that has another fence");
    return;
  }
  const std::string& token = run.arguments[0];
  Facts& facts = facts_[token];
  const bool ours = has(before, token, facts);
  if (before.there && before.value != shared_marker && before.value != token && !same) {
    violate("theft", what + " changed what is " + name_of(before.value) + "'s");
  }
  check_shares(run, facts, before, after, what);
  check_slots(run, facts, before, after, reply, what);
  if (says(reply, "granted") || says(reply, "extended")) check_counter(run, what);
  if (!ours && has(after, token, facts) && run.script != "acquire" && run.script != "heal") {
    violate("resurrection", what + " brought " + name_of(token) + " back");
  }
  if (says(reply, "granted")) {
    Votes& votes = facts.votes[reply.elements[3].integer];
    votes.servers |= bit_of(run.server);
    if (votes.quorum_at == 0 && is_quorum(votes.servers)) votes.quorum_at = scripts_;
    if (!has(after, token, facts)) violate("grant", what + " granted nothing");
    const Fence fence = fence_in(reply.elements[1].text);
    // Of two it notified of the first: the other came behind its decision.
    if (!facts.granted_fences[run.server.number()])
      facts.granted_fences[run.server.number()] = fence;
    facts.known_fences[run.server.number()] = fence;
  }
  if (says(reply, "raised")) {
    if (!has(after, token, facts)) violate("fence", what + " raised the fence without the lease");
    Fence& known = facts.known_fences[run.server.number()];
    known = std::max(known, fence_in(run.arguments[1]));
  }
  if (says(reply, "healed")) check_healed(run, facts);
  Duration& end = facts.ends[run.server.number()];
  if (has(after, token, facts)) note_end(run, facts, after);
  if (!facts.granted && !has(after, token, facts)) end = std::min(end, timeline_.now());
  if (run.script == "extend" && ours && before.value == token && after.expires < before.expires) {
    violate("shortening", what + " brought the end nearer");
  }
  if (run.script == "release" && ours && !has(after, token, facts) && run.arguments[1] == "1" &&
      facts.supervised) {
    violate("theft", what + " by hand took a lease from the process that keeps it");
  }
}

void Referee::check_shares(const Run& run, const Facts& facts, const Standing& before,
                           const Standing& after, const std::string& what) {
  for (const auto& [id, end] : before.shares) {
    const auto found = after.shares.find(id);
    if (id != facts.id && (found == after.shares.end() || found->second != end))
      violate("theft", what + " changed another's share");
    if (id == facts.id && run.script == "extend" && found != after.shares.end() &&
        found->second < end) {
      violate("shortening", what + " brought the end nearer");
    }
  }
  if (!after.shares.empty() && before.there && !after.there)
    violate("theft", what + " took the marker from those who share the lock");
  if (!after.shares.empty() && after.there && after.value != shared_marker &&
      before.value != after.value) {
    violate("theft", what + " locked out those who share the lock");
  }
}

void Referee::check_slots(const Run& run, const Facts& facts, const Standing& before,
                          const Standing& after, const Reply& reply, const std::string& what) {
  for (const auto& [slot, id] : before.slots) {
    const auto found = after.slots.find(slot);
    if (found != after.slots.end() && found->second != id)
      violate("theft", what + " changed whose slot it is");
  }
  if (run.script != "extend") return;
  const bool undone = (facts.strays & bit_of(run.server)) == 0 || facts.process != &run.process ||
                      broken_links_.contains({&run.process, &run.server}) ||
                      !run.process.is_heard_by(run.server);
  const auto has_other_slot = [&](const auto& entry) {
    return entry.second == facts.id && entry.first != run.arguments[2];
  };
  if (!undone && std::ranges::any_of(before.slots, has_other_slot))
    violate("slot", what + " finds a slot that was to be undone");
  if (!says(reply, "extended")) return;
  const std::string& slot = run.arguments[2];
  const auto ours =
      std::ranges::find(after.slots, facts.id, [](const auto& entry) { return entry.second; });
  const std::string in = ours == after.slots.end() ? "-1" : ours->first;
  if (in != slot)
    violate("slot", fmt::format("{} counts for slot {} and has slot {}", what, slot, in));
}

void Referee::check_counter(const Run& run, const std::string& what) {
  const local::Entry* counter = run.server.keyspace().find(counter_);
  if (counter == nullptr || !counter->expires) return;
  if (*counter->expires >= run.server.keyspace().now() + counter_life) return;
  violate("expiry", what + " lets the fence counter end too soon");
}

void Referee::check_place(const Run& run) {
  const std::string& waiter = run.arguments[3];
  if (waiter.empty()) return;
  const local::Entry* queue = run.server.keyspace().find(queue_);
  if (queue != nullptr && std::get<local::SortedSet>(queue->value).score(waiter)) return;
  violate("line", fmt::format("{} takes something back at s{} and loses its place in the queue",
                              run.process.name(), run.server.number() + 1));
}

void Referee::note_superseder(const Run& run) {
  const std::string& waiter = run.arguments[7];
  if (run.arguments[11] != "1" || waiter.empty()) return;
  Superseder& superseder = superseders_[waiter];
  superseder.process = &run.process;
  superseder.ticket = std::stoull(run.arguments[8]);
  const local::Entry* waiters = run.server.keyspace().find(waiting_);
  if (waiters == nullptr) return;
  for (const auto& [field, value] : std::get<local::Hash>(waiters->value)) {
    const bool is_newest = field == "+" && value.starts_with(run.arguments[8] + " " + waiter + " ");
    if (is_newest) superseder.servers |= bit_of(run.server);
  }
  if (!superseder.since && is_quorum(superseder.servers)) superseder.since = timeline_.now();
}

void Referee::check_healed(const Run& run, const Facts& facts) {
  const local::Entry* counter = run.server.keyspace().find(counter_);
  if (counter != nullptr && fence_in(std::get<std::string>(counter->value)) >= facts.fence) return;
  violate("fence", fmt::format("s{} got a lease back without its fence, {}",
                               run.server.number() + 1, facts.fence.text()));
}

void Referee::check_tombstone(const Run& run, const Facts& facts) {
  const local::Entry* tombstones = run.server.keyspace().find(tombstones_);
  if (tombstones == nullptr || !std::get<local::SortedSet>(tombstones->value).score(facts.id))
    return;
  violate("tombstone", fmt::format("s{} got a lease back of which it knows that it was released",
                                   run.server.number() + 1));
}

Duration Referee::end_of(const Server& server, const Facts& facts, const Standing& standing) {
  // A share ends with that millisecond's beginning, a key with its end.
  const auto share = standing.shares.find(facts.id);
  if (share != standing.shares.end()) {
    return server.true_time(Milliseconds(static_cast<std::int64_t>(share->second)));
  }
  return standing.expires ? server.true_time(*standing.expires + Milliseconds(1))
                          : Duration::zero();
}

void Referee::note_end(const Run& run, Facts& facts, const Standing& after) {
  const Duration end_here = end_of(run.server, facts, after);
  Duration& end = facts.ends[run.server.number()];
  end = std::max(end, end_here);
  if (run.process.ended()) orphaned_until_ = std::max(orphaned_until_, end_here);
}

void Referee::check_expiries(const Run& run, const Standing& after) {
  for (const std::string& key : run.keys) {
    const local::Entry* entry = run.server.keyspace().find(key);
    if (entry == nullptr || entry->expires) continue;
    // A foreign client's may last for ever.
    if (key == resource_.key() && before_.there && !before_.expires) continue;
    violate("expiry", fmt::format("{} left {} without an end at s{}", run.script, key,
                                  run.server.number() + 1));
  }
  if (after.shares == before_.shares || !after.there || after.value != shared_marker) return;
  for (const auto& [id, end] : after.shares) {
    if (after.expires && static_cast<double>(after.expires->count()) < end)
      violate("expiry", "the marker ends before a share does");
  }
}

void Referee::note_removals(const Run& run, const Standing& before, const Standing& after) {
  const bool by_force = run.script == "break_lock";
  if (!by_force && run.arguments[1] != "1") return;
  for (auto& [token, facts] : facts_) {
    if (!has(before, token, facts) || has(after, token, facts)) continue;
    if (may_be_taken(token, facts)) finish(facts);
    (by_force ? facts.broken : facts.released_by_hand) |= bit_of(run.server);
    if (!facts.broken_since && is_quorum(facts.broken)) facts.broken_since = timeline_.now();
  }
}

void Referee::saw_end(Server& server, Process& process) {
  if (!finished_.contains(&process) || broken_links_.contains({&process, &server}) ||
      !process.is_done_at(server))
    return;
  const Standing standing = look(server);
  const auto heir = heirs_.find(&process);
  const Process* const owner = heir == heirs_.end() ? &process : heir->second;
  if (!owner->is_done_at(server)) return;
  // Whoever goes on undoing is not through.
  const auto is_at_work = [&](const auto& known) {
    return known.second == owner && !finished_.contains(known.first);
  };
  if (std::ranges::any_of(heirs_, is_at_work)) return;
  const local::Entry* queue = server.keyspace().find(queue_);
  for (const std::string& waiter : waiters_[&process]) {
    // Where its grant took it out of the queue, an earlier attempt may come late and put it back:
    // nobody hears for it then.
    if (has_granted(server, process) || (scripts_lost_ & bit_of(server)) != 0) break;
    if (queue == nullptr || !std::get<local::SortedSet>(queue->value).score(waiter)) continue;
    violate("line", fmt::format("s{} keeps {} in the queue, which is gone", server.number() + 1,
                                process.name()));
  }
  for (const auto& [token, facts] : facts_) {
    if (facts.process != owner || !has(standing, token, facts)) continue;
    if (facts.granted && (facts.shared || !facts.gone_everywhere)) continue;
    if (!facts.granted && (facts.given_back || is_given_up(facts, server))) continue;
    violate("ghost", fmt::format("s{} keeps {}, which was {}", server.number() + 1, name_of(token),
                                 facts.granted ? "released" : "an attempt that failed"));
  }
}

bool Referee::has_granted(const Server& server, const Process& process) const {
  return std::ranges::any_of(facts_, [&](const auto& known) {
    const Facts& facts = known.second;
    if (!facts.granted || facts.process != &process) return false;
    return std::ranges::any_of(facts.votes, [&](const auto& votes) {
      return (votes.second.servers & bit_of(server)) != 0;
    });
  });
}

void Referee::lose_marker(Server& server) {
  const Standing standing = look(server);
  if (standing.there && standing.value == shared_marker && !standing.shares.empty())
    server.keyspace().erase(resource_.key());
}

void Referee::inspected(const Inspection& inspection, Duration began) {
  const auto held_all_the_time = [&](const auto& known) {
    return is_valid(known.second) && known.second.granted_at < began &&
           known.second.process != nullptr;
  };
  const auto held = std::ranges::find_if(facts_, held_all_the_time);
  history_.add("somebody is told that the lock is {}", inspection.state == InspectState::free
                                                           ? "free"
                                                       : inspection.holder ? "held"
                                                                           : "in some other state");
  if (held == facts_.end() || data_lost_) return;
  if (inspection.state == InspectState::free)
    violate("inspect", name_of(held->first) + " holds what is shown as free");
  if (inspection.state != InspectState::held || held->second.hold.shared) return;
  if (inspection.holder->id.text != held->second.id)
    violate("inspect", name_of(held->first) + " holds what another is shown to hold");
}

}  // namespace redlock::sim
