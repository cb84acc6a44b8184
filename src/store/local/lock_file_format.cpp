#include "store/local/lock_file_format.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "support/digest.hpp"

namespace redlock::local::format {
namespace {

constexpr std::string_view magic = "redlock2";
constexpr std::size_t digest_size = 64;

/// No writer reaches this, and there is room for larger numbers.
constexpr std::uint64_t max_generation = std::numeric_limits<std::uint64_t>::max() / 2;

/// The header as stored in the file, in the byte order of this host, as only this host reads it.
struct Header {
  std::array<char, 8> magic;
  std::uint64_t generation;
  std::uint64_t body_size;
  std::int64_t offset;  ///< the TimeBase, in microseconds
  std::int64_t written;
  std::uint64_t time_namespace;
  std::array<char, 16> unused;
  std::array<char, digest_size> body_digest;
  std::array<char, digest_size> digest;  ///< of all fields before it
};
static_assert(sizeof(Header) == header_size && std::is_trivially_copyable_v<Header>);

template <std::size_t N>
void fill(std::array<char, N>& to, std::string_view from) {
  std::memcpy(to.data(), from.data(), std::min(N, from.size()));
}

template <std::size_t N>
std::string_view view(const std::array<char, N>& bytes) {
  return {bytes.data(), N};
}

std::string_view bytes_of(const Header& header) {
  return {reinterpret_cast<const char*>(&header), sizeof(Header)};
}

TimeBase base_of(const Header& header) {
  return {std::chrono::microseconds(header.offset), std::chrono::microseconds(header.written),
          header.time_namespace};
}

std::string digest_of(const Header& header) {
  return sha256_hex(bytes_of(header).substr(0, sizeof(Header) - digest_size));
}

/// The content at the position of a slot's header.
struct Slot {
  enum class State {
    unwritten,     ///< zeros
    begun,         ///< the first bytes of a header, then zeros: the host failed during the write
    earlier_boot,  ///< a header of an earlier boot
    ours,          ///< a header of this boot
    damaged,       ///< anything else; no writer leaves this
  };
  State state = State::damaged;
  Header header{};
};

Slot read_slot(const ReadAt& read_at, std::size_t offset, const WasRebooted& was_rebooted) {
  using enum Slot::State;
  Slot slot;
  Header& header = slot.header;
  if (!read_at(offset, {reinterpret_cast<char*>(&header), sizeof(Header)})) return slot;
  const std::string_view bytes = bytes_of(header);
  const std::string_view written = bytes.substr(0, bytes.find_last_not_of('\0') + 1);
  if (written.empty()) {
    slot.state = unwritten;
  } else if (!written.starts_with(magic.substr(0, written.size()))) {
    slot.state = damaged;
  } else if (view(header.digest) == digest_of(header)) {
    const TimeBase base = base_of(header);
    if (base.is_sane()) slot.state = was_rebooted(base) ? earlier_boot : ours;
  } else if (written.size() < bytes.size()) {
    slot.state = begun;
  }
  return slot;
}

/// Whether writers of this boot may have left `other` beside their newest header: the preceding
/// copy, or none beside the first copy. Headers are written by one call and cannot be
/// truncated by the death of a process, so a damaged one may have been that of a newer copy.
bool fits(const Slot& newest, const Slot& other) {
  using enum Slot::State;
  if (newest.header.generation == 1) return other.state == unwritten;
  return other.state == ours && other.header.generation + 1 == newest.header.generation;
}

/// The file as empty, unless a writer of this boot has completed a copy or another program has
/// changed the file. The first copy goes into the first slot while the second has none. One header
/// of an earlier boot is enough, even beside one that could be of this boot by its time: writers of
/// this boot leave no others (LockFile::store).
std::optional<Empty> find_empty(const Slot& first, const Slot& second) {
  using enum Slot::State;
  if (first.state == damaged || second.state == damaged) return std::nullopt;
  if (first.state == earlier_boot || second.state == earlier_boot) return Empty{true};
  if (second.state == unwritten && (first.state == unwritten || first.state == begun))
    return Empty{};
  return std::nullopt;
}

/// Reads numbers and strings from the front of untrusted bytes.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : rest_(bytes) {}

  template <class Number>
  Number number() {
    Number value{};
    if (rest_.size() < sizeof(Number)) {
      fine_ = false;
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof(Number));
    rest_.remove_prefix(sizeof(Number));
    return value;
  }

