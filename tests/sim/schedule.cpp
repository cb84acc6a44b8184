#include "schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "draw.hpp"
#include "history.hpp"
#include "nightly.hpp"

namespace redlock::sim {

using Kind = Mishap::Kind;

const NodesPlan* Schedule::nodes_of(std::size_t vote) const {
  const auto found = std::ranges::find(nodes, vote, &NodesPlan::vote);
  return found == nodes.end() ? nullptr : &*found;
}

Duration Schedule::work() const {
  Duration all{};
  for (const SessionPlan& plan : sessions) all += plan.work + plan.ttl;
  return all;
}

Schedule draw(const Profile& profile, std::uint64_t seed) {
  Schedule schedule = profile.nightly ? draw_nightly(profile, seed) : Draw(profile, seed).make();
  schedule.has_host_names = profile.has_host_names;
  return schedule;
}

std::string describe(const Schedule& schedule) {
  constexpr std::array shapes{"chaos", "cron", "queue", "a server configured twice", "nightly"};
  return fmt::format(
      "{}: {} servers, {} hosts, {} sessions, {} mishaps, restart guard {:.0f} ms, calm from "
      "{:.0f} ms",
      shapes[static_cast<std::size_t>(schedule.shape)], schedule.servers, schedule.hosts.size(),
      schedule.sessions.size(), schedule.mishaps.size(), in_ms(schedule.restart_guard),
      in_ms(schedule.calm));
}

std::string describe(const NodesPlan& plan) {
  const auto names = [](const std::vector<std::size_t>& numbers) {
    std::string text;
    for (const std::size_t number : numbers)
      text += (text.empty() ? "s" : ", s") + std::to_string(number + 1);
    return text;
  };
  if (plan.kind == VoteKind::cluster)
    return fmt::format("{} are a cluster of Redis {}", names(plan.nodes), plan.is_old ? 6 : 7);
  return fmt::format("{} are a master and its replicas, under the sentinels {}", names(plan.nodes),
                     names(plan.sentinels));
}

std::string describe(const Mishap& mishap) {
  const std::string server = fmt::format("s{}", mishap.server + 1);
  const std::string host = fmt::format("host {}", mishap.host + 1);
  const std::string span = fmt::format("for {:.1f} ms", in_ms(mishap.span));
  switch (mishap.kind) {
    case Kind::crash:
      return fmt::format("{} is down {} and keeps its data", server, span);
    case Kind::wipe:
      return fmt::format("{} is down {} and forgets everything", server, span);
    case Kind::freeze:
      return fmt::format("{} stands still {}", server, span);
    case Kind::flush_scripts:
      return fmt::format("{} forgets all scripts", server);
    case Kind::outage:
      return fmt::format("{} and {} are disconnected {}", host, server, span);
    case Kind::isolate_host:
      return fmt::format("{} is cut off {}", host, span);
    case Kind::isolate_server:
      return fmt::format("{} is cut off {}", server, span);
    case Kind::cut:
      return fmt::format("a connection to {} breaks, data in flight {}", server,
                         mishap.flag ? "arrives" : "is lost");
    case Kind::pause:
      return fmt::format("{} stands still {}", host, span);
    case Kind::step_client_wall:
      return fmt::format("the wall clock of {} jumps by {} ms", host, mishap.step.count());
    case Kind::step_server_wall:
      return fmt::format("the wall clock of {} jumps by {} ms", server, mishap.step.count());
    case Kind::break_lock:
      return fmt::format("a process on {} breaks the lock{}", host,
                         mishap.flag ? ", with a fence that no lease has" : "");
    case Kind::foreign:
      return fmt::format("a foreign client tries {}", span);
    case Kind::foreign_for_ever:
      return fmt::format("a foreign client tries without an expiry{}, {}",
                         mishap.flag ? ", with a hash" : "", span);
    case Kind::refuse: {
      constexpr std::array refusals{"nothing",           "while it loads",
                                    "while it is busy",  "for lack of rights",
                                    "writes, read-only", "writes, as it cannot save",
                                    "what needs memory"};
      return fmt::format("{} refuses {}: {}", server, span,
                         refusals[static_cast<std::size_t>(mishap.refusal)]);
    }
    case Kind::power_loss:
      return "all servers lose power and are back";
    case Kind::cut_subscriptions:
      return fmt::format("the subscriptions of {} break", host);
    case Kind::lose_marker:
      return "a shared lock's key is lost everywhere";
    case Kind::inspect:
      return fmt::format("a process on {} asks who has the lock", host);
    case Kind::ask:
      return fmt::format("a process on {} asks the holder to stop, {} later", host, span);
    case Kind::dismiss:
      return fmt::format("a process on {} sends away who waits", host);
    case Kind::evict:
      return fmt::format("{} loses the lock's key", server);
    case Kind::move_address:
      return fmt::format("the address of {} leads to s{} {}", server, mishap.other + 1, span);
    case Kind::spoil_counter:
      return fmt::format("the fence counter of {} is too large {}", server, span);
    case Kind::lose_slots:
      return fmt::format("{} loses its table of slots", server);
    case Kind::lose_record:
      return fmt::format("{} loses its owner record", server);
    case Kind::deny_command:
      return fmt::format("{} refuses {} in scripts {}", server, mishap.command, span);
    case Kind::spoil_key: {
      const Spoiling& spoiling = spoilings[mishap.spoiling];
      return fmt::format("another program writes into the {} of {}: {} {}",
                         protocol::key::names[spoiling.key], server, spoiling.command,
                         fmt::join(spoiling.words, " "));
    }
    case Kind::newer_waiter:
      return fmt::format("a waiter of a newer version is in the queue {}", span);
    case Kind::move_slot:
      return fmt::format("the cluster of {} begins to move the slot, {}", server, span);
    case Kind::stall_slot:
      return fmt::format("the cluster of {} gives up moving the slot, {}", server, span);
    case Kind::fail_over:
      return fmt::format("the master of {} {}, {}", server,
                         mishap.flag ? "crashes and fails over" : "hands over to its replica",
                         span);
  }
  return {};
}

}  // namespace redlock::sim
