#include "output/holder_json.hpp"

#include <algorithm>

#include "core/holds.hpp"
#include "support/text.hpp"

namespace redlock::output {
namespace {

/// How the lease is kept alive; empty if that is unknown or the command has ended.
std::string_view kept_by_word(const Owner& owner) {
  if (owner.finished) return {};
  if (owner.supervised) return "run";
  if (owner.hold_for) return "hold";
  if (owner.detached) return "detached";
  if (!owner.renewed_for) return {};
  return *owner.renewed_for > Duration::zero() ? "while-pid" : "by hand";
}

void set_finished(Json& json, const Finished& finished, std::optional<Duration> remaining) {
  const Duration ago =
      std::max(Duration::zero(), finished.expire_in - remaining.value_or(finished.expire_in));
  json["finished_ms"] = milliseconds(ago);
  json["ended_at"] = time_in(-ago);
  if (finished.exit_code) json["command_exit"] = *finished.exit_code;
  if (finished.signal) json["command_signal"] = *finished.signal;
}

}  // namespace

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

}  // namespace redlock::output
