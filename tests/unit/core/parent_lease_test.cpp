#include "core/parent_lease.hpp"

#include <gtest/gtest.h>

namespace redlock {
namespace {

constexpr std::string_view boot = "0d1a5e7e-1f0c-4c7a-9a61-0123456789ab";
constexpr std::string_view handle_text =
    "1.x.85944171f73967e8.ZGVwbG95.0123456789abcdef0123456789abcdef.42";

std::string entry() {
  return "1:" + std::string(boot) + ":4711:98765:30000:" + std::string(handle_text);
}

TEST(ParentLease, IsReadAsItWasWritten) {
  const auto leases = read_held(entry() + " " + entry());
  ASSERT_EQ(leases.size(), 2U);
  EXPECT_EQ(leases[0].guard, (ProcessIdentity{std::string(boot), 4711, 98765}));
  EXPECT_EQ(leases[0].ttl, Ttl::from(std::chrono::seconds(30)));
  EXPECT_EQ(leases[0].handle.text(), handle_text);
  EXPECT_EQ(held_text(leases), entry() + " " + entry());
}

TEST(ParentLease, LeavesOutWhatItDoesNotUnderstand) {
  const std::string good = entry();
  const auto with = [&good](std::string_view part, std::string_view other) {
    std::string text = good;
    return text.replace(text.find(part), part.size(), other);
  };
  for (const std::string& bad : std::vector<std::string>{
           "", " ", "x", "1", ":::::", with("1:0d", "2:0d"), with(":4711:", ":-4711:"),
           with(":4711:", ":0:"), with(":4711:", ":47a:"), with(":98765:", "::"),
           with(":30000:", ":0:"), with(":30000:", ":99999999999999999999:"), with("1.x", "1.q"),
           good + ":", with(boot, "")}) {
    EXPECT_TRUE(read_held(bad).empty()) << bad;
    const auto leases = read_held(bad + " " + good + " " + bad);
    EXPECT_EQ(leases.size(), 1U) << bad;
  }
  for (std::size_t size = 0; size + 1 < good.size(); ++size)
    EXPECT_TRUE(read_held(good.substr(0, size)).empty()) << size;
}

}  // namespace
}  // namespace redlock
