#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/protocol.hpp"
#include "support/boot_clock.hpp"
#include "support/result.hpp"

namespace redlock {

enum class ResourceError {
  empty,     ///< no bytes
  too_long,  ///< more than Resource::max_bytes
  reserved,  ///< begins with `redlock:`, the prefix of the helper keys
};

/// The name of what is locked. It is the key on the servers, verbatim: 1 to 4096 bytes of any
/// value, not beginning with `redlock:` (K1).
class Resource {
 public:
  static constexpr std::size_t max_bytes = 4096;
  static constexpr std::string_view reserved_prefix = protocol::word::prefix;

  static Result<Resource, ResourceError> from(std::string_view key);

  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  friend auto operator<=>(const Resource&, const Resource&) = default;

 private:
  explicit Resource(std::string_view key) : key_(key) {}
  std::string key_;
};

/// What is wrong with the key, as one clause for the user.
std::string describe(ResourceError error);

/// The secret that proves ownership of a lease: 128 random bits as 32 lower-case hexadecimal
/// digits. Never shown, logged or put in argv; there is deliberately no stream operator and no
/// formatter.
class Token {
 public:
  static constexpr std::size_t bits = 128;
  static constexpr std::size_t digits = bits / 4;

  /// A token from 16 random bytes.
  static Token from_random(std::span<const std::byte, bits / 8> random);

  /// A token from a source of 64 random bits for each call.
  static Token draw(const std::function<std::uint64_t()>& random);

  /// The inverse of secret(); nullopt for a text that secret() does not return.
  static std::optional<Token> from_text(std::string_view text);

  /// The secret itself: only for the wire and for the lease handle that the holder gets.
  [[nodiscard]] const std::string& secret() const noexcept { return text_; }
  friend bool operator==(const Token&, const Token&) = default;

 private:
  explicit Token(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

/// The fencing token: a number that a protected resource can check. It grows with each acquisition
/// (R6). Granted fences are below `max`.
class Fence {
 public:
  static constexpr std::uint64_t max = protocol::max_fence;

  Fence() = default;
  explicit constexpr Fence(std::uint64_t value) : value_(value) {}

  /// Reads decimal digits; nullopt for any other text, or a number above `max`.
  static std::optional<Fence> from_text(std::string_view text);

  [[nodiscard]] std::uint64_t value() const noexcept { return value_; }
  [[nodiscard]] std::string text() const;
  friend auto operator<=>(const Fence&, const Fence&) = default;

 private:
  std::uint64_t value_ = 0;
};

/// How long a server keeps a lease that is not extended. Whole milliseconds, at least one.
class Ttl {
 public:
  /// Truncates `span` to milliseconds; nullopt if the result is not in [1 ms, max].
  static std::optional<Ttl> from(Duration span);

  /// A longer lease is a mistake: a lock is not meant to last for years. The limit also keeps every
  /// sum of times far from overflow.
  static constexpr Milliseconds max = std::chrono::hours(24 * 365);

  [[nodiscard]] Milliseconds length() const noexcept { return length_; }
  friend auto operator<=>(const Ttl&, const Ttl&) = default;

 private:
  explicit Ttl(Milliseconds length) : length_(length) {}
  Milliseconds length_;
};

/// The public name of a lease: SHA-1 of its token, as the servers compute it. It does not prove
/// ownership, so it may be shown and compared.
/// For a foreign value, the hash of that value; for a key of another type, `type:` and the type's
/// name.
struct LeaseId {
  std::string text;
  friend auto operator<=>(const LeaseId&, const LeaseId&) = default;
};

/// The mode in which a lock is requested: exclusive, or shared with other readers (PROTOCOL M1),
/// possibly limited to a number of slots (M2).
struct Mode {
  static constexpr std::size_t max_slots = protocol::max_slots;

  bool shared = false;
  std::size_t slots = 0;  ///< the number of slots; more than zero only with `shared`
  std::size_t take = 1;   ///< how many of them to take, all or none (PROTOCOL M4)
  /// The slots that suffice: `slots` names, or one number. Empty: all from 0 to `slots` - 1.
  std::vector<std::string> only{};
  friend bool operator==(const Mode&, const Mode&) = default;
};

/// Whether a slot may have this name: 1 to 64 bytes of letters, digits and `. _ : -`, not digits
/// alone, and not beginning with `-`.
bool is_slot_name(std::string_view text);

/// Slot numbers, from 0 on, each once, in ascending order. In a request with Mode::only, and in the
/// answer to it, the positions there: another client may have the same slots in another order.
using Slots = std::vector<std::size_t>;

/// How a lease holds its lock.
struct Hold {
  bool shared = false;
  Slots slots{};                          ///< by number; empty: none
  std::vector<std::string> slot_names{};  ///< by name; empty: none
  friend bool operator==(const Hold&, const Hold&) = default;
};

/// How a lease holds its lock that was granted these slots.
Hold hold_in(const Mode& mode, const Slots& granted);

}  // namespace redlock
