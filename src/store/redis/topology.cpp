#include "store/redis/topology.hpp"

#include <algorithm>
#include <bitset>
#include <functional>
#include <limits>
#include <set>

#include "store/redis/error_reply.hpp"
#include "store/redis/server_info.hpp"
#include "support/number.hpp"
#include "support/text.hpp"

namespace redlock::redis {
namespace {

constexpr std::int64_t last_slot = 16383;

/// The placeholder for a host name that a server does not know.
constexpr std::string_view unknown_host = "?";

/// Whether the text cannot be the name of a host.
bool is_no_host(std::string_view host) {
  return host.empty() || host == unknown_host ||
         std::ranges::any_of(host, [](char c) { return c == ' ' || is_control(c); });
}

std::optional<Address> at_port(std::string_view host, std::int64_t port) {
  if (is_no_host(host) || port < 1 || port > std::numeric_limits<std::uint16_t>::max())
    return std::nullopt;
  return Address{std::string(host), static_cast<std::uint16_t>(port)};
}

/// Reads {host, port, …}. The host is nil or empty if the server does not know its own.
std::optional<Address> node_from(const Reply& node, const Address& from) {
  if (node.type != Reply::Type::array || node.elements.size() < 2 ||
      node.elements[1].type != Reply::Type::integer)
    return std::nullopt;
  const std::string& host = node.elements[0].text;
  return at_port(host.empty() ? from.host : host, node.elements[1].integer);
}

Fault names_no_host() {
  return {FaultKind::misconfigured,
          "its cluster announces ? in place of its servers' host names: set "
          "cluster-announce-hostname, or cluster-preferred-endpoint-type ip"};
}

Fault no_slots() {
  return {FaultKind::garbage, "malformed CLUSTER SLOTS reply"};
}

}  // namespace

std::optional<Address> announced(std::string_view host, std::string_view port) {
  return at_port(host, whole_number(port).value_or(0));
}

Fault foreign_loopback(const Address& announced) {
  return {FaultKind::misconfigured,
          "it announces " + escape_for_terminal(announced.text()) +
              ", which is loopback, and is itself reached over a network: that address would lead "
              "to this host; let it announce one that other hosts reach (cluster-announce-ip, "
              "sentinel monitor)"};
}

Fault fault_at(const Address& address, Fault fault) {
  fault.text = escape_for_terminal(address.text()) + ": " + fault.text;
  return fault;
}

Result<std::optional<Redirect>, Fault> redirect_from(std::string_view error_text,
                                                     const Address& from) {
  const bool ask = error_text.starts_with("ASK ");
  if (!ask && !error_text.starts_with("MOVED ")) return std::optional<Redirect>();
  const std::size_t space = error_text.rfind(' ');
  const std::string_view place = error_text.substr(space + 1);
  const std::size_t colon = place.rfind(':');
  const std::string_view host = place.substr(0, std::min(colon, place.size()));
  const auto to = colon == std::string_view::npos
                      ? std::nullopt
                      : announced(host.empty() ? from.host : host, place.substr(colon + 1));
  if (!to && host == unknown_host) return unexpected(names_no_host());
  if (!to) {
    return unexpected(Fault{FaultKind::misconfigured,
                            "its cluster sent an invalid redirect: " + quote_of(error_text) +
                                "; does it use TLS only (clusters://)?"});
  }
  return Redirect{*to, ask};
}

bool is_try_again(std::string_view error_text) {
  return error_text.starts_with("TRYAGAIN");
}

const SlotRange* range_of(const std::vector<SlotRange>& ranges, std::uint16_t slot) {
  const auto range = std::ranges::find_if(
      ranges, [slot](const SlotRange& one) { return one.first <= slot && slot <= one.last; });
  return range == ranges.end() ? nullptr : &*range;
}

std::vector<Address> servers_in(const std::vector<SlotRange>& ranges, bool with_replicas) {
  std::set<Address> known;
  std::vector<Address> in_order;
  const auto add = [&](const Address& address) {
    if (known.insert(address).second) in_order.push_back(address);
  };
  for (const SlotRange& range : ranges) {
    add(range.master);
    if (with_replicas) std::ranges::for_each(range.replicas, add);
  }
  return in_order;
}

std::size_t ClusterView::missing_slots() const {
  std::bitset<last_slot + 1> has_master;
  for (const SlotRange& range : slots) {
    for (std::size_t slot = range.first; slot <= range.last; ++slot) has_master.set(slot);
  }
  return has_master.size() - has_master.count();
}

std::vector<ClusterView> newest_first(std::vector<ClusterView> views) {
  std::ranges::stable_sort(views, std::ranges::greater(),
                           &ClusterView::epoch);  // nullopt is the least
  return views;
}

std::vector<ClusterView> newest_of(std::vector<ClusterView> views) {
  const auto epoch = views.empty() ? std::nullopt : views.front().epoch;
  std::erase_if(views, [&](const ClusterView& view) { return view.epoch && view.epoch != epoch; });
  return views;
}

std::optional<std::uint64_t> epoch_from(const Reply& info) {
  if (info.type != Reply::Type::text) return std::nullopt;
  const auto epoch = ServerInfo(info.text).number("cluster_current_epoch");
  if (!epoch || *epoch < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*epoch);
}

Result<std::vector<SlotRange>, Fault> slots_from(const Reply& reply, const Address& from) {
  if (reply.type == Reply::Type::error) return unexpected(fault_of_error(reply.text));
  if (reply.type != Reply::Type::array) return unexpected(no_slots());
  std::vector<SlotRange> ranges;
  bool nameless = false;
  for (const Reply& range : reply.elements) {
    const auto& part = range.elements;
    if (range.type != Reply::Type::array || part.size() < 3) return unexpected(no_slots());
    const std::int64_t first = part[0].integer;
    const std::int64_t last = part[1].integer;
    const bool are_numbers =
        part[0].type == Reply::Type::integer && part[1].type == Reply::Type::integer;
    if (!are_numbers || first < 0 || last < first || last > last_slot)
      return unexpected(no_slots());
    const auto master = node_from(part[2], from);
    if (!master) {
      nameless =
          nameless || (!part[2].elements.empty() && part[2].elements[0].text == unknown_host);
      continue;
    }
    SlotRange found{
        static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(last), *master, {}};
    for (std::size_t i = 3; i < part.size(); ++i) {
      if (const auto replica = node_from(part[i], from)) found.replicas.push_back(*replica);
    }
    ranges.push_back(std::move(found));
  }
  if (ranges.empty() && nameless) return unexpected(names_no_host());
  return ranges;
}

}  // namespace redlock::redis
