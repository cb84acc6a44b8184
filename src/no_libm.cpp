// What Lua takes from libm, which is loaded at each start for that alone.
#include <cstdint>
#include <cstdlib>

extern "C" double floor(double number) noexcept {
  constexpr double all_are_whole = 4503599627370496.0;  // 2^52: from here on
  if (!(number > -all_are_whole && number < all_are_whole)) return number;
  const auto whole = static_cast<double>(static_cast<std::int64_t>(number));
  if (whole == number) return number;  // -0.0 stays what it is
  return whole > number ? whole - 1 : whole;
}

/// Lua's `^`, which no script uses.
extern "C" double pow(double /*base*/, double /*exponent*/) noexcept {
  std::abort();
}
