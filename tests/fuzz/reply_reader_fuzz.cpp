#include "store/redis/reply_reader.hpp"

#include <algorithm>

#include "fuzz.hpp"

using namespace redlock;
using namespace redlock::fuzz;
using redlock::redis::ReplyLimits;
using redlock::redis::ReplyReader;

namespace {

constexpr ReplyLimits limits{4, 64, 4096, 16 * 1024};

void check_within_limits(const Reply& reply, std::size_t depth) {
  check(reply.text.size() <= limits.bulk);
  check(reply.elements.size() <= limits.elements);
  check(reply.elements.empty() || (reply.type == Reply::Type::array && depth < limits.depth));
  for (const Reply& element : reply.elements) check_within_limits(element, depth + 1);
}

bool same(const Reply& a, const Reply& b) {
  if (a.type != b.type || a.integer != b.integer || a.text != b.text ||
      a.elements.size() != b.elements.size())
    return false;
  for (std::size_t i = 0; i < a.elements.size(); ++i) {
    if (!same(a.elements[i], b.elements[i])) return false;
  }
  return true;
}

/// The replies in bytes that arrive in pieces of this size, until the reader refuses them.
std::vector<Reply> replies(std::string_view bytes, std::size_t piece) {
  ReplyReader reader;
  std::vector<Reply> found;
  while (!bytes.empty()) {
    reader.feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (;;) {
      auto reply = reader.next(limits);
      if (!reply) {
        check(is_printable_utf8(reply.error()));
        check(!reader.next(limits).has_value());
        return found;
      }
      if (!*reply) break;
      check_within_limits(**reply, 0);
      found.push_back(std::move(**reply));
    }
  }
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes = text_of(data + 1, size - 1);
  const std::vector<Reply> whole = replies(bytes, bytes.size());
  const std::vector<Reply> pieces = replies(bytes, 1U + data[0] % 32U);
  check(whole.size() == pieces.size());
  for (std::size_t i = 0; i < whole.size(); ++i) check(same(whole[i], pieces[i]));
  return 0;
}
