#include "store/owner_record.hpp"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include "support/text.hpp"

namespace redlock {
namespace {

using Json = nlohmann::json;

constexpr int protocol_number = 1;

/// What fits in a pid_t.
constexpr std::uint64_t max_pid = std::numeric_limits<std::int32_t>::max();

std::string text_field(const Json& record, const char* name) {
  const auto field = record.find(name);
  if (field == record.end() || !field->is_string()) return {};
  return to_valid_utf8(field->get<std::string>().substr(0, max_owner_field));
}

}  // namespace

std::string encode_owner(const Owner& owner) {
  const Json record{{"v", protocol_number}, {"host", to_valid_utf8(owner.host)},       {"user", to_valid_utf8(owner.user)},
                    {"pid", owner.pid},     {"command", to_valid_utf8(owner.command)}, {"note", to_valid_utf8(owner.note)}};
  return record.dump();
}

std::optional<Owner> decode_owner(std::string_view record) {
  const Json parsed = Json::parse(record, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return std::nullopt;
  Owner owner;
  owner.host = text_field(parsed, "host");
  owner.user = text_field(parsed, "user");
  owner.command = text_field(parsed, "command");
  owner.note = text_field(parsed, "note");
  if (const auto pid = parsed.find("pid"); pid != parsed.end() && pid->is_number_unsigned()) {
    const auto number = pid->get<std::uint64_t>();
    if (number <= max_pid) owner.pid = static_cast<long>(number);
  }
  return owner;
}

}  // namespace redlock
