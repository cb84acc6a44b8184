#include "store/owner_record.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/protocol.hpp"
#include "core/types.hpp"
#include "support/text.hpp"

namespace redlock {
namespace {

using Json = nlohmann::json;

constexpr unsigned protocol_number = 1;

/// The largest number that fits in a pid_t.
constexpr std::uint64_t max_pid = std::numeric_limits<std::int32_t>::max();

constexpr std::uint64_t max_exit_code = 255;

/// A hold that is extended just before its end.
constexpr Milliseconds max_hold = 2 * Ttl::max;

std::string text_field(const Json& record, std::string_view name) {
  const auto field = record.find(name);
  if (field == record.end() || !field->is_string()) return {};
  return to_valid_utf8(shortened(field->get<std::string>(), max_owner_field));
}

std::int64_t milliseconds(Duration span) {
  return std::chrono::ceil<Milliseconds>(span).count();
}

/// A number from 0 to `largest`; nullopt if the field is missing or is not such a number.
std::optional<std::uint64_t> number_field(const Json& record, std::string_view name,
                                          std::uint64_t largest) {
  const auto field = record.find(name);
  if (field == record.end() || !field->is_number_unsigned()) return std::nullopt;
  const auto number = field->get<std::uint64_t>();
  if (number > largest) return std::nullopt;
  return number;
}

std::optional<Duration> duration_field(const Json& record, std::string_view name,
                                       Milliseconds largest = Ttl::max) {
  const auto number = number_field(record, name, static_cast<std::uint64_t>(largest.count()));
  if (!number) return std::nullopt;
  return Milliseconds(static_cast<Milliseconds::rep>(*number));
}

std::optional<bool> flag_field(const Json& record, const char* name) {
  const auto field = record.find(name);
  if (field == record.end() || !field->is_boolean()) return std::nullopt;
  return field->get<bool>();
}

Json to_json(const Place& place) {
  return {{"ticket", place.ticket}, {"waiter", place.waiter}};
}

std::optional<Place> place_of(const Json& record) {
  const auto field = record.find(protocol::word::place_field);
  if (field == record.end() || !field->is_object()) return std::nullopt;
  const auto ticket = number_field(*field, "ticket", std::numeric_limits<Ticket>::max());
  if (!ticket) return std::nullopt;
  return Place{*ticket, text_field(*field, "waiter")};
}

Json to_json(const StopRequest& request) {
  Json json{{"host", to_valid_utf8(request.host)},
            {"user", to_valid_utf8(request.user)},
            {"reason", to_valid_utf8(request.reason)}};
  if (request.newer) json[std::string(protocol::word::place_field)] = to_json(*request.newer);
  return json;
}

std::optional<StopRequest> stop_request_from(const Json& request) {
  if (!request.is_object()) return std::nullopt;
  return StopRequest{text_field(request, "host"), text_field(request, "user"),
                     text_field(request, "reason"), place_of(request)};
}

std::optional<StopRequest> stop_request_in_field(const Json& record, std::string_view name) {
  const auto field = record.find(name);
  return field == record.end() ? std::nullopt : stop_request_from(*field);
}

/// The stop request by hand; if there is none, that of a newer run.
std::optional<StopRequest> stop_request_of(const Json& record) {
  auto by_hand = stop_request_in_field(record, protocol::word::stop_field);
  if (by_hand) return by_hand;
  auto replacing = stop_request_in_field(record, protocol::word::replaced_field);
  return replacing && replacing->newer ? replacing : std::nullopt;
}

std::vector<std::string> only_field_of(const Json& record) {
  const auto field = record.find(protocol::word::only_field);
  if (field == record.end() || !field->is_string()) return {};
  const std::string text = to_valid_utf8(field->get<std::string>());
  std::vector<std::string> slots;
  for (std::string_view rest = text; !rest.empty();) slots.emplace_back(next_word(rest, ','));
  return slots;
}

/// Unless it is empty, or cannot be stored as it is: a shortened key would be another one.
void set_key(Json& record, const char* name, const std::string& key) {
  if (!key.empty() && key.size() <= max_owner_field && key == to_valid_utf8(key))
    record[name] = key;
}

std::optional<int> small_field(const Json& record, const char* name) {
  const auto number = number_field(record, name, max_exit_code);
  if (!number) return std::nullopt;
  return static_cast<int>(*number);
}

}  // namespace

std::string encode_owner(const Owner& owner) {
  Json record;
  record["v"] = protocol_number;
  record["host"] = to_valid_utf8(owner.host);
  record["user"] = to_valid_utf8(owner.user);
  record["pid"] = owner.pid;
  record["command"] = to_valid_utf8(owner.command);
  record["note"] = to_valid_utf8(owner.note);
  if (owner.supervised) record["run"] = true;
  if (owner.renewed_for)
    record[std::string(protocol::word::renewed_field)] = milliseconds(*owner.renewed_for);
  if (owner.slots > 0) record[std::string(protocol::word::slots_field)] = owner.slots;
  if (owner.take > 1) record[std::string(protocol::word::take_field)] = owner.take;
  if (owner.priority > 0) record[std::string(protocol::word::priority_field)] = owner.priority;
  if (owner.detached) record["detached"] = true;
  if (owner.pid_start > 0) record["start"] = owner.pid_start;
  if (owner.stoppable) record["stoppable"] = true;
  set_key(record, "next", owner.next_key);
  set_key(record, "last", owner.last_key);
  if (owner.hold_for)
    record[std::string(protocol::word::hold_field)] = milliseconds(*owner.hold_for);
  if (owner.stop_request)
    record[std::string(protocol::word::stop_field)] = to_json(*owner.stop_request);
  if (owner.place) record[std::string(protocol::word::place_field)] = to_json(*owner.place);
  if (owner.finished) {
    record[std::string(protocol::word::kept_field)] = milliseconds(owner.finished->expire_in);
    if (owner.finished->exit_code) record["exit"] = *owner.finished->exit_code;
    if (owner.finished->signal) record["signal"] = *owner.finished->signal;
  }
  return record.dump();
}

std::string with_slots(std::string record, const std::vector<std::string>& only) {
  if (only.empty()) return record;
  record.pop_back();
  record.append(",\"").append(protocol::word::only_field).append("\":\"");
  for (std::size_t i = 0; i < only.size(); ++i) record.append(i == 0 ? "" : ",").append(only[i]);
  return record.append("\"}");
}

std::string encode_stop_request(const StopRequest& request) {
  return to_json(request).dump();
}

std::optional<StopRequest> decode_stop_request(std::string_view text) {
  return stop_request_from(Json::parse(text, nullptr, /*allow_exceptions=*/false));
}

std::optional<StopRequest> stop_request_in(std::string_view record) {
  const auto has = [record](std::string_view name) {
    return record.find(name) != std::string_view::npos;
  };
  if (!has(protocol::word::stop_field) && !has(protocol::word::replaced_field)) return std::nullopt;
  const Json parsed = Json::parse(record, nullptr, /*allow_exceptions=*/false);
  return parsed.is_object() ? stop_request_of(parsed) : std::nullopt;
}

std::optional<Token> hold_token_in(std::string_view record) {
  const Json parsed = Json::parse(record, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return std::nullopt;
  return Token::from_text(text_field(parsed, protocol::word::token_field));
}

bool shows_lift(std::string_view record) {
  if (record.find(protocol::word::lifted_field) == std::string_view::npos) return false;
  const std::optional<Owner> owner = decode_owner(record);
  return owner && owner->lifted;
}

std::optional<Owner> decode_owner(std::string_view record) {
  const Json parsed = Json::parse(record, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return std::nullopt;
  Owner owner;
  owner.newer = number_field(parsed, "v", std::numeric_limits<std::uint64_t>::max()).value_or(0) >
                protocol_number;
  owner.host = text_field(parsed, "host");
  owner.user = text_field(parsed, "user");
  owner.command = text_field(parsed, "command");
  owner.note = text_field(parsed, "note");
  owner.next_key = text_field(parsed, "next");
  owner.last_key = text_field(parsed, "last");
  owner.pid = static_cast<long>(number_field(parsed, "pid", max_pid).value_or(0));
  owner.supervised = flag_field(parsed, "run").value_or(false);
  owner.detached = flag_field(parsed, "detached").value_or(false);
  owner.stoppable = flag_field(parsed, "stoppable").value_or(false);
  owner.stop_request = stop_request_of(parsed);
  owner.place = place_of(parsed);
  owner.pid_start =
      number_field(parsed, "start", std::numeric_limits<unsigned long long>::max()).value_or(0);
  owner.renewed_for = duration_field(parsed, protocol::word::renewed_field);
  owner.hold_for = duration_field(parsed, protocol::word::hold_field, max_hold);
  owner.lifted = duration_field(parsed, protocol::word::lifted_field, max_hold).has_value();
  owner.slots = number_field(parsed, protocol::word::slots_field, Mode::max_slots).value_or(0);
  owner.take = std::max<std::size_t>(
      number_field(parsed, protocol::word::take_field, Mode::max_slots).value_or(1), 1);
  owner.only = only_field_of(parsed);
  owner.priority = static_cast<unsigned>(
      number_field(parsed, protocol::word::priority_field, protocol::max_priority).value_or(0));
  if (const auto kept = duration_field(parsed, protocol::word::kept_field)) {
    owner.finished = Finished{*kept, small_field(parsed, "exit"), small_field(parsed, "signal")};
  }
  return owner;
}

}  // namespace redlock
