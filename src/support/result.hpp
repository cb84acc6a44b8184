#pragma once

#include <tl/expected.hpp>

namespace redlock {

/// A value, or the reason why there is none. Expected failures travel in this; exceptions are for
/// what no caller can handle (out of memory, a broken invariant).
template <class T, class E>
using Result = tl::expected<T, E>;

using tl::unexpected;

}  // namespace redlock
