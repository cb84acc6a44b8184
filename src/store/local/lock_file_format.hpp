#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "store/local/directory_clock.hpp"
#include "store/local/keyspace.hpp"

namespace redlock::local {

/// The format of a lock file: two slots, each with a header and a body. The copy with the larger
/// generation counts. A change is written into the other slot, first the body, then the header. If
/// a process dies before it is complete, the former copy counts, and no client has learned of the
/// new one.
///
/// A header is smaller than a page, and written by one call, which the death of a process does not
/// interrupt. The first copy goes into the first slot of a file of zeros, also if another boot left
/// copies there. So the death of a writer can only leave zeros, the first copy beside zeros, or a
/// copy and its predecessor. A failure of the host can also leave the beginning of a first header
/// beside zeros.
///
/// A header has a digest of itself and one of its body. Any other content was written by another
/// program, which may have destroyed a lease: the file counts as Damaged, not as free.
namespace format {

// Data from an earlier boot counts as absent: the processes that held the locks are gone.

inline constexpr std::size_t header_size = 192;
inline constexpr std::size_t slot_size =
    256UL * 1024;  ///< room for some thousand waiters; unused parts take no disk space
inline constexpr std::size_t file_size = 2 * slot_size;
inline constexpr std::size_t max_body = slot_size - header_size;

struct Empty {
  bool saw_reboot = false;  ///< data from an earlier boot; otherwise an empty file, or zeros
};
struct Damaged {};
struct Stored {
  std::uint64_t generation = 0;
  unsigned slot = 0;
  TimeBase base{};
  Keyspace::Entries entries;
};
using Found = std::variant<Empty, Stored, Damaged>;

/// Fills the span from this offset of the file; false if the file is too short.
using ReadAt = std::function<bool(std::size_t offset, std::span<char> bytes)>;

/// Whether the host was rebooted since a copy with this base was written.
using WasRebooted = std::function<bool(const TimeBase& base)>;

/// Interprets the content of a file of this size.
Found read(const ReadAt& read_at, std::size_t size, const WasRebooted& was_rebooted);

/// Bytes to write at an offset of the file.
struct Write {
  std::size_t offset;
  std::string bytes;
};

/// The writes, in this order, that replace the content with the body. Each must be complete before
/// the next begins. If `before` is Empty, the file must have no bytes but zeros. `body` must not be
/// larger than max_body.
std::vector<Write> plan(const Found& before, const TimeBase& base, const std::string& body);

/// Converts entries to bytes and back; decode() returns nullopt for bytes that encode() does not
/// make.
std::string encode(const Keyspace::Entries& entries);
std::optional<Keyspace::Entries> decode(std::string_view bytes);

}  // namespace format
}  // namespace redlock::local
