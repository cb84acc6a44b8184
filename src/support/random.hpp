#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace redlock {

/// Fills the span from getrandom(2), and blocks until the kernel's pool is ready. Throws
/// std::system_error if the kernel provides no randomness, because a token must never be guessable.
void fill_random(std::span<std::byte> bytes);

/// 64 random bits, for jitter.
std::uint64_t random_bits();

}  // namespace redlock
