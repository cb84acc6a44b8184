#include "nodes.hpp"

#include <chrono>
#include <string>

namespace redlock::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

}  // namespace

redis::Address address_of(const Server& server) {
  const std::size_t number = server.number() + 1;
  return {"s" + std::to_string(number), static_cast<std::uint16_t>(number)};
}

void Nodes::fail_over(Duration span, bool crashes) {
  Server& old_master = master();
  Server* const new_master = replica();
  if (new_master == nullptr || !old_master.answers() || !new_master->answers()) return;
  if (!crashes) {
    promote(old_master, *new_master);
    if (demotion_cuts()) old_master.cut_all();
    return;
  }
  old_master.crash(/*loses_everything=*/false);
  timeline_.in(span / 2, [this, &old_master, new_master] {
    // The old master may have been restarted, and the replica may be down.
    const bool is_gone = &master() == &old_master && !old_master.listens();
    if (is_gone && new_master->answers()) promote(old_master, *new_master);
  });
  timeline_.in(span, [&old_master] {
    if (!old_master.listens()) old_master.restart();
  });
}

void Nodes::promote(Server& old_master, Server& new_master) {
  hand_clock_on(old_master, new_master, any_lag());
  new_master.keyspace().load(old_master.keyspace().live());
  old_master.keyspace().load({});
  // Scripts are not replicated.
  new_master.flush_scripts();
  changed_places(old_master, new_master);
  if (new_master.watcher != nullptr) new_master.watcher->moved(old_master, new_master);
}

Duration Nodes::gossip() {
  return random_.between(Duration(microseconds(200)), Duration(milliseconds(40)));
}

void Nodes::hand_clock_on(Server& from, Server& to, Milliseconds lag) {
  to.step_wall(from.wall() - to.wall() - lag);
}

void Nodes::pass_on(Server& node, std::string_view channel, std::string_view message) {
  const Duration delay = random_.between(Duration(microseconds(50)), Duration(milliseconds(1)));
  timeline_.in(delay, [&node, channel = std::string(channel), message = std::string(message)] {
    if (node.answers()) node.deliver(channel, message);
  });
}

}  // namespace redlock::sim
