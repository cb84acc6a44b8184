#include "proc/title.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>

#include "../in_child.hpp"

namespace redlock::proc {
namespace {

using namespace testing;

/// Arguments laid out as the kernel lays out main's: contiguous, and followed by the environment.
struct Words {
  explicit Words(const std::vector<std::string>& words) {
    for (const std::string& word : words) bytes += word + '\0';
    length = bytes.size();
    bytes += "HOME=/";
    std::size_t begin = 0;
    for (const std::string& word : words) {
      pointers.push_back(bytes.data() + begin);
      begin += word.size() + 1;
    }
    count = static_cast<int>(pointers.size());
    pointers.push_back(nullptr);
  }

  std::string bytes;
  std::size_t length = 0;
  std::vector<char*> pointers;
  int count = 0;
};

std::string comm() {
  std::ifstream file("/proc/self/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

TEST(Title, ReplacesNameAndCommandLine) {
  in_child([] {
    Words words({"redlock-cli", "run", "-k", "deploy", "--", "cmd"});
    set_title("lock-holder", words.count, words.pointers.data());
    EXPECT_EQ(comm(), "lock-holder");
    EXPECT_EQ(words.bytes, "lock-holder" + std::string(words.length - 11, '\0') + "HOME=/");
  });
}

TEST(Title, IsCutIfItDoesNotFit) {
  in_child([] {
    Words words({"lock", "run"});
    set_title("lock-holder", words.count, words.pointers.data());
    EXPECT_EQ(comm(), "lock-holder");
    EXPECT_EQ(words.bytes, "lock-hol" + std::string(1, '\0') + "HOME=/");
  });
}

TEST(Title, LeavesArgumentsElsewhereInMemoryAlone) {
  in_child([] {
    Words words({"redlock-cli", "run"});
    std::string elsewhere = "secret";
    words.pointers[1] = elsewhere.data();
    set_title("t", words.count, words.pointers.data());
    EXPECT_EQ(elsewhere, "secret");
    EXPECT_EQ(words.bytes, "t" + std::string(11, '\0') + "run" + std::string(1, '\0') + "HOME=/");
  });
}

/// Whether a process that runs `program` (or ours) under this name is taken for a guard.
bool is_guard_named(std::string_view name, const char* program) {
  std::array<int, 2> named{};
  EXPECT_EQ(::pipe(named.data()), 0);
  const pid_t child = forked([&] {
    const std::string number = std::to_string(named[1]);
    const std::string text =
        "printf " + std::string(name) + " >/proc/self/comm; echo >&" + number + "; sleep 1000";
    if (program != nullptr) ::execl(program, program, "-c", text.c_str(), nullptr);
    set_name(name);
    EXPECT_EQ(::write(named[1], "", 1), 1);
    ::pause();
    return 0;
  });
  ::close(named[1]);
  char byte = 0;
  EXPECT_EQ(::read(named[0], &byte, 1), 1) << "it has its name";
  ::close(named[0]);
  const bool is_guard = has_guard_title(child);
  ::kill(child, SIGKILL);
  status_of(child);
  return is_guard;
}

TEST(Title, AGuardIsRecognisedByItsNameAndItsProgram) {
  in_child([] {
    for (const std::string_view title : {holder_title, shield_title, releaser_title}) {
      EXPECT_TRUE(is_guard_named(title, nullptr)) << title;
      EXPECT_FALSE(is_guard_named(title, "/bin/sh")) << title;
    }
    EXPECT_FALSE(is_guard_named("redlock-cli", nullptr)) << "a run works on";
    EXPECT_FALSE(is_guard_named("lock-holders", nullptr));
    EXPECT_FALSE(has_guard_title(0x7fffffff));

    const pid_t ended = forked([] {
      set_name(holder_title);
      return 0;
    });
    siginfo_t info{};
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(ended), &info, WEXITED | WNOWAIT), 0);
    EXPECT_TRUE(has_guard_title(ended)) << "it has no program any more";
    status_of(ended);
  });
}

TEST(Title, WithoutArgumentsItSetsOnlyTheName) {
  in_child([] {
    char* none = nullptr;
    set_title("lock-holder", 0, &none);
    EXPECT_EQ(comm(), "lock-holder");
  });
}

}  // namespace
}  // namespace redlock::proc
