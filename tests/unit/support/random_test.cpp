#include "support/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

namespace redlock {
namespace {

TEST(FillRandom, FillsTheWholeSpanHoweverLong) {
  // The kernel may fill long spans in pieces. 64 zero bytes would be no coincidence.
  std::vector<std::byte> bytes(1U << 20U);
  fill_random(bytes);
  for (std::size_t at = 0; at < bytes.size(); at += 64) {
    const auto piece = std::span(bytes).subspan(at, 64);
    ASSERT_TRUE(std::any_of(piece.begin(), piece.end(), [](std::byte byte) {
      return byte != std::byte{0};
    })) << at;
  }
}

TEST(FillRandom, LeavesTheNeighboursAlone) {
  std::array<std::byte, 18> bytes{};
  for (int round = 0; round < 16; ++round) {
    fill_random(std::span(bytes).subspan(1, 16));
    EXPECT_EQ(bytes.front(), std::byte{0});
    EXPECT_EQ(bytes.back(), std::byte{0});
  }
}

TEST(FillRandom, TakesAnEmptySpan) {
  fill_random({});
}

TEST(RandomBits, DoNotRepeat) {
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random_bits());
  EXPECT_EQ(seen.size(), 1000U);
}

TEST(RandomBits, TakeBothValuesInEveryPosition) {
  std::uint64_t ones = 0;
  std::uint64_t zeros = 0;
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t bits = random_bits();
    ones |= bits;
    zeros |= ~bits;
  }
  EXPECT_EQ(ones, ~std::uint64_t{0});
  EXPECT_EQ(zeros, ~std::uint64_t{0});
}

}  // namespace
}  // namespace redlock
