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
#include "support/boot_clock.hpp"

namespace redlock::local {

/// A lock file byte by byte: two slots, each a header and a body; the copy with the larger
/// generation counts. A change goes into the other slot, first the body, then the header. A process
/// that dies in the middle leaves the former copy: no client was told of the new one.
/// | A header is less than a page and written in one step, which the death of a process does not
/// cut. The first copy of a boot goes into the first slot of a file of zeros, so that whatever a
/// writer's death leaves is known: zeros, the first copy beside zeros, or a copy and the one before
/// it. The beginning of a first header beside zeros is what a host's failure can leave. A header is
/// valid by its own digest and names its body's. Anything else was done by another program, and
/// whether a lease was lost with it is unknown. That is Damaged, not free.
namespace format {

// Data from another boot counts as missing: the processes that held the locks are gone.

inline constexpr std::size_t header_size = 192;
inline constexpr std::size_t slot_size =
    256UL * 1024;  ///< room for a queue of some thousand; what is not used takes no space on disk
inline constexpr std::size_t file_size = 2 * slot_size;
inline constexpr std::size_t max_body = slot_size - header_size;

struct Nothing {};  ///< an empty file, zeros, or what another boot left
struct Damaged {};
struct Stored {
  std::uint64_t generation = 0;
  unsigned slot = 0;
  Keyspace::Entries entries;
};
using Found = std::variant<Nothing, Stored, Damaged>;

/// Reads the span at this offset of the file; false when the file is too short.
using ReadAt = std::function<bool(std::size_t offset, std::span<char> bytes)>;

/// The content of a file of this size.
Found read(const ReadAt& read_at, std::size_t size, std::string_view boot_id);

/// Bytes for an offset in the file.
struct Write {
  std::size_t offset;
  std::string bytes;
};

/// The writes, in this order, that replace the content with the body; each must be done before the
/// next begins. Where there is Nothing, the file must be all zeros. `body` must not be larger than
/// max_body.
std::vector<Write> plan(const Found& before, std::string_view boot_id, const std::string& body);

/// Entries as bytes and back; nothing for bytes that encode() does not make.
std::string encode(const Keyspace::Entries& entries);
std::optional<Keyspace::Entries> decode(std::string_view bytes);

}  // namespace format
}  // namespace redlock::local
