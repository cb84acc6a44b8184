#include "output/json.hpp"

#include <nlohmann/json.hpp>

#include "support/base64url.hpp"
#include "support/text.hpp"

namespace redlock::output {
namespace {

/// Keeps the order in which fields are set: easier to read, and stable.
using Json = nlohmann::ordered_json;

long long milliseconds(Duration span) {
  return std::chrono::duration_cast<Milliseconds>(span).count();
}

void set_key(Json& json, const Resource& resource) {
  const std::string shown = to_valid_utf8(resource.key());
  json["key"] = shown;
  if (shown != resource.key()) json["key_base64"] = encode_base64url(resource.key());
}

Json holder_json(const Holder& holder) {
  Json json;
  json["lease_id"] = to_valid_utf8(holder.id.text);
  json["foreign"] = holder.foreign;
  json["type"] = to_valid_utf8(holder.type);
  json["remaining_ms"] = holder.remaining ? Json(milliseconds(*holder.remaining)) : Json(nullptr);
  if (holder.age) json["age_ms"] = milliseconds(*holder.age);
  if (holder.fence) json["fence"] = holder.fence->value();
  if (holder.owner) {
    json["host"] = to_valid_utf8(holder.owner->host);
    json["user"] = to_valid_utf8(holder.owner->user);
    json["pid"] = holder.owner->pid;
    json["program"] = to_valid_utf8(holder.owner->command);
    json["note"] = to_valid_utf8(holder.owner->note);
    json["supervised"] = holder.owner->supervised;
  }
  return json;
}

Json faults_json(const std::vector<ServerFault>& faults) {
  Json list = Json::array();
  for (const ServerFault& fault : faults)
    list.push_back({{"server", to_valid_utf8(fault.server)}, {"fault", to_valid_utf8(fault.fault.text)}});
  return list;
}

Json to_json(const Outcome& outcome) {
  Json json;
  json["command"] = outcome.command;
  if (outcome.resources.size() == 1) set_key(json, outcome.resources.front());
  if (outcome.resources.size() > 1) {
    for (const Resource& resource : outcome.resources) set_key(json["keys"].emplace_back(), resource);
  }
  json["result"] = outcome.result;
  json["exit_code"] = outcome.exit_code;
  if (!outcome.message.empty()) json["message"] = to_valid_utf8(outcome.message);
  if (outcome.holder) json["holder"] = holder_json(*outcome.holder);
  if (!outcome.faults.empty()) json["faults"] = faults_json(outcome.faults);
  return json;
}

std::string_view state_name(InspectState state) {
  switch (state) {
    case InspectState::free:
      return "free";
    case InspectState::held:
      return "held";
    case InspectState::partly_held:
      return "partly_held";
    case InspectState::unavailable:
      break;
  }
  return "unavailable";
}

Json vote_json(const std::string& server, const InspectVote& vote) {
  Json json;
  json["server"] = to_valid_utf8(server);
  if (std::holds_alternative<Free>(vote)) {
    json["state"] = "free";
  } else if (const auto* held = std::get_if<Held>(&vote)) {
    json["state"] = "held";
    json["holder"] = holder_json(held->holder);
  } else {
    json["state"] = "fault";
    json["fault"] = to_valid_utf8(std::get<Fault>(vote).text);
  }
  return json;
}

/// Where to say something of a lease: in the object itself, or, where there are several, in an object of its own.
Json& place_for(Json& json, const Lease& lease, std::size_t leases) {
  if (leases == 1) return json;
  Json& place = json["leases"].emplace_back();
  set_key(place, lease.resource);
  return place;
}

}  // namespace

std::string outcome_json(const Outcome& outcome) {
  return to_json(outcome).dump();
}

std::string lease_json(const Outcome& outcome, const std::vector<Lease>& leases, const std::string& handle) {
  Json json = to_json(outcome);
  for (const Lease& lease : leases) {
    Json& place = place_for(json, lease, leases.size());
    place["token"] = lease.token.secret();
    place["fence"] = lease.fence.value();
  }
  json["lease"] = handle;
  json["ttl_ms"] = leases.front().ttl.length().count();
  return json.dump();
}

std::string run_json(const RunReport& report) {
  Json json = to_json(report.outcome);
  for (const Lease& lease : report.leases) place_for(json, lease, report.leases.size())["fence"] = lease.fence.value();
  if (report.command_exit) json["command_exit"] = *report.command_exit;
  if (report.command_signal) json["command_signal"] = *report.command_signal;
  json["released"] = report.released;
  json["waited_ms"] = milliseconds(report.waited);
  json["held_ms"] = milliseconds(report.held);
  json["left"] = report.left;
  return json.dump();
}

std::string status_json(const std::vector<KeyStatus>& keys, const std::vector<ServerFault>& faults, int exit_code) {
  Json json;
  json["command"] = "status";
  json["exit_code"] = exit_code;
  json["locks"] = Json::array();
  for (const KeyStatus& key : keys) {
    Json lock;
    set_key(lock, key.resource);
    lock["state"] = state_name(key.inspection.state);
    if (key.inspection.holder) lock["holder"] = holder_json(*key.inspection.holder);
    lock["servers"] = Json::array();
    for (std::size_t i = 0; i < key.votes.size(); ++i) lock["servers"].push_back(vote_json(key.servers[i], key.votes[i]));
    json["locks"].push_back(std::move(lock));
  }
  if (!faults.empty()) json["faults"] = faults_json(faults);
  return json.dump();
}

}  // namespace redlock::output
