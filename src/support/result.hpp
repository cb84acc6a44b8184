#pragma once

#include <tl/expected.hpp>

namespace redlock {

/// A value, or the reason why there is none. Expected failures are returned in this; exceptions are
/// for failures that no caller can handle (out of memory, a broken invariant).
template <class T, class E>
using Result = tl::expected<T, E>;

using tl::unexpected;

}  // namespace redlock
