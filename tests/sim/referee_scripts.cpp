// Actions of the servers.
#include "referee.hpp"

#include <algorithm>

#include "core/protocol.hpp"
#include "store/local/keyspace.hpp"
#include "store/owner_record.hpp"
#include "support/digest.hpp"
#include "support/number.hpp"
#include "support/text.hpp"

namespace redlock::sim {
namespace {

/// The value of the key of a shared lock.
constexpr std::string_view shared_marker = "redlock:shared";

/// The fence counter outlives the last use of a lease by at least this (PROTOCOL K3).
constexpr std::chrono::hours counter_life{30 * 24};

bool says(const Reply& reply, std::string_view word) {
  return reply.type == Reply::Type::array && !reply.elements.empty() &&
         reply.elements[0].text == word;
}

/// The number in a script's argument or a part of its reply; throws if it is not one.
template <class Number = std::int64_t>
Number number_in(std::string_view text) {
  return whole_number<Number>(text).value();
}

Fence fence_in(std::string_view text) {
  return Fence(number_in<std::uint64_t>(text));
}

/// The value of a key; null when the key is missing or has another type.
template <class Type>
const Type* value_at(Server& server, const std::string& key) {
  const local::Entry* entry = server.keyspace().find(key);
  return entry != nullptr ? std::get_if<Type>(&entry->value) : nullptr;
}

/// The lease whose share this is: one in several slots has a share in each.
std::string lease_of(const std::string& share) {
  return share.substr(0, share.find(protocol::word::part_sign));
}

std::set<std::string> slots_in(std::string_view text) {
  std::set<std::string> slots;
  while (!text.empty()) slots.emplace(next_word(text, ','));
  return slots;
}

/// The slots that the script granted: it tells their positions in the list of the client, if that
/// has one.
std::set<std::string> granted_slots(const Run& run, const std::string& positions) {
  const std::optional<Owner> owner = decode_owner(run.arguments[3]);
  std::set<std::string> slots;
  for (const std::string& position : slots_in(positions)) {
    const bool has_list = owner && !owner->only.empty();
    slots.insert(has_list ? owner->only.at(number_in<std::size_t>(position)) : position);
  }
  return slots;
}

/// While a slot moves, a script gets the lock's key, and only some helper keys
/// (docs/decisions/deployments.md).
bool goes_alone(const Run& run) {
  return run.keys.size() == 1 || run.keys.size() == protocol::partial;
}

std::string text_of(const Run& run) {
  return fmt::format("{} of {} at s{}", run.script, run.process.name(), run.server.number() + 1);
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

Referee::Standing Referee::standing_at(Server& server) const {
  Standing standing;
  if (server.is_replica()) return standing;
  local::Keyspace& keyspace = server.keyspace();
  if (const local::Entry* entry = keyspace.find(resource_.key())) {
    standing.there = true;
    if (const auto* value = std::get_if<std::string>(&entry->value)) standing.value = *value;
    if (const auto* hash = std::get_if<local::Hash>(&entry->value))
      standing.value = hash->front().first;
    standing.expires = entry->expires;
  }
  standing.recorded = keyspace.find(owner_) != nullptr;
  if (const auto* readers = value_at<local::SortedSet>(server, readers_)) {
    const auto now = static_cast<double>(keyspace.now().count());
    for (const auto& [end, id] : readers->ranking()) {
      if (end > now) standing.shares.emplace(lease_of(id), end);
    }
  }
  if (const auto* slots = value_at<local::Hash>(server, slots_);
      slots != nullptr && !standing.shares.empty()) {
    for (const auto& [slot, id] : *slots) {
      if (standing.shares.contains(lease_of(id))) standing.slots.emplace(slot, lease_of(id));
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
  before_ = standing_at(run.server);
  if (!run.server.is_replica()) check_node(run);
  if (run.script != "acquire" && run.script != "heal") return;
  Facts& facts = facts_[std::string(run.arguments[0])];
  facts.brought_to.insert(&run.server);
  if (run.script == "heal") return;
  facts.process = &run.process;
  facts.supervised = run.arguments[2] == "1";
  facts.ttl = Milliseconds(number_in(run.arguments[1]));
  if (facts.id.empty()) facts.id = sha1_hex(run.arguments[0]);
  const bool queues = !run.arguments[7].empty() && run.arguments[10] != "0";
  if (queues) waiters_[&run.process][std::string(run.arguments[7])].insert(&run.server);
}

void Referee::check_node(const Run& run) {
  for (Server* other : servers_) {
    if (other == &run.server || other->vote() != run.server.vote() || other->is_replica()) continue;
    for (const std::string_view key : run.keys) {
      if (other->keyspace().find(key) == nullptr) continue;
      violate("node",
              fmt::format("{} of {} runs at s{}, and s{} has {}", run.script, run.process.name(),
                          run.server.number() + 1, other->number() + 1, key));
    }
  }
}

void Referee::redirected(Server& server, Process& process, const Reply& error) {
  history_.add("s{} answers {}: {}", server.number() + 1, process.name(), text_of(error));
  broken_links_.insert({&process, &server});
}

/// What the old node was told of a lease no longer counts. At the new node the lease may end
/// sooner, or, by a clock that is behind, later than was promised.
void Referee::moved(Server& from, Server& to) {
  const Standing standing = standing_at(to);
  history_.add("s{} hands its keys to s{}", from.number() + 1, to.number() + 1);
  for (auto& [token, facts] : facts_) {
    facts.brought_to.erase(&from);
    if (!has(standing, token, facts)) continue;
    Duration& end = facts.ends[to.vote()];
    end = std::min(end, end_of(to, facts, standing));
  }
  for (auto& [process, waiters] : waiters_) {
    for (auto& [waiter, nodes] : waiters) nodes.erase(&from);
  }
}

void Referee::after(const Run& run, const Reply& reply) {
  if (run.keys.front() != resource_.key()) return;
  if (history_.on()) {
    const bool has_token = run.arguments[0].size() == Token::digits;
    history_.add("s{} runs {} of {}{}{} -> {}", run.server.number() + 1, run.script,
                 run.process.name(), has_token ? " for " : "",
                 has_token ? run.arguments[0].substr(0, 4) : "", text_of(reply));
  }
  const Standing after = standing_at(run.server);
  // A refused request is repeated, perhaps by another process; so is an undo of a share with the
  // lock's key alone.
  const bool undoes_alone = run.script == "undo" && goes_alone(run) && !after.shares.empty();
  if (reply.type == Reply::Type::error || undoes_alone)
    broken_links_.insert({&run.process, &run.server});
  // A replica refuses every change, and its data is judged at its master.
  if (run.server.is_replica()) return;
  check_script(run, before_, after, reply);
  check_expiries(run, after);
  if (reply.type != Reply::Type::error) {
    note_undo_elsewhere(run);
    note_late_entry(run);
  }
  // Even if it was refused the lock, for example by an unusable counter: the server knows of it.
  if (run.script == "acquire") note_superseder(run, reply);
  if (run.script == "dismiss" && reply.type != Reply::Type::error) note_dismissal(run);
  if (run.script == "release" && reply.type != Reply::Type::error) check_requeued(run);
  if (run.script == "break_lock" || run.script == "release") note_removals(run, before_, after);
  if (run.script == "heal") {
    const std::string token(run.arguments[0]);
    Facts& facts = facts_[token];
    if (!has(before_, token, facts) && has(after, token, facts)) {
      facts.broken &= ~bit_of(run.server);
      check_tombstone(run, facts);
    }
  }
}

void Referee::check_script(const Run& run, const Standing& before, const Standing& after,
                           const Reply& reply) {
  const bool same =
      before.there == after.there && before.value == after.value && before.expires == after.expires;
  if (run.script == "inspect" || run.script == "ask" || run.script == "leave" ||
      run.script == "raise_fence") {
    if (!same || before.shares != after.shares)
      violate("theft", text_of(run) + " changed who holds the lock");
    if (run.script != "raise_fence") return;
  }
  if (run.script == "break_lock") {
    // The condition of a schedule is always a fence that no lease has.
    if (!run.arguments[0].empty() && before.there && !after.there)
      violate("theft", "a lock with another fence was broken");
    return;
  }
  const std::string token(run.arguments[0]);
  Facts& facts = facts_[token];
  const bool ours = has(before, token, facts);
  if (before.there && before.value != shared_marker && before.value != token && !same) {
    violate("theft", text_of(run) + " changed the lock of " + name_of(before.value));
  }
  const bool gives_ttl = says(reply, "granted") || says(reply, "extended") || says(reply, "healed");
  if (gives_ttl && !goes_alone(run)) {
    Milliseconds& longest = facts.max_ttls[run.server.vote()];
    longest = std::max(longest, Milliseconds(number_in(run.arguments[1])));
  }
  check_shares(run, facts, before, after);
  check_slots(run, facts, before, after, reply);
  if (says(reply, "granted") || says(reply, "extended")) check_counter(run);
  if (run.script == "extend" && goes_alone(run)) {
    if (ours) facts.extended_alone |= bit_of(run.server);
    if (!ours) facts.sought_alone = true;
  }
  if (!ours && has(after, token, facts) && run.script != "acquire" && run.script != "heal") {
    violate("resurrection", text_of(run) + " brought " + name_of(token) + " back");
  }
  if (says(reply, "granted")) {
    Votes& votes = facts.votes[granted_slots(run, reply.elements[3].text)];
    votes.servers |= bit_of(run.server);
    if (votes.quorum_at == 0 && is_quorum(votes.servers)) votes.quorum_at = scripts_;
    if (!has(after, token, facts)) violate("grant", text_of(run) + " granted nothing");
    const Fence fence = fence_in(reply.elements[1].text);
    // Of two grants, the process learned of the first: the other came after its decision.
    if (!facts.granted_fences[run.server.vote()]) facts.granted_fences[run.server.vote()] = fence;
    facts.known_fences[run.server.vote()] = fence;
  }
  if (says(reply, "raised")) {
    if (!has(after, token, facts))
      violate("fence", text_of(run) + " raised the fence without the lease");
    Fence& known = facts.known_fences[run.server.vote()];
    known = std::max(known, fence_in(run.arguments[1]));
  }
  if (says(reply, "healed")) check_healed(run, facts);
  Duration& end = facts.ends[run.server.vote()];
  // A refused script promised nothing.
  if (has(after, token, facts) && reply.type != Reply::Type::error) note_end(run, facts, after);
  if (!facts.granted && !has(after, token, facts)) end = std::min(end, timeline_.now());
  if (run.script == "extend" && ours && before.value == token && after.expires < before.expires &&
      is_too_short(run, facts, *after.expires)) {
    violate("shortening", text_of(run) + " brought the end nearer");
  }
  if (run.script == "release" && ours && !has(after, token, facts) && run.arguments[1] == "1" &&
      facts.supervised && !goes_alone(run)) {
    facts.released_unrecorded =
        (facts.extended_alone & bit_of(run.server)) != 0 && !before.recorded;
    if (!facts.released_unrecorded)
      violate("theft", text_of(run) + " by hand removed a lease that a process keeps");
  }
}

bool Referee::is_too_short(const Run& run, const Facts& facts, Milliseconds end) {
  // Only a clock that was set back lets a lease last longer than was requested.
  return end < run.server.keyspace().now() + facts.max_ttls[run.server.vote()];
}

void Referee::check_shares(const Run& run, const Facts& facts, const Standing& before,
                           const Standing& after) {
  for (const auto& [id, end] : before.shares) {
    const auto found = after.shares.find(id);
    if (id != facts.id && (found == after.shares.end() || found->second != end))
      violate("theft", text_of(run) + " changed another's share");
    if (id == facts.id && run.script == "extend" && found != after.shares.end() &&
        found->second < end &&
        is_too_short(run, facts, Milliseconds(static_cast<Milliseconds::rep>(found->second)))) {
      violate("shortening", text_of(run) + " brought the end nearer");
    }
  }
  if (!after.shares.empty() && before.there && !after.there)
    violate("theft", text_of(run) + " removed the marker of a shared lock");
  if (!after.shares.empty() && after.there && after.value != shared_marker &&
      before.value != after.value) {
    violate("theft", text_of(run) + " locked out the readers of a shared lock");
  }
}

void Referee::check_slots(const Run& run, const Facts& facts, const Standing& before,
                          const Standing& after, const Reply& reply) {
  for (const auto& [slot, id] : before.slots) {
    const auto found = after.slots.find(slot);
    if (found != after.slots.end() && found->second != id)
      violate("theft", text_of(run) + " changed the holder of a slot");
  }
  if (run.script != "extend") return;
  const bool undone = (facts.strays & bit_of(run.server)) == 0 || facts.process != &run.process ||
                      broken_links_.contains({&run.process, &run.server}) ||
                      !run.process.has_delivered_all_to(run.server);
  const auto slots_at = [&](const Standing& standing) {
    std::set<std::string> slots;
    for (const auto& [slot, id] : standing.slots) {
      if (id == facts.id) slots.insert(slot);
    }
    return slots;
  };
  const std::set<std::string> wanted = slots_in(run.arguments[2]);
  const std::set<std::string> found = slots_at(before);
  if (!undone && !found.empty() && found != wanted)
    violate("slot", text_of(run) + " finds a slot that was to be undone");
  if (!says(reply, "extended")) return;
  if (const std::set<std::string> in = slots_at(after); in != wanted)
    violate("slot", fmt::format("{} counts for {} and has {}", text_of(run), fmt::join(wanted, ","),
                                fmt::join(in, ",")));
}

void Referee::check_counter(const Run& run) {
  if (goes_alone(run)) return;
  const local::Entry* counter = run.server.keyspace().find(counter_);
  if (counter == nullptr || !counter->expires) return;
  if (*counter->expires >= run.server.keyspace().now() + counter_life) return;
  violate("expiry", text_of(run) + " lets the fence counter end too soon");
}

void Referee::check_requeued(const Run& run) {
  const std::string_view waiter = run.arguments[3];
  if (waiter.empty() || goes_alone(run)) return;
  const auto* queue = value_at<local::SortedSet>(run.server, queue_);
  if (queue != nullptr && queue->score(waiter)) return;
  violate("queue", fmt::format("{} undoes an attempt at s{} and loses its position in the queue",
                               run.process.name(), run.server.number() + 1));
}

void Referee::note_superseder(const Run& run, const Reply& reply) {
  const std::string waiter(run.arguments[7]);
  if (run.arguments[11] != "1") return;
  if (waiter.empty()) {
    const bool granted = !reply.elements.empty() && reply.elements.front().text == "granted";
    if (granted) violate("superseded", text_of(run) + " is granted without a ticket");
    return;
  }
  Superseder& superseder = superseders_[waiter];
  superseder.process = &run.process;
  superseder.ticket = number_in<Ticket>(run.arguments[8]);
  const auto* waiters = value_at<local::Hash>(run.server, waiting_);
  if (waiters == nullptr) return;
  for (const auto& [field, value] : *waiters) {
    const bool is_newest =
        field == "+" && value.starts_with(fmt::format("{} {} ", run.arguments[8], waiter));
    if (is_newest) superseder.servers |= bit_of(run.server);
  }
  if (!superseder.since && is_quorum(superseder.servers)) superseder.since = timeline_.now();
}

void Referee::note_dismissal(const Run& run) {
  if (run.arguments[protocol::argument::dismiss::ticket].empty()) return;
  const auto up_to = number_in<Ticket>(run.arguments[protocol::argument::dismiss::ticket]);
  auto found = std::ranges::find(dismissals_, up_to, &Dismissal::up_to);
  if (found == dismissals_.end()) found = dismissals_.insert(found, Dismissal{up_to});
  found->servers |= bit_of(run.server);
  if (!found->since && is_quorum(found->servers)) found->since = timeline_.now();
}

void Referee::move_address(const Server& server, const Server& to) {
  addresses_lost_ = true;
  stand_ins_.erase(&server);
  if (&server != &to) stand_ins_[&server] = &to;
}

/// A process cannot know that an address has led to another server since its attempt.
void Referee::note_undo_elsewhere(const Run& run) {
  if (run.script != "release" && run.script != "undo") return;
  const auto found = facts_.find(run.arguments[0]);
  if (found == facts_.end()) return;
  for (const auto& [server, stand_in] : stand_ins_) {
    if (stand_in == &run.server && found->second.brought_to.contains(server))
      found->second.undone_elsewhere |= bit_of(*server);
  }
}

/// No `leave` can follow an attempt in flight on a connection that was given up before. The attempt
/// may queue the waiter again after its `leave`, and the first notification then finds no waiter.
void Referee::note_late_entry(const Run& run) {
  const bool acquires = run.script == "acquire";
  if (!run.closed_at || (!acquires && run.script != "release")) return;
  const std::string waiter(run.arguments[acquires ? 7 : 3]);
  const auto left = left_at_.find({waiter, run.server.vote()});
  if (left != left_at_.end() && *run.closed_at < left->second)
    late_entries_.insert({waiter, &run.server});
}

void Referee::check_healed(const Run& run, const Facts& facts) {
  const auto* counter = value_at<std::string>(run.server, counter_);
  const auto known = counter != nullptr ? Fence::from_text(*counter) : Fence();
  // An unusable counter is left as it is.
  if (!known || *known >= facts.fence) return;
  violate("fence", fmt::format("s{} was healed without the fence of the lease, {}",
                               run.server.number() + 1, facts.fence.text()));
}

void Referee::check_tombstone(const Run& run, const Facts& facts) {
  // It stops the keeper, but no user of the lease.
  if (!run.arguments[protocol::argument::heal::user].empty()) return;
  const auto* tombstones = value_at<local::SortedSet>(run.server, tombstones_);
  if (tombstones == nullptr || !tombstones->score(facts.id)) return;
  violate("tombstone", fmt::format("s{} was healed although it knows that the lease was released",
                                   run.server.number() + 1));
}

Duration Referee::end_of(const Server& server, const Facts& facts, const Standing& standing) {
  // A share ends at the beginning of its millisecond, a key at the end.
  const auto share = standing.shares.find(facts.id);
  if (share != standing.shares.end()) {
    return server.true_time(Milliseconds(static_cast<std::int64_t>(share->second)));
  }
  return standing.expires ? server.true_time(*standing.expires + Milliseconds(1))
                          : Duration::zero();
}

void Referee::read_ends(const std::string& token, Facts& facts) const {
  for (Server* server : servers_) {
    const Standing standing = standing_at(*server);
    Duration& end = facts.ends[server->vote()];
    if (has(standing, token, facts)) end = std::max(end, end_of(*server, facts, standing));
  }
}

void Referee::note_end(const Run& run, Facts& facts, const Standing& after) {
  const Duration end_here = end_of(run.server, facts, after);
  Duration& end = facts.ends[run.server.vote()];
  // A release that leaves the lease to expire brings its end nearer.
  end = run.script == "release" ? end_here : std::max(end, end_here);
  if (run.process.ended()) orphaned_until_ = std::max(orphaned_until_, end_here);
}

void Referee::check_expiries(const Run& run, const Standing& after) {
  for (const auto& [key, entry] : run.server.keyspace().all()) {
    if (entry.expires || std::ranges::find(run.keys, key) == run.keys.end()) continue;
    // The key of a foreign client may last for ever.
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
    if (facts.handed_over && !by_force && run.arguments[0] == token && has(before, token, facts))
      facts.released_by_hand |= bit_of(run.server);
    if (!has(before, token, facts) || has(after, token, facts)) continue;
    const bool is_lost = may_be_taken(token, facts);
    if (is_lost) finish(facts);
    if (is_lost && by_force) finish_users(token);
    (by_force ? facts.broken : facts.released_by_hand) |= bit_of(run.server);
    if (goes_alone(run)) facts.released_alone = true;
    if (!facts.broken_since && is_quorum(facts.broken)) facts.broken_since = timeline_.now();
  }
}

void Referee::saw_end(Server& server, Process& process, bool read_all) {
  if (!read_all) unread_ends_.insert({&process, &server});
  if (!finished_.contains(&process) || broken_links_.contains({&process, &server}) ||
      !process.is_done_at(server))
    return;
  const Standing standing = standing_at(server);
  const auto heir = heirs_.find(&process);
  const Process* const owner = heir == heirs_.end() ? &process : heir->second;
  if (!owner->is_done_at(server)) return;
  // A process that goes on undoing has not finished.
  const auto is_at_work = [&](const auto& known) {
    return known.second == owner && !finished_.contains(known.first);
  };
  if (std::ranges::any_of(heirs_, is_at_work)) return;
  const auto* queue = value_at<local::SortedSet>(server, queue_);
  for (const auto& [waiter, nodes] : waiters_[&process]) {
    if (unread_ends_.contains({&process, &server}) || !nodes.contains(&server)) continue;
    if ((scripts_lost_ & bit_of(server)) != 0) break;
    if (queue == nullptr || !queue->score(waiter)) continue;
    if (late_entries_.contains({waiter, &server})) continue;
    violate("queue", fmt::format("s{} keeps {} in the queue, although it is gone",
                                 server.number() + 1, process.name()));
  }
  for (const auto& [token, facts] : facts_) {
    if (facts.process != owner || !has(standing, token, facts)) continue;
    if (!facts.brought_to.contains(&server)) continue;
    if (has_outlived(facts, server)) continue;
    // A process that undoes for the owner does not know of grants that did not reach the owner.
    const bool is_unknown = (facts.told & bit_of(server)) == 0;
    if (is_unknown && broken_links_.contains({owner, &server})) continue;
    if (facts.granted && (facts.shared || !facts.gone_everywhere)) continue;
    if (!facts.granted && (facts.release_requested || is_given_up(facts, server))) continue;
    if (!facts.granted && (facts.undone_elsewhere & bit_of(server)) != 0) continue;
    violate("ghost", fmt::format("s{} keeps {}, which was {}", server.number() + 1, name_of(token),
                                 facts.granted ? "released" : "an attempt that failed"));
  }
}

void Referee::lose_marker(Server& server) {
  const Standing standing = standing_at(server);
  if (standing.there && standing.value == shared_marker && !standing.shares.empty())
    server.keyspace().erase(resource_.key());
}

bool Referee::is_held_since(const std::string& token, const Facts& facts, Duration began) const {
  // A lease released by hand at some servers may have expired at the others.
  return is_valid(facts) && facts.granted_at < began && facts.process != nullptr &&
         !may_be_taken(token, facts);
}

void Referee::asked(const LeaseId& id, bool is_gone, Duration began) {
  history_.add("{} was asked to stop{}", id.text.substr(0, 4), is_gone ? ", and is gone" : "");
  if (!is_gone || data_lost_) return;
  for (const auto& [token, facts] : facts_) {
    if (facts.id == id.text && is_held_since(token, facts, began))
      violate("stop", name_of(token) + " is said to be gone");
  }
}

void Referee::inspected(const Inspection& inspection, Duration began) {
  const auto held_all_the_time = [&](const auto& known) {
    return is_held_since(known.first, known.second, began);
  };
  const auto held = std::ranges::find_if(facts_, held_all_the_time);
  history_.add("an inspection shows that the lock is {}",
               inspection.state == InspectState::free ? "free"
               : inspection.holder                    ? "held"
                                                      : "in some other state");
  if (held == facts_.end() || data_lost_) return;
  if (inspection.state == InspectState::free)
    violate("inspect", name_of(held->first) + " holds what is shown as free");
  if (inspection.state != InspectState::held || held->second.hold.shared) return;
  if (inspection.holder->id.text != held->second.id)
    violate("inspect", name_of(held->first) + " holds what another is shown to hold");
}

}  // namespace redlock::sim
