#pragma once

#include <string>
#include <string_view>

namespace redlock {

/// 64-bit FNV-1a as 16 hexadecimal digits: tells apart what was given different names, not what somebody wants to look alike.
/// Source: Fowler, Noll, Vo, draft-eastlake-fnv.
std::string fingerprint(std::string_view bytes);

}  // namespace redlock
