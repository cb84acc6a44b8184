#include "support/random.hpp"

#include <sys/random.h>

#include <cerrno>

#include "support/kernel_calls.hpp"

namespace redlock {

void fill_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    // Above 256 bytes the kernel may return fewer than asked for, and a signal may interrupt the
    // call early.
    const ssize_t filled = ::getrandom(bytes.data(), bytes.size(), 0);
    if (filled < 0) {
      if (errno == EINTR) continue;
      throw_errno("getrandom");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(filled));
  }
}

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  fill_random(std::as_writable_bytes(std::span(&bits, 1)));
  return bits;
}

}  // namespace redlock
