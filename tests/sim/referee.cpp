#include "referee.hpp"

#include <algorithm>
#include <bit>
#include <functional>

#include "store/local/keyspace.hpp"
#include "support/digest.hpp"

namespace redlock::sim {
namespace {

/// What lies under a lock that is shared.
constexpr std::string_view shared_marker = "redlock:shared";

/// Those who are notified gather the notifications of other servers for as long at least.
constexpr std::chrono::microseconds gathering{900};

/// How long the fence counter outlives the last use of a lease at least (PROTOCOL K3).
constexpr std::chrono::hours counter_life{30 * 24};

std::uint32_t bit_of(const Server& server) {
  return std::uint32_t{1} << server.number();
}

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

std::string Referee::name_of(const std::string& token) const {
  const auto found = facts_.find(token);
  const std::string owner = found != facts_.end() && found->second.process != nullptr
                                ? found->second.process->name()
                                : "foreign";
  return owner + "/" + token.substr(0, 4);
}

void Referee::violate(std::string rule, std::string text) {
  if (violation_ || (!judged_.empty() && rule != judged_)) return;
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
    facts.votes[reply.elements[3].integer] |= bit_of(run.server);
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

std::vector<const Referee::Superseder*> Referee::newer_than(const Process& process) const {
  using Place = std::pair<Ticket, std::string>;
  std::optional<Place> own;
  for (const auto& [id, one] : superseders_) {
    if (one.process == &process) own = std::max(own, std::optional(Place(one.ticket, id)));
  }
  std::vector<const Superseder*> newer;
  for (const auto& [id, one] : superseders_) {
    if (own && one.process != &process && Place(one.ticket, id) > *own) newer.push_back(&one);
  }
  return newer;
}

void Referee::gave_way(const Process& process) {
  const auto is_known = [](const Superseder* one) { return one->servers != 0; };
  if (attempts_[&process].without_newer >= quorum_)
    violate("superseded", process.name() + " gives up although a quorum would let it in");
  if (std::ranges::any_of(newer_than(process), is_known)) return;
  violate("superseded", process.name() + " gives up, but nobody newer supersedes it");
}

std::optional<Duration> Referee::superseded_since(const Process& process) const {
  std::optional<Duration> since;
  for (const Superseder* one : newer_than(process)) {
    if (one->since) since = std::min(since.value_or(*one->since), *one->since);
  }
  return data_lost_ ? std::nullopt : since;
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

void Referee::killed(const Process& process) {
  for (const auto& [token, facts] : facts_) {
    if (facts.process != &process) continue;
    for (Server* server : servers_) {
      const Standing standing = look(*server);
      if (!has(standing, token, facts)) continue;
      orphaned_until_ = std::max(orphaned_until_, end_of(*server, facts, standing));
    }
  }
}

void Referee::check_support(const std::string& token, const Facts& facts) {
  if (facts.over) return;
  const auto supporters = static_cast<std::size_t>(
      std::ranges::count_if(facts.ends, [&](const Duration& end) { return end >= facts.until; }));
  if (supporters >= quorum_) return;
  violate("deadline",
          fmt::format("{} is relied on until {:.3f} ms, and only {} servers keep it for so long",
                      name_of(token), in_ms(facts.until), supporters));
}

void Referee::attempts(const Process& process, const Token& token, std::optional<Ticket> ticket) {
  Attempts& attempts = attempts_[&process];
  if (attempts.token == token.secret()) return;
  const Attempts last = std::exchange(attempts, Attempts{});
  facts_[token.secret()].process = &process;
  facts_[token.secret()].asked_at = timeline_.now();
  attempts.token = token.secret();
  const Calls calls = std::exchange(calls_[&process], Calls{});
  if (ticket && calls.servers != 0 && !is_quorum(calls.servers) &&
      timeline_.now() < calls.first + gathering)
    ++hasty_attempts_;
  attempts.outages =
      !last.token.empty() && last.last_tickets.size() < quorum_ ? last.outages + 1 : 0;
  attempts.queued = last.queued || ticket;
  if (!ticket) return;
  if (attempts.outages >= 2)
    violate("line", process.name() + " stays in the queue though no quorum answers it");
  // One that answered behind the decision could not be asked.
  const auto behind =
      std::ranges::count_if(last.last_tickets, [&](Ticket largest) { return largest < *ticket; });
  if (!last.queued && static_cast<std::size_t>(behind) < quorum_) {
    violate("line", process.name() + " draws a ticket that is not behind those in the queue");
  }
}

void Referee::hears_answer(const Process& process, const Token& token, const QueueStatus& line) {
  Attempts& attempts = attempts_[&process];
  if (attempts.token == token.secret())
    attempts.last_tickets.push_back(line.max_ticket.value_or(0));
  if (attempts.token == token.secret() && line.superseder.empty()) ++attempts.without_newer;
}

void Referee::hears_call(const Process& process, std::size_t server, Notification call) {
  if (call != Notification::granted && call != Notification::recheck) return;
  Calls& calls = calls_[&process];
  if (calls.servers == 0) calls.first = timeline_.now();
  calls.servers |= std::uint32_t{1} << server;
}

Duration Referee::begins_to_extend(const Process& process, const Token& token) {
  Round& round = rounds_[{&process, token.secret()}];
  if (round.began != timeline_.now()) round = Round{timeline_.now(), 0};
  return round.began;
}

void Referee::hears_extended(const Process& process, const Token& token, Duration began,
                             std::size_t server) {
  Round& round = rounds_[{&process, token.secret()}];
  if (round.began == began) round.extended |= std::uint32_t{1} << server;
}

void Referee::heals(const Process& process, const Token& token) {
  if (is_quorum(rounds_[{&process, token.secret()}].extended)) return;
  violate("resurrection",
          process.name() +
              " gives its lease back to a server though no quorum extended it in this round");
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

void Referee::finish(Facts& facts) const {
  facts.over = true;
  facts.until = std::min(facts.until, timeline_.now());
}

/// Whether so many servers are free of it that others can have a quorum.
bool Referee::may_be_taken(const std::string& token, const Facts& facts) const {
  const auto free = std::ranges::count_if(
      servers_, [&](Server* server) { return !has(look(*server), token, facts); });
  return static_cast<std::size_t>(free) >= quorum_;
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

bool Referee::was_robbed(const Process& process) const {
  return std::ranges::any_of(facts_, [&](const auto& known) {
    return known.second.process == &process && !known.second.granted && known.second.broken != 0;
  });
}

/// One of several that lay unread at a server need not lie in one read with its undo; whoever goes
/// on undoing does so for a ttl.
bool Referee::is_given_up(const Facts& facts, const Server& server) const {
  if (timeline_.now() < facts.asked_at + facts.ttl) return false;
  const auto unread = std::ranges::count_if(facts_, [&](const auto& known) {
    return known.second.process == facts.process && (known.second.notified & bit_of(server)) == 0;
  });
  return unread > 1;
}

bool Referee::has_granted(const Server& server, const Process& process) const {
  return std::ranges::any_of(facts_, [&](const auto& known) {
    const Facts& facts = known.second;
    if (!facts.granted || facts.process != &process) return false;
    return std::ranges::any_of(
        facts.votes, [&](const auto& votes) { return (votes.second & bit_of(server)) != 0; });
  });
}

void Referee::check_overlap(const std::string& token, const Facts& facts) {
  if (facts.over) return;
  for (const auto& [other, theirs] : facts_) {
    if (other == token || !is_valid(theirs)) continue;
    if (facts.hold.shared && theirs.hold.shared &&
        (!facts.hold.slot || facts.hold.slot != theirs.hold.slot))
      continue;
    violate("exclusion", fmt::format("{} until {:.3f} ms, and {} until {:.3f} ms", name_of(other),
                                     in_ms(theirs.until), name_of(token), in_ms(facts.until)));
  }
}

void Referee::check_fence(const std::string& token, const Facts& facts) {
  Fence above = facts.hold.shared ? largest_alone_ : largest_;
  if (facts.hold.slot) above = std::max(above, largest_in_seat_[*facts.hold.slot]);
  if (!facts.over && facts.fence <= above) {
    violate("fence", fmt::format("{} has {}, and one that comes before it had {}", name_of(token),
                                 facts.fence.text(), above.text()));
  }
  largest_ = std::max(largest_, facts.fence);
  if (!facts.hold.shared) largest_alone_ = std::max(largest_alone_, facts.fence);
  if (facts.hold.slot)
    largest_in_seat_[*facts.hold.slot] = std::max(largest_in_seat_[*facts.hold.slot], facts.fence);
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

void Referee::granted(Process& process, const Lease& lease) {
  const std::string& token = lease.token.secret();
  Facts& facts = facts_[token];
  facts.process = &process;
  facts.granted = true;
  facts.granted_at = timeline_.now();
  if (const auto since = superseded_since(process); since && *since < facts.asked_at)
    violate("superseded", process.name() + " gets the lock although a newer waiter came");
  facts.hold = lease.hold;
  facts.fence = lease.fence;
  facts.until = process.true_time(lease.deadline);
  const std::string how = lease.hold.slot     ? fmt::format(" in slot {}", *lease.hold.slot)
                          : lease.hold.shared ? " with others"
                                              : "";
  history_.add("{} HOLDS {}{} with fence {} until {:.3f} ms", process.name(), token.substr(0, 4),
               how, lease.fence.text(), in_ms(facts.until));
  ++grants_;
  if (facts.until <= timeline_.now())
    violate("grant", name_of(token) + " was over when it was granted");
  const std::uint32_t votes =
      facts.votes[lease.hold.slot ? static_cast<std::int64_t>(*lease.hold.slot) : -1];
  if (!is_quorum(votes))
    violate("quorum",
            fmt::format("{} has {} votes of {}", name_of(token), std::popcount(votes), quorum_));
  const auto below = std::ranges::count_if(
      facts.granted_fences, [&](const auto& fence) { return fence && *fence <= lease.fence; });
  if (static_cast<std::size_t>(below) < quorum_)
    violate("fence", name_of(token) + " has a fence below those of its votes");
  const auto known = std::ranges::count_if(
      facts.known_fences, [&](const Fence& fence) { return fence >= lease.fence; });
  if (static_cast<std::size_t>(known) < quorum_) {
    violate("fence", fmt::format("{} has {}, of which only {} servers know", name_of(token),
                                 lease.fence.text(), known));
  }
  for (std::size_t server = 0; server < facts.heard_slots.size(); ++server) {
    const auto& slot = facts.heard_slots[server];
    if (slot && slot != lease.hold.slot) facts.strays |= std::uint32_t{1} << server;
  }
  check_support(token, facts);
  check_overlap(token, facts);
  check_fence(token, facts);
}

void Referee::extended(Process& process, const Token& token, Instant deadline, Duration asked) {
  Facts& facts = facts_[token.secret()];
  const Duration until = process.true_time(deadline);
  history_.add("{} extended {} until {:.3f} ms", process.name(), token.secret().substr(0, 4),
               in_ms(until));
  if (facts.left_to_expire) return;
  facts.until = std::max(facts.until, until);
  check_support(token.secret(), facts);
  if (facts.broken_since && *facts.broken_since < asked && is_quorum(facts.broken)) {
    violate("resurrection",
            fmt::format("{} was taken away by force at {:.3f} ms and extended by a round that "
                        "began at {:.3f} ms",
                        name_of(token.secret()), in_ms(*facts.broken_since), in_ms(asked)));
  }
  check_overlap(token.secret(), facts);
}

void Referee::in_trouble(Process& process, const LeaseInTrouble& trouble) {
  history_.add("{} cannot extend: {} faults", process.name(), trouble.faults.size());
  if (trouble.faults.empty())
    violate("trouble", process.name() + " cannot extend though every server answered");
}

void Referee::ended(Process& process, const Token& token, const LeaseEnded& end) {
  const bool lost = end.state == LeaseState::lost;
  const bool by_hand = end.not_ours && end.not_ours->why == NotOurs::Why::released;
  history_.add("{} {} {}{}", process.name(), lost ? "LOST" : "outlived",
               token.secret().substr(0, 4), by_hand ? ", released by hand" : "");
  Facts& facts = facts_[token.secret()];
  finish(facts);
  const bool was = is_quorum(facts.released_by_hand);
  if (lost && was && !by_hand && facts.broken == 0 && !data_lost_) {
    violate("tombstone", process.name() + " was not told that its lease was released by hand");
  }
}

void Referee::stopped(const Process& process, const Token& token, Duration expire_in) {
  Facts& facts = facts_[token.secret()];
  history_.add("{} stops, releases{}", name_of(token.secret()),
               expire_in > Duration::zero() ? fmt::format(" in {:.3f} ms", in_ms(expire_in)) : "");
  if (expire_in == Duration::zero()) return finish(facts);
  // By the holder's clock, which may be slower than the servers'.
  const Duration left = expire_in - expire_in / 100 - Milliseconds(2);
  facts.until =
      std::min(facts.until, process.true_time(process.now() + std::max(left, Duration::zero())));
  facts.left_to_expire = true;
}

void Referee::relied_on(const Process& process, const Token& token, Instant deadline) {
  Facts facts = facts_[token.secret()];
  facts.until = process.true_time(deadline);
  // A clock that was set back since lets it end later.
  for (Server* server : servers_) {
    const Standing standing = look(*server);
    Duration& end = facts.ends[server->number()];
    if (has(standing, token.secret(), facts)) end = std::max(end, end_of(*server, facts, standing));
  }
  history_.add("{} relies on {} until {:.3f} ms", process.name(), token.secret().substr(0, 4),
               in_ms(facts.until));
  check_support(token.secret(), facts);
}

void Referee::left_nothing(const Process& process) {
  if (addresses_lost_) return;
  for (const auto& [token, facts] : facts_) {
    if (facts.process != &process || facts.granted) continue;
    for (Server* server : servers_) {
      // It ended here long ago, had the server's clock not been set back.
      if (facts.ends[server->number()] < timeline_.now()) continue;
      // The kernel has the undo.
      if (!process.is_heard_by(*server)) continue;
      if ((facts.notified & ~rights_lost_ & bit_of(*server)) == 0 ||
          !has(look(*server), token, facts))
        continue;
      violate("ghost", fmt::format("s{} keeps {}, and {} knew that it granted it",
                                   server->number() + 1, name_of(token), process.name()));
    }
  }
}

void Referee::released(const Token& token, const ReleaseResult& result) {
  if (result.decision == ReleaseDecision::released && result.faults.empty())
    facts_[token.secret()].gone_everywhere = true;
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

/// As long as it keeps a quorum from others.
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
    if (!is_beside) last = std::max(last, facts.until);
    if (mode.slots > 0 && facts.hold.slot) in_slots.push_back(&facts);
  }
  // All slots were taken just before one of these ended.
  for (const Facts* ending : in_slots) {
    const Duration end = std::min(ending->until, timeline_.now());
    const auto taken = std::ranges::count_if(in_slots, [&](const Facts* other) {
      return other->granted_at < end && other->until >= end;
    });
    if (static_cast<std::size_t>(taken) >= mode.slots) last = std::max(last, end);
  }
  return last;
}

}  // namespace redlock::sim
