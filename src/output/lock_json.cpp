#include "output/lock_json.hpp"

#include "output/holder_json.hpp"
#include "output/json_parts.hpp"
#include "output/one_line.hpp"
#include "output/past_runs_json.hpp"
#include "proc/process_stat.hpp"
#include "support/text.hpp"

namespace redlock::output {
namespace {

/// Adds "shares" and "waiters" unless they are empty.
void set_parties(Json& json, const LockParties& parties) {
  if (parties.shares > 0) {
    Json& shares = json["shares"];
    shares["count"] = parties.shares;
    shares["first"] = Json::array();
    for (const Share& share : parties.first_shares) {
      Json entry = holder_json(share.holder);
      if (share.slot) entry["slot"] = *share.slot;
      if (!share.slot_name.empty()) entry["slot_name"] = share.slot_name;
      shares["first"].push_back(std::move(entry));
    }
  }
  if (parties.waiters == 0) return;
  Json& waiters = json["waiters"];
  waiters["count"] = parties.waiters;
  waiters["first"] = Json::array();
  for (const Waiting& waiting : parties.first_waiters) {
    Json entry;
    entry["shared"] = waiting.shared;
    entry["waited_ms"] = milliseconds(waiting.since);
    entry["waiting_since"] = time_in(-waiting.since);
    if (waiting.owner) set_owner(entry, *waiting.owner);
    if (waiting.owner && waiting.owner->priority > 0) entry["priority"] = waiting.owner->priority;
    waiters["first"].push_back(std::move(entry));
  }
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
  } else if (const auto* taken = std::get_if<Taken>(&vote)) {
    json["state"] = "held";
    json["holder"] = holder_json(taken->holder);
  } else {
    json["state"] = "fault";
    json["fault"] = to_valid_utf8(std::get<Fault>(vote).text);
  }
  return json;
}

}  // namespace

void StatusJson::add(const KeyStatus& key) {
  Json lock;
  set_key(lock, key.resource);
  lock["state"] = state_name(key.inspection.state);
  if (key.inspection.holder) lock["holder"] = holder_json(*key.inspection.holder);
  for (const AwaitedProcess& process : key.awaited) {
    lock["awaits"].push_back(process.pid);
    lock["awaits_names"].push_back(to_valid_utf8(proc::process_name(process.pid)));
  }
  set_parties(lock, key.inspection.parties);
  if (key.free_slot_names) lock["free_slot_names"] = *key.free_slot_names;
  set_runs(lock, key.inspection.runs);
  if (key.runs) {
    lock["runs"] = Json::array();
    for (const PastRun& run : *key.runs) lock["runs"].push_back(past_run_json(run));
  }
  lock["servers"] = Json::array();
  for (std::size_t i = 0; i < key.votes.size(); ++i)
    lock["servers"].push_back(vote_json(key.servers[i], key.votes[i]));
  if (!locks_.empty()) locks_ += ',';
  locks_ += one_line(lock);
}

std::string StatusJson::text(const std::vector<ServerFault>& faults,
                             const std::vector<ServerFault>& skipped, int exit_code) && {
  Json json;
  json["command"] = "status";
  json["exit_code"] = exit_code;
  json["locks"] = Json::array();
  if (!faults.empty()) json["faults"] = faults_json(faults);
  if (!skipped.empty()) json["skipped"] = faults_json(skipped);
  const std::string around = one_line(json);
  // The fields before "locks" contain no brackets, so the first pair is that of the locks.
  const std::size_t middle = around.find("[]") + 1;
  locks_.insert(0, around, 0, middle);
  locks_.append(around, middle);
  return std::move(locks_);
}

}  // namespace redlock::output
