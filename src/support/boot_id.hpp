#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace redlock {

inline constexpr std::size_t boot_id_size = 36;

/// The kernel's name for this boot, boot_id_size characters; nothing without /proc.
std::optional<std::string> read_boot_id();

}  // namespace redlock
