#include "output/outcome_json.hpp"

#include "output/holder_json.hpp"
#include "output/json_parts.hpp"
#include "output/one_line.hpp"
#include "output/past_runs_json.hpp"
#include "support/text.hpp"
#include "support/timestamp.hpp"

namespace redlock::output {
namespace {

Json to_json(const Outcome& outcome) {
  Json json;
  json["command"] = to_valid_utf8(outcome.command);
  set_keys(json, outcome.resources);
  json["result"] = word_of(outcome.result);
  json["exit_code"] = outcome.exit_code;
  if (!outcome.message.empty()) json["message"] = to_valid_utf8(outcome.message);
  if (outcome.holder) json["holder"] = holder_json(*outcome.holder);
  if (outcome.superseded_by) set_owner(json["superseded_by"], *outcome.superseded_by);
  if (outcome.dismissed_by) json["dismissed_by"] = stop_request_json(*outcome.dismissed_by);
  if (outcome.sent_away) {
    json["sent_away"] = outcome.sent_away->number;
    json["unreached"] = outcome.sent_away->unreached;
    for (const Owner& owner : outcome.sent_away->first_unreached)
      set_owner(json["first_unreached"].emplace_back(), owner);
  }
  if (!outcome.faults.empty()) json["faults"] = faults_json(outcome.faults);
  return json;
}

}  // namespace

std::string outcome_json(const Outcome& outcome) {
  return one_line(to_json(outcome));
}

std::string lease_json(const Outcome& outcome, const std::vector<Lease>& leases,
                       const std::string& handle) {
  Json json = to_json(outcome);
  for (const Lease& lease : leases) {
    Json& object = object_for(json, lease, leases.size());
    object["token"] = lease.token.secret();
    object["fence"] = lease.fence.value();
    set_hold(object, lease.hold);
  }
  json["lease"] = handle;
  json["ttl_ms"] = leases.front().ttl.length().count();
  json["acquired_at"] = time_in(Duration::zero());
  json["expires_at"] = time_in(leases.front().ttl.length());
  return one_line(json);
}

std::string extend_json(const Outcome& outcome, std::optional<Duration> valid) {
  Json json = to_json(outcome);
  if (valid) {
    json["valid_ms"] = milliseconds(*valid);
    json["expires_at"] = time_in(*valid);
  }
  return one_line(json);
}

std::string run_json(const RunState& state) {
  Json json = to_json(state.outcome);
  set_fences(json, state.leases);
  if (const auto exit_code = state.command_exit()) json["command_exit"] = *exit_code;
  if (const auto signal = state.command_signal()) json["command_signal"] = *signal;
  if (state.fresh) json["last"] = past_run_json(*state.fresh);
  json["released"] = state.released;
  json["waited_ms"] = milliseconds(state.waited);
  if (state.acquired_at) {
    json["held_ms"] = milliseconds(state.held);
    json["acquired_at"] = timestamp(*state.acquired_at);
  }
  if (state.started_at) json["started_at"] = timestamp(*state.started_at);
  if (state.ended_at) json["ended_at"] = timestamp(*state.ended_at);
  if (state.started_at) {
    json["left"] = state.left;
    json["left_names"] = names_json(state.left);
  }
  if (state.stop_request) json["stop_request"] = stop_request_json(*state.stop_request);
  if (state.loss) json["reason"] = to_valid_utf8(state.loss->reason);
  if (state.end && state.end->late > Duration::zero())
    json["late_ms"] = milliseconds(state.end->late);
  return one_line(json);
}

}  // namespace redlock::output
