#include "output/json_parts.hpp"

#include "proc/process_stat.hpp"
#include "support/encoding.hpp"
#include "support/text.hpp"
#include "support/timestamp.hpp"

namespace redlock::output {

long long milliseconds(Duration span) {
  return std::chrono::duration_cast<Milliseconds>(span).count();
}

std::string time_in(Duration span) {
  return timestamp(wall_clock_now() + std::chrono::floor<Milliseconds>(span));
}

void set_key(Json& json, const Resource& resource) {
  const std::string shown = to_valid_utf8(resource.key());
  json["key"] = shown;
  if (shown != resource.key()) json["key_base64"] = encode_base64url(resource.key());
}

void set_keys(Json& json, const std::vector<Resource>& resources) {
  if (resources.size() == 1) set_key(json, resources.front());
  if (resources.size() > 1) {
    for (const Resource& resource : resources) set_key(json["keys"].emplace_back(), resource);
  }
}

void set_owner(Json& json, const Owner& owner) {
  json["host"] = to_valid_utf8(owner.host);
  json["user"] = to_valid_utf8(owner.user);
  json["pid"] = owner.pid;
  json["program"] = to_valid_utf8(owner.command);
  json["note"] = to_valid_utf8(owner.note);
}

void set_hold(Json& json, const Hold& hold) {
  json["shared"] = hold.shared;
  if (!hold.slots.empty()) {
    json["slot"] = hold.slots.front();
    json["slots"] = hold.slots;
  }
  if (!hold.slot_names.empty()) {
    json["slot_name"] = hold.slot_names.front();
    json["slot_names"] = hold.slot_names;
  }
}

Json& object_for(Json& json, const Lease& lease, std::size_t leases) {
  if (leases == 1) return json;
  Json& object = json["leases"].emplace_back();
  set_key(object, lease.resource);
  return object;
}

void set_fences(Json& json, const std::vector<Lease>& leases) {
  for (const Lease& lease : leases) {
    Json& object = object_for(json, lease, leases.size());
    object["fence"] = lease.fence.value();
    set_hold(object, lease.hold);
  }
}

Json stop_request_json(const StopRequest& request) {
  return {{"host", to_valid_utf8(request.host)},
          {"user", to_valid_utf8(request.user)},
          {"reason", to_valid_utf8(request.reason)},
          {"replaces", request.newer.has_value()}};
}

Json faults_json(const std::vector<ServerFault>& faults) {
  Json list = Json::array();
  for (const ServerFault& fault : faults)
    list.push_back(
        {{"server", to_valid_utf8(fault.server)}, {"fault", to_valid_utf8(fault.fault.text)}});
  return list;
}

Json names_json(const std::vector<pid_t>& pids) {
  Json names = Json::array();
  for (const pid_t pid : pids) names.push_back(to_valid_utf8(proc::process_name(pid)));
  return names;
}

}  // namespace redlock::output
