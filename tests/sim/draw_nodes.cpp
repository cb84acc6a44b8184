// Votes of several nodes, and their mishaps.
#include "draw.hpp"

#include <array>

namespace redlock::sim {
namespace {

using Kind = Mishap::Kind;
using std::chrono::milliseconds;

constexpr std::size_t nodes_of_cluster = 4;

}  // namespace

void Draw::add_nodes() {
  const auto add = [this](std::size_t vote) {
    // The clocks of a vote's nodes agree.
    schedule_.server_plans.push_back(MachinePlan(schedule_.server_plans[vote]));
    return schedule_.server_plans.size() - 1;
  };
  for (std::size_t vote = 0; vote < schedule_.servers; ++vote) {
    // The first vote always has several nodes.
    if (vote > 0 && random_.chance(200)) continue;
    NodesPlan plan;
    plan.kind = profile_.votes;
    plan.nodes.push_back(vote);
    plan.is_old = random_.chance(300);
    const std::size_t nodes =
        plan.kind == VoteKind::cluster ? nodes_of_cluster : 2 + random_.below(2);
    while (plan.nodes.size() < nodes) plan.nodes.push_back(add(vote));
    if (plan.kind == VoteKind::sentinel) {
      for (std::size_t i = 1 + random_.below(3); i > 0; --i) plan.sentinels.push_back(add(vote));
    }
    schedule_.nodes.push_back(std::move(plan));
  }
}

void Draw::add_node_changes() {
  for (Mishap& mishap : schedule_.mishaps) {
    const NodesPlan* const plan = schedule_.nodes_of(mishap.server);
    if (plan == nullptr || random_.chance(500)) continue;
    const std::size_t other = random_.below(plan->nodes.size() + plan->sentinels.size());
    mishap.server = other < plan->nodes.size() ? plan->nodes[other]
                                               : plan->sentinels[other - plan->nodes.size()];
  }
  for (std::size_t i = 1 + random_.below(3); i > 0; --i) {
    Mishap change = mishap(any_node_change());
    change.server = schedule_.nodes[random_.below(schedule_.nodes.size())].vote();
    schedule_.mishaps.push_back(change);
  }
}

Kind Draw::any_node_change() {
  const bool moves = profile_.votes == VoteKind::cluster && random_.chance(600);
  return moves ? Kind::move_slot : Kind::fail_over;
}

void Draw::change_nodes_of_queue(Duration when) {
  Mishap change;
  change.kind = any_node_change();
  change.at = when;
  change.span = random_.between(Duration(base_ttl_) / 10, Duration(base_ttl_));
  change.flag = random_.chance(500);
  schedule_.mishaps.push_back(change);
  // Until they notice the change, waiters that subscribed at the old node get no notification from
  // the new one, which may pass them over (PROTOCOL D1).
  for (std::size_t host = 0; host < hosts_; ++host) keep_away(host, change.at + change.span);
  // A `leave` that goes to another node has no effect: the waiters behind notice when they poll.
  for (SessionPlan& plan : schedule_.sessions) plan.wait.wait.reset();
  schedule_.bound += base_ttl_ + milliseconds(1000);
}

void Draw::keep_through_a_stall() {
  Mishap stall;
  stall.kind = Kind::stall_slot;
  stall.at = Duration(base_ttl_) / 4 + extra_.between(Duration::zero(), Duration(base_ttl_));
  stall.span = 2 * Duration(base_ttl_);
  for (const NodesPlan& plan : schedule_.nodes) {
    stall.server = plan.vote();
    schedule_.mishaps.push_back(stall);
  }
  hold_for(stall.at + stall.span + Duration(base_ttl_) / 2);
  SessionPlan& holder = schedule_.sessions.front();
  holder.mode = std::array{Mode{}, Mode{true, 0}, Mode{true, 1 + extra_.below(3)}}[extra_.below(3)];
  holder.nested_at = stall.at + Duration(base_ttl_) / 2;
  holder.nested_work = Duration(base_ttl_);
  // No other session may enter meanwhile, or give up for lack of answers.
  for (SessionPlan& plan : schedule_.sessions) {
    if (&plan == &holder) continue;
    plan.mode = Mode{};
    plan.start = Duration(base_ttl_) / 8;
    plan.wait.wait.reset();
    plan.wait.unavailable_wait = Duration(base_ttl_) / 2;
  }
  keep_nothing();
  schedule_.keeps_leases = true;
  schedule_.calm = stall.at + stall.span;
  for (std::size_t host = 0; host < hosts_; ++host) keep_away(host, schedule_.calm);
  schedule_.bound += base_ttl_ + milliseconds(1000);
}

}  // namespace redlock::sim
