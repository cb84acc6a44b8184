// Requests, results and reports of processes.
#include "referee.hpp"

#include <algorithm>

namespace redlock::sim {
namespace {

/// For at least so long a notified waiter gathers the notifications of other servers.
constexpr std::chrono::microseconds gathering{900};

}  // namespace

std::vector<const Referee::Superseder*> Referee::newer_than(const Process& process) const {
  using Position = std::pair<Ticket, std::string>;
  std::optional<Position> own;
  for (const auto& [id, one] : superseders_) {
    if (one.process == &process) own = std::max(own, std::optional(Position(one.ticket, id)));
  }
  std::vector<const Superseder*> newer;
  for (const auto& [id, one] : superseders_) {
    if (own && one.process != &process && Position(one.ticket, id) > *own) newer.push_back(&one);
  }
  return newer;
}

void Referee::gave_way(const Process& process) {
  const auto is_known = [](const Superseder* one) { return one->servers != 0; };
  if (attempts_[&process].without_newer >= quorum_)
    violate("superseded", process.name() + " gives up although a quorum would let it in");
  if (std::ranges::any_of(newer_than(process), is_known)) return;
  violate("superseded", process.name() + " gives up, but no newer waiter supersedes it");
}

std::optional<Duration> Referee::superseded_since(const Process& process) const {
  std::optional<Duration> since;
  for (const Superseder* one : newer_than(process)) {
    if (one->since) since = std::min(since.value_or(*one->since), *one->since);
  }
  return data_lost_ ? std::nullopt : since;
}

void Referee::was_sent_away(const Process& process) {
  const auto concerns = [&](const Dismissal& one) {
    return tickets_.contains(&process) && tickets_.at(&process) <= one.up_to;
  };
  if (std::ranges::none_of(dismissals_, concerns))
    violate("dismissed", process.name() + " is sent away, but came later");
}

std::optional<Duration> Referee::dismissed_since(const Process& process) const {
  const auto ticket = tickets_.find(&process);
  std::optional<Duration> since;
  for (const Dismissal& one : dismissals_) {
    if (one.since && ticket != tickets_.end() && ticket->second <= one.up_to)
      since = std::min(since.value_or(*one.since), *one.since);
  }
  return data_lost_ ? std::nullopt : since;
}

void Referee::killed(const Process& process) {
  for (auto& [token, facts] : facts_) {
    if (facts.process != &process) continue;
    facts.orphaned = true;
    for (Server* server : servers_) {
      const Standing standing = standing_at(*server);
      if (!has(standing, token, facts)) continue;
      orphaned_until_ = std::max(orphaned_until_, end_of(*server, facts, standing));
    }
  }
}

void Referee::attempts(const Process& process, const Token& token, std::optional<Ticket> ticket,
                       bool queues) {
  Attempts& attempts = attempts_[&process];
  if (attempts.token == token.secret()) return;
  const Attempts last = std::exchange(attempts, Attempts{});
  facts_[token.secret()].process = &process;
  facts_[token.secret()].asked_at = timeline_.now();
  attempts.token = token.secret();
  const Notifications notified = std::exchange(notifications_[&process], Notifications{});
  if (queues && notified.servers != 0 && !is_quorum(notified.servers) &&
      timeline_.now() < notified.first + gathering)
    ++hasty_attempts_;
  attempts.outages =
      !last.token.empty() && last.max_tickets.size() < quorum_ ? last.outages + 1 : 0;
  attempts.has_ticket = last.has_ticket || ticket;
  if (ticket) tickets_[&process] = *ticket;
  if (!ticket) return;
  if (queues && attempts.outages >= 2)
    violate("queue", process.name() + " stays in the queue although no quorum answers it");
  // A server that answered after the decision does not count.
  const auto behind =
      std::ranges::count_if(last.max_tickets, [&](Ticket largest) { return largest < *ticket; });
  if (!last.has_ticket && static_cast<std::size_t>(behind) < quorum_) {
    violate("queue", process.name() + " draws a ticket that is not behind those in the queue");
  }
}

void Referee::gets_answer(const Process& process, const Token& token, const QueueStatus& queue) {
  Attempts& attempts = attempts_[&process];
  if (attempts.token == token.secret())
    attempts.max_tickets.push_back(queue.max_ticket.value_or(0));
  if (attempts.token == token.secret() && queue.superseder.empty()) ++attempts.without_newer;
}

void Referee::gets_grant(const Process& process, const Token& token, std::size_t server,
                         const Hold& hold) {
  Facts& facts = facts_[token.secret()];
  facts.told |= std::uint32_t{1} << server;
  // An undo goes by token. Sent as late as this, it might remove a copy that was healed meanwhile.
  if (!attempts_[&process].decided) facts.told_slots[server] = hold;
}

void Referee::gets_notification(const Process& process, std::size_t server,
                                Notification notification) {
  if (notification != Notification::granted && notification != Notification::recheck) return;
  Notifications& notified = notifications_[&process];
  if (notified.servers == 0) notified.first = timeline_.now();
  notified.servers |= std::uint32_t{1} << server;
}

Duration Referee::begins_to_extend(const Process& process, const Token& token) {
  Round& round = rounds_[{&process, token.secret()}];
  if (round.began != timeline_.now()) round = Round{timeline_.now(), 0};
  return round.began;
}

void Referee::gets_extension(const Process& process, const Token& token, Duration began,
                             std::size_t server) {
  Round& round = rounds_[{&process, token.secret()}];
  if (round.began == began) round.extended |= std::uint32_t{1} << server;
}

void Referee::heals(const Process& process, const Token& token) {
  if (is_quorum(rounds_[{&process, token.secret()}].extended)) return;
  violate("resurrection",
          process.name() + " heals a server although no quorum extended the lease in this round");
}

void Referee::granted(Process& process, const Lease& lease) {
  const std::string& token = lease.token.secret();
  Facts& facts = facts_[token];
  facts.process = &process;
  facts.granted = true;
  facts.granted_at = timeline_.now();
  if (const auto since = superseded_since(process); since && *since < facts.asked_at)
    violate("superseded", process.name() + " gets the lock although a newer waiter came");
  if (const auto since = dismissed_since(process); since && *since < facts.asked_at)
    violate("dismissed", process.name() + " gets the lock although it was dismissed");
  facts.hold = lease.hold;
  facts.fence = lease.fence;
  facts.until = process.true_time(lease.deadline);
  const std::set<std::string> slots = slots_of(lease.hold);
  const std::string how = !slots.empty()      ? fmt::format(" in slots {}", fmt::join(slots, ","))
                          : lease.hold.shared ? " with others"
                                              : "";
  history_.add("{} HOLDS {}{} with fence {} until {:.3f} ms", process.name(), token.substr(0, 4),
               how, lease.fence.text(), in_ms(facts.until));
  ++grants_;
  if (facts.until <= timeline_.now())
    violate("grant", name_of(token) + " had expired when it was granted");
  const std::uint32_t votes = votes_of(facts).servers;
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
    violate("fence", fmt::format("{} has {}, which only {} servers know", name_of(token),
                                 lease.fence.text(), known));
  }
  for (std::size_t server = 0; server < facts.told_slots.size(); ++server) {
    const auto& told = facts.told_slots[server];
    if (told && *told != lease.hold) facts.strays |= std::uint32_t{1} << server;
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
  // A demoted master may confirm a lease without prolonging it.
  read_ends(token.secret(), facts);
  check_support(token.secret(), facts);
  if (facts.broken_since && *facts.broken_since < asked && is_quorum(facts.broken)) {
    violate("resurrection",
            fmt::format("{} was broken by force at {:.3f} ms and extended by a round that "
                        "began at {:.3f} ms",
                        name_of(token.secret()), in_ms(*facts.broken_since), in_ms(asked)));
  }
  check_overlap(token.secret(), facts);
}

void Referee::in_trouble(Process& process, const LeaseInTrouble& trouble) {
  history_.add("{} cannot extend: {} faults", process.name(), trouble.faults.size());
  if (trouble.faults.empty())
    violate("trouble", process.name() + " cannot extend although every server answered");
}

void Referee::stop_requested(const Process& process, const Token& token, const std::string& id) {
  history_.add("{} is asked to stop {}", process.name(), token.secret().substr(0, 4));
  if (facts_[token.secret()].id != id)
    violate("stop", process.name() + " is asked to stop for another lease");
}

void Referee::replaced(const Process& process, const Place& newer) {
  history_.add("{} is to make room for {}", process.name(), newer.waiter);
  const auto is_newer = [&](const Superseder* one) {
    return one == &superseders_[newer.waiter] && one->ticket == newer.ticket;
  };
  if (std::ranges::none_of(newer_than(process), is_newer))
    violate("stop", process.name() + " is to make room for a run that is not newer");
}

void Referee::ended(Process& process, const Token& token, const LeaseEnded& end) {
  const bool lost = end.state == LeaseState::lost;
  const bool by_hand = end.not_ours && end.not_ours->why == NotOurs::Why::released;
  history_.add("{} {} {}{}", process.name(), lost ? "LOST" : "outlived",
               token.secret().substr(0, 4), by_hand ? ", released by hand" : "");
  Facts& facts = facts_[token.secret()];
  finish(facts);
  const bool was = is_quorum(facts.released_by_hand);
  const bool may_not_know = data_lost_ || facts.released_alone || facts.sought_alone;
  if (lost && was && !by_hand && facts.broken == 0 && !may_not_know) {
    violate("tombstone", process.name() + " did not learn that its lease was released by hand");
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
  facts.over = false;
  facts.released_by_hand = 0;  // the keeper's end only
  facts.until = process.true_time(deadline);
  read_ends(token.secret(), facts);
  history_.add("{} relies on {} until {:.3f} ms", process.name(), token.secret().substr(0, 4),
               in_ms(facts.until));
  check_support(token.secret(), facts);
}

std::string Referee::key_of(const Process& user, const Token& token) {
  return fmt::format("{} of {}", token.secret(), user.name());
}

void Referee::uses(const Process& user, const Token& token, Instant deadline) {
  relied_on(user, token, deadline);
  const std::string key = key_of(user, token);
  Facts& facts = facts_[key];
  facts.process = &user;
  facts.granted = true;
  facts.hold = facts_[token.secret()].hold;
  facts.until = std::max(facts.until, user.true_time(deadline));
  check_overlap(key, facts);
}

void Referee::stops_using(const Process& user, const Token& token) {
  const auto found = facts_.find(key_of(user, token));
  if (found == facts_.end()) return;
  history_.add("{} stops", name_of(found->first));
  finish(found->second);
}

void Referee::finish_users(const std::string& token) {
  for (auto& [key, facts] : facts_) {
    if (key != token && token_in(key) == token) finish(facts);
  }
}

void Referee::left_nothing(const Process& process) {
  if (addresses_lost_) return;
  for (const auto& [token, facts] : facts_) {
    if (facts.process != &process || facts.granted) continue;
    for (Server* server : servers_) {
      if (has_outlived(facts, *server)) continue;
      // The kernel still has the undo, perhaps for a node that no longer has the lease (decision
      // 0040).
      const auto has_undo = [&](const Server* node) {
        return node->vote() == server->vote() && !process.has_delivered_all_to(*node);
      };
      if (std::ranges::any_of(servers_, has_undo)) continue;
      if ((facts.told & ~rights_lost_ & bit_of(*server)) == 0 ||
          !has(standing_at(*server), token, facts))
        continue;
      violate("ghost", fmt::format("s{} keeps {}, and {} knew of this grant", server->number() + 1,
                                   name_of(token), process.name()));
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

}  // namespace redlock::sim
