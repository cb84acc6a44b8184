#include "cli/config_file.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "commands/command_error.hpp"

namespace redlock::cli {
namespace {

/// The error message for a file with this text, without its path.
std::string refusal_of(const std::string& text) {
  const int file = ::memfd_create("config", MFD_CLOEXEC);
  EXPECT_EQ(::pwrite(file, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  std::string refusal;
  try {
    read_config_file(path, Found::by_name);
  } catch (const CommandError& error) {
    refusal = std::string(error.what()).substr(path.size() + 2);
  }
  ::close(file);
  return refusal;
}

void expect_begin(const std::string& text, const std::string& beginning) {
  EXPECT_EQ(refusal_of(text).substr(0, beginning.size()), beginning) << text;
}

// Each of these texts makes an assertion of the library fail.
TEST(ConfigFile, RefusesTextThatFailsAssertionsOfTheLibrary) {
  expect_begin("[!]\n", "line 1, column 2: not TOML");
  expect_begin("ttl = 30\n \t[[ =x]]\n", "line 2, column 6: not TOML");
  expect_begin("[\x03server]\n", "line 1, column 2: not TOML");
  expect_begin("ttl = 1979-05-27Tp7:32:00Z\n", "line 1, column 18: not TOML");
}

}  // namespace
}  // namespace redlock::cli
