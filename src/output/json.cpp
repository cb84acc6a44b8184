#include "output/json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/holds.hpp"
#include "output/describe.hpp"
#include "output/one_line.hpp"
#include "proc/process_stat.hpp"
#include "support/encoding.hpp"
#include "support/text.hpp"
#include "support/timestamp.hpp"

namespace redlock::output {
namespace {

/// Keeps fields in the order in which they are set, which is stable and easier to read.
using Json = nlohmann::ordered_json;

long long milliseconds(Duration span) {
  return std::chrono::duration_cast<Milliseconds>(span).count();
}

void set_key(Json& json, const Resource& resource) {
  const std::string shown = to_valid_utf8(resource.key());
  json["key"] = shown;
  if (shown != resource.key()) json["key_base64"] = encode_base64url(resource.key());
}

/// The wall-clock time `span` from now.
std::string time_in(Duration span) {
  return timestamp(wall_clock_now() + std::chrono::floor<Milliseconds>(span));
}

/// How the lease is kept alive; empty if that is unknown or the command has ended.
std::string_view kept_by_word(const Owner& owner) {
  if (owner.finished) return {};
  if (owner.supervised) return "run";
  if (owner.hold_for) return "hold";
  if (owner.detached) return "detached";
  if (!owner.renewed_for) return {};
  return *owner.renewed_for > Duration::zero() ? "while-pid" : "by hand";
}

void set_owner(Json& json, const Owner& owner) {
  json["host"] = to_valid_utf8(owner.host);
  json["user"] = to_valid_utf8(owner.user);
  json["pid"] = owner.pid;
  json["program"] = to_valid_utf8(owner.command);
  json["note"] = to_valid_utf8(owner.note);
}

Json stop_request_json(const StopRequest& request) {
  return {{"host", to_valid_utf8(request.host)},
          {"user", to_valid_utf8(request.user)},
          {"reason", to_valid_utf8(request.reason)},
          {"replaces", request.newer.has_value()}};
}

void set_finished(Json& json, const Finished& finished, std::optional<Duration> remaining) {
  const Duration ago =
      std::max(Duration::zero(), finished.expire_in - remaining.value_or(finished.expire_in));
  json["finished_ms"] = milliseconds(ago);
  json["ended_at"] = time_in(-ago);
  if (finished.exit_code) json["command_exit"] = *finished.exit_code;
  if (finished.signal) json["command_signal"] = *finished.signal;
}

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
  return json;
}

/// Adds "last", "last_success" and "skips" where they are known.
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

Json holder_json(const Holder& holder) {
  Json json;
  json["lease_id"] = to_valid_utf8(holder.id.text);
  json["foreign"] = holder.foreign;
  json["shared"] = holder.shared;
  json["type"] = to_valid_utf8(holder.type);
  json["remaining_ms"] = holder.remaining ? Json(milliseconds(*holder.remaining)) : Json(nullptr);
  if (holder.remaining) json["expires_at"] = time_in(*holder.remaining);
  if (holder.age) {
    json["age_ms"] = milliseconds(*holder.age);
    json["acquired_at"] = time_in(-*holder.age);
  }
  if (holder.fence) json["fence"] = holder.fence->value();
  if (holder.owner) {
    set_owner(json, *holder.owner);
    json["supervised"] = holder.owner->supervised;
    if (const auto word = kept_by_word(*holder.owner); !word.empty()) json["kept_by"] = word;
    if (holder.owner->renewed_for) json["renewed"] = *holder.owner->renewed_for > Duration::zero();
    json["stoppable"] = holder.owner->stoppable;
    if (holder.owner->stop_request)
      json["stop_request"] = stop_request_json(*holder.owner->stop_request);
    if (const auto rest = hold_remaining(holder)) {
      json["hold_remaining_ms"] = milliseconds(*rest);
      json["hold_ends_at"] = time_in(*rest);
    }
    if (holder.owner->finished) set_finished(json, *holder.owner->finished, holder.remaining);
  }
  if (holder.waits_for) {
    Json& awaited = json["waits_for"];
    set_key(awaited, holder.waits_for->resource);
    awaited["ahead"] = holder.waits_for->ahead;
  }
  for (const ShownUser& user : holder.users) {
    Json entry;
    if (user.owner) set_owner(entry, *user.owner);
    entry["age_ms"] = milliseconds(user.age);
    json["users"].push_back(std::move(entry));
  }
  return json;
}

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

/// The names of processes in the order of their pids; empty for one that has ended.
Json names_json(const std::vector<pid_t>& pids) {
  Json names = Json::array();
  for (const pid_t pid : pids) names.push_back(to_valid_utf8(proc::process_name(pid)));
  return names;
}

Json faults_json(const std::vector<ServerFault>& faults) {
  Json list = Json::array();
  for (const ServerFault& fault : faults)
    list.push_back(
        {{"server", to_valid_utf8(fault.server)}, {"fault", to_valid_utf8(fault.fault.text)}});
  return list;
}

void set_keys(Json& json, const std::vector<Resource>& resources) {
  if (resources.size() == 1) set_key(json, resources.front());
  if (resources.size() > 1) {
    for (const Resource& resource : resources) set_key(json["keys"].emplace_back(), resource);
  }
}

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

/// The object that describes a lease: `json` itself for a single lease, else a new element of
/// "leases".
Json& object_for(Json& json, const Lease& lease, std::size_t leases) {
  if (leases == 1) return json;
  Json& object = json["leases"].emplace_back();
  set_key(object, lease.resource);
  return object;
}

/// Adds the leases without their secret tokens.
void set_fences(Json& json, const std::vector<Lease>& leases) {
  for (const Lease& lease : leases) {
    Json& object = object_for(json, lease, leases.size());
    object["fence"] = lease.fence.value();
    set_hold(object, lease.hold);
  }
}

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
