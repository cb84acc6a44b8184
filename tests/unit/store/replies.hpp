#pragma once

#include "store/reply.hpp"

/// Short names, for replies that contain many others.
namespace redlock::testing {

inline constexpr auto& integer = integer_reply;
inline constexpr auto& text = text_reply;
inline constexpr auto& error = error_reply;
inline constexpr auto& array = array_reply;

}  // namespace redlock::testing
