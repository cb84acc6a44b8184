#include "core/lease_handle.hpp"

#include <array>
#include <cstring>

#include "fuzz.hpp"

using namespace redlock;
using namespace redlock::fuzz;

namespace {

/// Every handle that can be made from the bytes is read back.
void check_round_trip(std::string_view bytes) {
  constexpr std::size_t token_bytes = Token::bits / 8;
  if (bytes.size() < token_bytes + sizeof(std::uint64_t)) return;
  std::array<std::byte, token_bytes> random{};
  std::memcpy(random.data(), bytes.data(), random.size());
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data() + random.size(), sizeof number);
  const auto resource = Resource::from(bytes.substr(random.size() + sizeof number));
  if (!resource) return;
  LeaseHandle handle{{{*resource, Token::from_random(random), Fence(number % (Fence::max + 1))}},
                     server_set_fingerprint({std::string(bytes)})};
  // A second key behind it, unless it would be too long.
  if (const auto longer = Resource::from(resource->key() + "x"))
    handle.parts.push_back({*longer, handle.parts[0].token, Fence(number % 2)});
  const auto again = LeaseHandle::from_text(handle.text());
  check(again.has_value());
  check(again->parts == handle.parts && again->servers == handle.servers);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = text_of(data, size);
  if (const auto handle = LeaseHandle::from_text(text)) check(handle->text() == text);
  check_round_trip(text);
  return 0;
}
