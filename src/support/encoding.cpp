#include "support/encoding.hpp"

#include <cstdint>

namespace redlock {
namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr unsigned bits_per_digit = 6;
constexpr unsigned bits_per_byte = 8;

/// Bits that do not make up a whole digit or byte yet; never more than 13.
class BitQueue {
 public:
  void push(std::uint32_t value, unsigned bits) {
    bits_ = (bits_ << bits) | value;
    size_ += bits;
  }

  std::uint32_t pop(unsigned bits) {
    size_ -= bits;
    const std::uint32_t value = bits_ >> size_;
    bits_ &= (1U << size_) - 1;
    return value;
  }

  [[nodiscard]] unsigned size() const { return size_; }

 private:
  std::uint32_t bits_ = 0;
  unsigned size_ = 0;
};

}  // namespace

std::string encode_base64url(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() * bits_per_byte + bits_per_digit - 1) / bits_per_digit);
  BitQueue bits;
  for (const char byte : bytes) {
    bits.push(static_cast<unsigned char>(byte), bits_per_byte);
    while (bits.size() >= bits_per_digit) text += alphabet[bits.pop(bits_per_digit)];
  }
  if (bits.size() > 0) {
    bits.push(0, bits_per_digit - bits.size());
    text += alphabet[bits.pop(bits_per_digit)];
  }
  return text;
}

std::optional<std::string> decode_base64url(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() * bits_per_digit / bits_per_byte);
  BitQueue bits;
  for (const char digit : text) {
    const auto value = alphabet.find(digit);
    if (value == std::string_view::npos) return std::nullopt;
    bits.push(static_cast<std::uint32_t>(value), bits_per_digit);
    if (bits.size() >= bits_per_byte) bytes += static_cast<char>(bits.pop(bits_per_byte));
  }
  // The encoder never leaves a whole unused digit or sets stray bits: either would be a second
  // spelling of the same bytes.
  const unsigned left = bits.size();
  if (left >= bits_per_digit || bits.pop(left) != 0) return std::nullopt;
  return bytes;
}

void append_hex(std::string& out, std::uint64_t number, unsigned digits) {
  for (unsigned left = digits; left > 0; --left) {
    out += hex_digits[(number >> (4 * (left - 1))) & 0xfU];
  }
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text(2 * bytes.size(), '0');
  auto digit = text.begin();
  for (const std::byte byte : bytes) {
    *digit++ = hex_digits[std::to_integer<std::size_t>(byte >> 4)];
    *digit++ = hex_digits[std::to_integer<std::size_t>(byte & std::byte{0xf})];
  }
  return text;
}

}  // namespace redlock
