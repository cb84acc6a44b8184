#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/vote.hpp"

namespace redlock {

/// The owner record as it lies at the servers: one line of JSON with short, stable names
/// {"v":1,"host":…,"user":…,"pid":…,"command":…,"note":…}. `v` is the protocol number (PROTOCOL D3). Bytes that are not UTF-8 are replaced.
/// Where they apply, "run":true (the pid is a `run`'s), "renewed_ms" (Owner::renewed_for), "kept_ms" with "exit" or "signal" (Finished).
std::string encode_owner(const Owner& owner);

/// The inverse, for text from anywhere: nothing when it is not such a record. A field of the wrong type is left empty. Scripts read no
/// JSON: what they know of `supervised` stands beside the record and goes before what stands in it.
std::optional<Owner> decode_owner(std::string_view record);

/// A longer note is refused at the command line; a longer field from elsewhere is cut off.
inline constexpr std::size_t max_owner_field = 512;

}  // namespace redlock