  std::string text() {
    const auto size = number<std::uint32_t>();
    if (!fine_ || rest_.size() < size) {
      fine_ = false;
      return {};
    }
    std::string value(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return value;
  }

  void fail() { fine_ = false; }
  [[nodiscard]] bool fine() const { return fine_; }
  [[nodiscard]] bool at_end() const { return fine_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool fine_ = true;
};

template <class Number>
void append_number(std::string& bytes, Number number) {
  std::array<char, sizeof(Number)> raw{};
  std::memcpy(raw.data(), &number, sizeof(Number));
  bytes.append(raw.data(), raw.size());
}

void append_text(std::string& bytes, std::string_view text) {
  append_number(bytes, static_cast<std::uint32_t>(text.size()));
  bytes += text;
}

void append_value(std::string& bytes, const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) append_text(bytes, *text);
  if (const auto* hash = std::get_if<Hash>(&value)) {
    append_number(bytes, static_cast<std::uint32_t>(hash->size()));
    for (const auto& [field, content] : *hash) {
      append_text(bytes, field);
      append_text(bytes, content);
    }
  }
  if (const auto* zset = std::get_if<SortedSet>(&value)) {
    append_number(bytes, static_cast<std::uint32_t>(zset->size()));
    for (const auto& [score, member] : zset->ranking()) {
      append_number(bytes, score);
      append_text(bytes, member);
    }
  }
}

Value decode_value(Decoder& decoder, std::uint8_t type) {
  if (type == 0) return decoder.text();
  const auto count = decoder.number<std::uint32_t>();
  if (type == 1) {
    Hash hash;
    for (std::uint32_t i = 0; i < count && decoder.fine(); ++i) {
      std::string field = decoder.text();
      hash.emplace_back(std::move(field), decoder.text());
    }
    return hash;
  }
  if (type != 2) decoder.fail();
  SortedSet zset;
  for (std::uint32_t i = 0; i < count && decoder.fine(); ++i) {
    const auto score = decoder.number<double>();
    const std::string member = decoder.text();
    if (std::isnan(score) || !zset.put(member, score)) decoder.fail();
  }
  return zset;
}

}  // namespace

Found read(const ReadAt& read_at, std::size_t size, const WasRebooted& was_rebooted) {
  if (size == 0) return Empty{};
  if (size != file_size) return Damaged{};
  const std::array slots{read_slot(read_at, 0, was_rebooted),
                         read_slot(read_at, slot_size, was_rebooted)};
  if (const auto empty = find_empty(slots[0], slots[1])) return *empty;
  const auto is_ours = [](const Slot& one) { return one.state == Slot::State::ours; };
  if (std::ranges::none_of(slots, is_ours)) return Damaged{};
  const unsigned slot = is_ours(slots[1]) && (!is_ours(slots[0]) || slots[1].header.generation >
                                                                        slots[0].header.generation)
                            ? 1
                            : 0;
  const Header& header = slots.at(slot).header;
  if (!fits(slots.at(slot), slots.at(1 - slot))) return Damaged{};
  if (header.body_size > max_body || header.generation > max_generation) return Damaged{};
  std::string body(header.body_size, '\0');
  if (!read_at(slot * slot_size + header_size, body) ||
      sha256_hex(body) != view(header.body_digest))
    return Damaged{};
  auto entries = decode(body);
  if (!entries) return Damaged{};
  return Stored{header.generation, slot, base_of(header), std::move(*entries)};
}

std::vector<Write> plan(const Found& before, const TimeBase& base, const std::string& body) {
  const auto* stored = std::get_if<Stored>(&before);
  const std::size_t offset = stored != nullptr && stored->slot == 0 ? slot_size : 0;
  Header header{};
  fill(header.magic, magic);
  header.generation = stored != nullptr ? stored->generation + 1 : 1;
  header.body_size = body.size();
  header.offset = base.offset.count();
  header.written = base.written.count();
  header.time_namespace = base.time_namespace;
  fill(header.body_digest, sha256_hex(body));
  fill(header.digest, digest_of(header));
  return {{offset + header_size, body}, {offset, std::string(bytes_of(header))}};
}

std::string encode(const Keyspace::Entries& entries) {
  std::string bytes;
  append_number(bytes, static_cast<std::uint32_t>(entries.size()));
  for (const auto& [key, entry] : entries) {
    append_text(bytes, key);
    append_number(bytes, static_cast<std::uint8_t>(entry.value.index()));
    append_number(bytes, entry.expires ? entry.expires->count() : std::int64_t{-1});
    append_value(bytes, entry.value);
  }
  return bytes;
}

std::optional<Keyspace::Entries> decode(std::string_view bytes) {
  Decoder decoder(bytes);
  Keyspace::Entries entries;
  const auto count = decoder.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && decoder.fine(); ++i) {
    std::string key = decoder.text();
    const auto type = decoder.number<std::uint8_t>();
    const auto expires = decoder.number<std::int64_t>();
    Entry entry{decode_value(decoder, type), std::nullopt};
    if (expires != -1) entry.expires = Milliseconds(expires);
    if (!entries.emplace(std::move(key), std::move(entry)).second) decoder.fail();
  }
  if (!decoder.at_end()) return std::nullopt;
  return entries;
}

}  // namespace redlock::local::format
