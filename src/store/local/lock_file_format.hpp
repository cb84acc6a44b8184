#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "store/local/keyspace.hpp"
#include "support/boot_id.hpp"

namespace redlock::local {

/// A lock file byte by byte: two slots, each a header and a body; the copy with the larger
/// generation counts. A change goes into the other slot, first the body, then the header. A process
/// that dies in the middle leaves the copy from before: nobody was told of the new one.
///
/// A header is valid by its own digest and names its body's. So if the newest header's body does
/// not fit it, it was not torn by a writer's death, nor was a file of another size: somebody else
/// changed it, and whether a lease was lost with it nobody knows. That is Damaged, not free.
namespace format {

// What was written in another boot counts as not there: what held the locks is gone.

inline constexpr std::size_t header_size = 192;
inline constexpr std::size_t slot_size =
    256UL * 1024;  ///< room for a queue of some thousand; what is not used takes no space on disk
inline constexpr std::size_t file_size = 2 * slot_size;
inline constexpr std::size_t max_body = slot_size - header_size;

struct Nothing {};
struct Damaged {};
struct Stored {
  std::uint64_t generation = 0;
  unsigned slot = 0;
  Keyspace::Entries entries;
};
using Found = std::variant<Nothing, Stored, Damaged>;

/// Fills the span from this offset of the file; false when the file has not so much.
using ReadAt = std::function<bool(std::size_t offset, std::span<char> bytes)>;

/// What lies in a file of this size.
Found read(const ReadAt& read_at, std::size_t size, std::string_view boot_id);

/// Bytes for a place in the file.
struct Write {
  std::size_t offset;
  std::string bytes;
};

/// The writes, in this order, that put the body in place of what was found; each must be done
/// before the next begins. `body` must not be larger than max_body.
std::vector<Write> plan(const Found& before, std::string_view boot_id, const std::string& body);

/// Entries as bytes and back; nothing for bytes that encode() does not make.
std::string encode(const Keyspace::Entries& entries);
std::optional<Keyspace::Entries> decode(std::string_view bytes);

}  // namespace format
}  // namespace redlock::local
