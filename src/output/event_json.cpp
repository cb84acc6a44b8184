#include "output/event_json.hpp"

#include <optional>
#include <string_view>

#include "output/failure_text.hpp"
#include "output/holder_json.hpp"
#include "output/json_parts.hpp"
#include "output/one_line.hpp"
#include "output/past_runs_json.hpp"
#include "support/text.hpp"
#include "support/timestamp.hpp"

namespace redlock::output {
namespace {

// --- Each event's name and fields; events without a name only appear in messages ---

template <class Event>
std::string_view name_of(const Event&) {
  return {};
}

std::string_view name_of(const event::Waiting& waiting) {
  return waiting.news ? "waiting" : std::string_view();
}
void set_event(Json& json, const event::Waiting& waiting) {
  const AttemptFailure& failure = waiting.failure;
  if (failure.queue.queued) json["position"] = failure.queue.ahead + 1;
  if (waiting.priority > 0) json["priority"] = waiting.priority;
  json["waited_ms"] = milliseconds(waiting.waited);
  json["message"] = to_valid_utf8(failure_text(waiting.resource, failure, waiting.servers));
  if (failure.holder) json["holder"] = holder_json(*failure.holder);
  if (!failure.faults.empty()) json["faults"] = faults_json(failure.faults);
}

std::string_view name_of(const event::Superseded&) {
  return "superseded";
}
void set_event(Json& json, const event::Superseded& superseded) {
  json["waited_ms"] = milliseconds(superseded.waited);
  if (superseded.by) set_owner(json["superseded_by"], *superseded.by);
}

std::string_view name_of(const event::Fresh&) {
  return "fresh";
}
void set_event(Json& json, const event::Fresh& fresh) {
  json["waited_ms"] = milliseconds(fresh.waited);
  json["last"] = past_run_json(fresh.last);
}

std::string_view name_of(const event::Acquired&) {
  return "acquired";
}
void set_event(Json& json, const event::Acquired& acquired) {
  json["waited_ms"] = milliseconds(acquired.waited);
  json["votes"] = acquired.votes;
  json["servers"] = acquired.servers;
  if (!acquired.faults.empty()) json["faults"] = faults_json(acquired.faults);
}

std::string_view name_of(const event::Renewed& renewed) {
  return renewed.after_trouble ? "renewed_again" : std::string_view();
}

std::string_view name_of(const event::RenewalFailed&) {
  return "renewal_failed";
}
void set_event(Json& json, const event::RenewalFailed& failed) {
  json["faults"] = faults_json(failed.faults);
}

std::string_view name_of(const event::Lost&) {
  return "lost";
}
void set_event(Json& json, const event::Lost& lost) {
  json["reason"] = to_valid_utf8(lost.reason);
}

std::string_view name_of(const event::Stopping&) {
  return "stopping";
}
void set_event(Json& json, const event::Stopping& stopping) {
  json["why"] = word_of(stopping.why);
  if (!stopping.request) return;
  json["by"] = to_valid_utf8(stopping.request->user + "@" + stopping.request->host);
  json["reason"] = to_valid_utf8(stopping.request->reason);
}

std::string_view name_of(const event::Awaiting&) {
  return "awaiting";
}
void set_event(Json& json, const event::Awaiting& awaiting) {
  json["pids"] = awaiting.pids;
  json["names"] = names_json(awaiting.pids);
}

std::string_view name_of(const event::Ended&) {
  return "ended";
}
void set_event(Json& json, const event::Ended& ended) {
  if (ended.exit_code) json["command_exit"] = *ended.exit_code;
  if (ended.signal) json["command_signal"] = *ended.signal;
  json["held_ms"] = milliseconds(ended.held);
  json["left"] = ended.left;
  json["left_names"] = names_json(ended.left);
}

std::string_view name_of(const event::Released&) {
  return "released";
}
void set_event(Json& json, const event::Released& released) {
  json["confirmed"] = released.confirmed;
  json["held_ms"] = milliseconds(released.held);
  if (released.expire_in > Duration::zero()) json["kept_ms"] = milliseconds(released.expire_in);
}

std::string_view name_of(const event::NotAcquired&) {
  return "not_acquired";
}
void set_event(Json& json, const event::NotAcquired& not_acquired) {
  const Outcome& outcome = not_acquired.outcome;
  json["waited_ms"] = milliseconds(not_acquired.waited);
  json["result"] = word_of(outcome.result);
  json["exit_code"] = outcome.exit_code;
  if (!outcome.message.empty()) json["message"] = to_valid_utf8(outcome.message);
  if (outcome.holder) json["holder"] = holder_json(*outcome.holder);
  if (!outcome.faults.empty()) json["faults"] = faults_json(outcome.faults);
}

template <class Event>
void set_event(Json&, const Event&) {}

/// The key that an event concerns; nullopt if it concerns all keys of the command.
std::optional<Resource> subject_of(const event::Any& event) {
  if (const auto* waiting = std::get_if<event::Waiting>(&event)) return waiting->resource;
  if (const auto* superseded = std::get_if<event::Superseded>(&event)) return superseded->resource;
  if (const auto* not_acquired = std::get_if<event::NotAcquired>(&event)) {
    const std::vector<Resource>& resources = not_acquired->outcome.resources;
    if (resources.size() == 1) return resources.front();
  }
  if (const auto* failed = std::get_if<event::RenewalFailed>(&event)) return failed->resource;
  if (const auto* lost = std::get_if<event::Lost>(&event)) return lost->resource;
  return std::nullopt;
}

}  // namespace

std::string event_json(const event::Any& event, const EventContext& context) {
  const std::string_view name = std::visit([](const auto& what) { return name_of(what); }, event);
  if (name.empty()) return {};
  Json json;
  json["event"] = name;
  json["at"] = timestamp(context.at);
  const auto subject = subject_of(event);
  if (subject) {
    set_key(json, *subject);
    for (const Lease& lease : context.leases) {
      if (lease.resource == *subject) json["fence"] = lease.fence.value();
    }
  } else {
    set_keys(json, context.resources);
    set_fences(json, context.leases);
  }
  std::visit([&json](const auto& what) { set_event(json, what); }, event);
  if (context.dropped > 0) json["dropped"] = context.dropped;
  return one_line(json);
}

}  // namespace redlock::output
