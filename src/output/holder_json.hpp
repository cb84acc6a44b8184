#pragma once

#include "core/vote.hpp"
#include "output/json_parts.hpp"

namespace redlock::output {

/// Who holds a lock.
Json holder_json(const Holder& holder);

}  // namespace redlock::output
