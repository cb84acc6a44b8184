// Apart from the targets: they need the parser only for its verdict, and it takes Clang longer than
// all else that is in them.
#include <nlohmann/json.hpp>

#include "fuzz.hpp"

bool redlock::fuzz::is_json(std::string_view text) {
  return nlohmann::json::accept(text);
}
