#include "core/types.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "support/encoding.hpp"
#include "support/number.hpp"
#include "support/text.hpp"

namespace redlock {

Result<Resource, ResourceError> Resource::from(std::string_view key) {
  if (key.empty()) return unexpected(ResourceError::empty);
  if (key.size() > max_bytes) return unexpected(ResourceError::too_long);
  if (key.starts_with(reserved_prefix)) return unexpected(ResourceError::reserved);
  return Resource(key);
}

std::string describe(ResourceError error) {
  switch (error) {
    case ResourceError::empty:
      return "the key is empty";
    case ResourceError::too_long:
      return "the key is longer than " + std::to_string(Resource::max_bytes) + " bytes";
    case ResourceError::reserved:
      return "the key begins with '" + std::string(Resource::reserved_prefix) +
             "', which is reserved for redlock-cli's records";
  }
  return "the key is not valid";
}

Token Token::draw(const std::function<std::uint64_t()>& random) {
  const std::array<std::uint64_t, 2> words{random(), random()};
  return from_random(std::as_bytes(std::span(words)));
}

Token Token::from_random(std::span<const std::byte, bits / 8> random) {
  return Token(hex(random));
}

std::optional<Token> Token::from_text(std::string_view text) {
  if (text.size() != digits || text.find_first_not_of(hex_digits) != text.npos) return std::nullopt;
  return Token(std::string(text));
}

std::optional<Fence> Fence::from_text(std::string_view text) {
  const auto value = whole_number<std::uint64_t>(text);
  if (!value || *value > max) return std::nullopt;
  return Fence(*value);
}

std::string Fence::text() const {
  return std::to_string(value_);
}

bool is_slot_name(std::string_view text) {
  constexpr std::size_t max_bytes = 64;
  const auto is_allowed = [](char c) {
    return is_letter_or_digit(c) || std::string_view("._:-").find(c) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= max_bytes && text.front() != '-' &&
         std::ranges::all_of(text, is_allowed) &&
         text.find_first_not_of("0123456789") != std::string_view::npos;
}

Hold hold_in(const Mode& mode, const Slots& granted) {
  Hold hold{mode.shared};
  for (const std::size_t slot : granted) {
    if (mode.only.empty()) {
      hold.slots.push_back(slot);
    } else if (const auto number = whole_number<std::size_t>(mode.only.at(slot))) {
      hold.slots.push_back(*number);
    } else {
      hold.slot_names.push_back(mode.only.at(slot));
    }
  }
  return hold;
}

std::optional<Ttl> Ttl::from(Duration span) {
  const auto length = std::chrono::duration_cast<Milliseconds>(span);
  if (length < Milliseconds(1) || length > max) return std::nullopt;
  return Ttl(length);
}

}  // namespace redlock
