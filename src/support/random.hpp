#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace redlock {

/// Fills the span from getrandom(2), blocking until the kernel's pool is ready. Throws
/// std::system_error if the kernel cannot provide randomness at all: a token must never be
/// guessable.
void fill_random(std::span<std::byte> bytes);

/// 64 random bits, for jitter.
std::uint64_t random_bits();

}  // namespace redlock
