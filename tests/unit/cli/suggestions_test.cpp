#include "cli/suggestions.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace redlock::cli {
namespace {

using Kind = Suggestions::Kind;

bool has(const Suggestions& suggestions, const std::string& text) {
  return std::any_of(suggestions.words.begin(), suggestions.words.end(),
                     [&](const Suggestions::Word& word) { return word.text == text; });
}

TEST(Suggestions, BeginWithTheCommands) {
  EXPECT_TRUE(has(suggest({""}), "run"));
  EXPECT_FALSE(has(suggest({""}), "--help"));
  EXPECT_TRUE(has(suggest({"-"}), "--version"));
  EXPECT_TRUE(has(suggest({"help", ""}), "doctor"));
  EXPECT_TRUE(suggest({"no-command", ""}).words.empty());
}

TEST(Suggestions, AreTheOptionsOfTheCommand) {
  const Suggestions of_run = suggest({"run", "-"});
  EXPECT_TRUE(has(of_run, "-k"));
  EXPECT_TRUE(has(of_run, "--"));
  EXPECT_FALSE(has(of_run, "--while-pid"));
  EXPECT_TRUE(has(suggest({"acquire", "--"}), "--while-pid"));
  EXPECT_FALSE(has(suggest({"acquire", "--"}), "--"));
}

TEST(Suggestions, ExplainAnOptionBriefly) {
  for (const Suggestions::Word& word : suggest({"run", "-"}).words) {
    EXPECT_FALSE(word.help.empty()) << word.text;
    EXPECT_LE(word.help.size(), 100U) << word.text;
  }
}

TEST(Suggestions, AreValuesAfterAnOptionThatNeedsOne) {
  EXPECT_EQ(suggest({"run", "-k", ""}).kind, Kind::keys);
  EXPECT_EQ(suggest({"run", "-nk", ""}).kind, Kind::keys);
  EXPECT_EQ(suggest({"run", "-kn", ""}).kind, Kind::words);  // the key is n
  EXPECT_EQ(suggest({"run", "--config", "x"}).kind, Kind::files);
  EXPECT_EQ(suggest({"run", "--cacertdir", ""}).kind, Kind::directories);
  EXPECT_EQ(suggest({"acquire", "--while-pid", ""}).kind, Kind::pid);
  EXPECT_TRUE(has(suggest({"run", "--on-lost", ""}), "warn"));
  EXPECT_TRUE(has(suggest({"run", "--stop-signal", "T"}), "TERM"));
  EXPECT_TRUE(has(suggest({"run", "--stop-signal", "SIGT"}), "SIGTERM"));
  EXPECT_TRUE(suggest({"run", "--ttl", ""}).words.empty());
}

TEST(Suggestions, KeepThePrefixOfTheWord) {
  EXPECT_EQ(suggest({"run", "--on-lost="}).prefix, "--on-lost=");
  EXPECT_EQ(suggest({"run", "-nkde"}).prefix, "-nk");
  EXPECT_EQ(suggest({"run", "--config=a"}).prefix, "--config=");
  EXPECT_EQ(suggest({"run", "--server=local:/ru"}).prefix, "--server=local:");
  EXPECT_EQ(suggest({"run", "-S", "unix:///ru"}).prefix, "unix://");
}

TEST(Suggestions, LeaveTheCommandOfRunToTheShell) {
  const auto command_word = [](const std::vector<std::string>& words) {
    const Suggestions suggestions = suggest(words);
    return suggestions.kind == Kind::command ? suggestions.command_word : 0;
  };
  EXPECT_EQ(command_word({"run", "-k", "a", "ma"}), 3U);
  EXPECT_EQ(command_word({"run", "-k", "a", "make", "-"}), 3U);
  EXPECT_EQ(command_word({"run", "-n", "--", ""}), 3U);
  EXPECT_EQ(command_word({"run", "-n", "--", "make", "--"}), 3U);
  EXPECT_EQ(command_word({"run", "--wait=5s", "-S", "redis://h:1", "x", "y"}), 4U);
  EXPECT_EQ(command_word({"run", "-k", "--", ""}), 3U);  // -- is no key, and ends the options
  EXPECT_EQ(command_word({"run", "-k"}), 0U);
  EXPECT_EQ(command_word({"status", "a"}), 0U);
}

TEST(Suggestions, AreKeysWhereACommandTakesThem) {
  EXPECT_EQ(suggest({"status", "dep"}).kind, Kind::keys);
  EXPECT_EQ(suggest({"release", "deploy", ""}).kind, Kind::keys);
  EXPECT_EQ(suggest({"acquire", ""}).kind, Kind::keys);
  EXPECT_NE(suggest({"acquire", "deploy", ""}).kind, Kind::keys);
  EXPECT_TRUE(has(suggest({"release", ""}), "--force"));
  EXPECT_FALSE(has(suggest({"status", "--", ""}), "--json"));
}

}  // namespace
}  // namespace redlock::cli
