#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/vote.hpp"

namespace redlock {

/// The owner record as the servers store it: one line of JSON with short, stable names
/// {"v":1,"host":…,"user":…,"pid":…,"command":…,"note":…}. `v` is the protocol number (PROTOCOL
/// D3). Bytes that are not UTF-8 are replaced. Where they apply, it also has "run":true (the pid is
/// a `run`'s), "renewed_ms" (Owner::renewed_for), "start" (Owner::pid_start), "slots"
/// (Owner::slots), "take" (Owner::take), "kept_ms" with "exit" or "signal" (Finished), "stoppable"
/// (Owner::stoppable), "place" (Owner::place: {"ticket":…,"waiter":…}), and what scripts add:
/// "stop_request" (encode_stop_request()), and "replaced_by", the same of a newer run.
std::string encode_owner(const Owner& owner);

/// The value of the field "stop_request": {"host":…,"user":…,"reason":…}; of the field
/// "replaced_by" also with "place".
std::string encode_stop_request(const StopRequest& request);

/// The stop request in an owner record; nothing where there is none. Cheap where there is none.
std::optional<StopRequest> stop_request_in(std::string_view record);

/// The inverse, for any text: nothing when it is not such a record. A field of the wrong type is
/// left empty. Scripts read no JSON, but look for some of the fields (core/protocol.txt): their own
/// copy of `supervised`, stored beside the record, takes precedence.
std::optional<Owner> decode_owner(std::string_view record);

/// An owner as requests carry it to the servers: encoded once for all of them.
class OwnerRecord {
 public:
  // Implicit, so that a request can be given an owner.
  // cppcheck-suppress noExplicitConstructor
  OwnerRecord(const Owner& owner = {})  // NOLINT(google-explicit-constructor)
      : text_(encode_owner(owner)), supervised_(owner.supervised) {}

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] bool supervised() const noexcept { return supervised_; }

 private:
  std::string text_;
  bool supervised_;
};

/// The largest size of a field in bytes: a longer one is shortened, ours and what comes from
/// elsewhere.
inline constexpr std::size_t max_owner_field = 512;

}  // namespace redlock
