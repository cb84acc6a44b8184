#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/vote.hpp"

namespace redlock {

/// The owner record as the servers store it: one line of JSON with short, stable names,
/// {"v":1,"host":…,"user":…,"pid":…,"command":…,"note":…}. `v` is the protocol number (PROTOCOL
/// D3). Bytes that are not UTF-8 are replaced. Optional fields are "run":true (the pid is
/// a `run`'s), "renewed_ms" (Owner::renewed_for), "start" (Owner::pid_start), "slots"
/// (Owner::slots), "take" (Owner::take), "priority" (Owner::priority), "kept_ms" with "exit" or
/// "signal" (Finished), "stoppable" (Owner::stoppable), "next" and "last" (Owner::next_key,
/// last_key), "hold_ms" (Owner::hold_for) and "place" (Owner::place: {"ticket":…,"waiter":…}).
/// Scripts add "stop_request" (encode_stop_request()), and "replaced_by" for the request of a newer
/// run. They replace "hold_ms" by "lifted_ms" (Owner::lifted), and add "token" to the record of a
/// hold of a slot (hold_token_in()).
std::string encode_owner(const Owner& owner);

/// The owner record of a client that wants certain slots (Mode::only), with the field "only": these
/// slots, separated by commas. The servers remove it when they grant the lease.
std::string with_slots(std::string record, const std::vector<std::string>& only);

/// The value of the field "stop_request": {"host":…,"user":…,"reason":…}. The value of the field
/// "replaced_by" has "place" as well.
std::string encode_stop_request(const StopRequest& request);

/// The inverse of encode_stop_request(); nullopt if the text is no stop request.
std::optional<StopRequest> decode_stop_request(std::string_view text);

/// The stop request in an owner record; nullopt if there is none, which takes little time.
std::optional<StopRequest> stop_request_in(std::string_view record);

/// The token in the record of a hold of a slot; nullopt if there is none.
std::optional<Token> hold_token_in(std::string_view record);

/// Whether the record is that of a hold that was lifted, which takes little time to find out for
/// others.
bool shows_lift(std::string_view record);

/// The inverse of encode_owner(), for any text; nullopt if the text is not an owner record. A field
/// of the wrong type stays empty. Scripts do not parse JSON, but search the text for some of the
/// fields (core/protocol.txt). They store `supervised` beside the record, and that copy takes
/// precedence.
std::optional<Owner> decode_owner(std::string_view record);

/// An owner in requests, encoded once for all servers.
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

/// The maximum size of a field in bytes. Longer ones are shortened when they are written and when
/// they are read.
inline constexpr std::size_t max_owner_field = 512;

}  // namespace redlock
