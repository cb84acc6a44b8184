#pragma once

#include <optional>
#include <string>

namespace redlock::local {

/// The kernel's name for this boot, 36 characters; nothing without /proc.
std::optional<std::string> read_boot_id();

}  // namespace redlock::local
