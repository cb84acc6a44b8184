#include "output/past_runs_json.hpp"

#include "support/text.hpp"

namespace redlock::output {

Json past_run_json(const PastRun& run) {
  Json json;
  if (run.owner) set_owner(json, *run.owner);
  if (run.lease) json["lease_id"] = to_valid_utf8(run.lease->text);
  json["fence"] = run.fence.value();
  json["started_ago_ms"] = milliseconds(run.started);
  json["started_at"] = time_in(-run.started);
  if (!run.ended) return json;
  json["ended_ago_ms"] = milliseconds(*run.ended);
  json["ended_at"] = time_in(-*run.ended);
  json["waited_ms"] = milliseconds(run.waited);
  json["result"] = to_valid_utf8(run.result);
  if (run.exit_code) json["command_exit"] = *run.exit_code;
  if (run.signal) json["command_signal"] = *run.signal;
  if (run.owner && run.owner->stop_request)
    json["stop_request"] = stop_request_json(*run.owner->stop_request);
  return json;
}

void set_runs(Json& json, const LastRuns& runs) {
  if (runs.last) json["last"] = past_run_json(*runs.last);
  if (runs.success) json["last_success"] = past_run_json(*runs.success);
  if (!runs.skips) return;
  Json& skips = json["skips"];
  skips["count"] = runs.skips->number;
  skips["first_ago_ms"] = milliseconds(runs.skips->first);
  skips["first_at"] = time_in(-runs.skips->first);
  skips["last_ago_ms"] = milliseconds(runs.skips->last);
  skips["last_at"] = time_in(-runs.skips->last);
  skips["why"] = to_valid_utf8(runs.skips->why);
}

}  // namespace redlock::output
