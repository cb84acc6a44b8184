#pragma once

#include <string_view>

namespace redlock {

/// Whether `a` comes before `b` for people: by bytes, but runs of digits by the number that they
/// are, so that `job2` comes before `job10`. A total order.
bool comes_before(std::string_view a, std::string_view b);

}  // namespace redlock
