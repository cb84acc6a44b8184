#include "child/title.hpp"

#include <gtest/gtest.h>

#include "in_child.hpp"

namespace redlock::child {
namespace {

using namespace testing;

/// Words as the kernel lays out main's: one behind the other, and the environment behind them.
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

TEST(Title, ThatDoesNotFitIsCut) {
  in_child([] {
    Words words({"lock", "run"});
    set_title("lock-holder", words.count, words.pointers.data());
    EXPECT_EQ(comm(), "lock-holder");
    EXPECT_EQ(words.bytes, "lock-hol" + std::string(1, '\0') + "HOME=/");
  });
}

TEST(Title, LeavesWordsThatLieElsewhereAlone) {
  in_child([] {
    Words words({"redlock-cli", "run"});
    std::string elsewhere = "secret";
    words.pointers[1] = elsewhere.data();
    set_title("t", words.count, words.pointers.data());
    EXPECT_EQ(elsewhere, "secret");
    EXPECT_EQ(words.bytes, "t" + std::string(11, '\0') + "run" + std::string(1, '\0') + "HOME=/");
  });
}

TEST(Title, WithoutWordsOnlyTheName) {
  in_child([] {
    char* none = nullptr;
    set_title("lock-holder", 0, &none);
    EXPECT_EQ(comm(), "lock-holder");
  });
}

}  // namespace
}  // namespace redlock::child
