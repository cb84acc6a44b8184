#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/vote.hpp"

namespace redlock {

/// The owner record as it lies at the servers: one line of JSON with short, stable names
/// {"v":1,"host":…,"user":…,"pid":…,"command":…,"note":…}. `v` is the protocol number (PROTOCOL D3). Bytes that are not UTF-8 are replaced.
std::string encode_owner(const Owner& owner);

/// The inverse, for text from anywhere: nothing when it is not such a record. A field of the wrong type is left empty. `supervised` is not
/// part of the record (the scripts read it, and they read no JSON); the caller sets it.
std::optional<Owner> decode_owner(std::string_view record);

/// A longer note is refused at the command line; a longer field from elsewhere is cut off.
inline constexpr std::size_t max_owner_field = 512;

}  // namespace redlock
