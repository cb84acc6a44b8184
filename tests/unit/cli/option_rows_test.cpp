#include "cli/option_rows.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace redlock::cli {
namespace {

TEST(Options, AreListedOnce) {
  const std::set<const OptionRow*> rows(option::all_options.begin(), option::all_options.end());
  EXPECT_EQ(rows.size(), option::all_options.size());
  EXPECT_FALSE(rows.contains(nullptr));
}

TEST(Options, OfOneCommandHaveDifferentSpellings) {
  std::map<std::string, unsigned> commands_of;
  for (const OptionRow* option : option::all_options) {
    std::string flags = std::string(option->spec().flags) + ",";
    for (std::size_t end = flags.find(','); end != std::string::npos; end = flags.find(',')) {
      unsigned& commands = commands_of[flags.substr(0, end)];
      EXPECT_EQ(commands & option->spec().commands, 0U) << flags;
      commands |= option->spec().commands;
      flags.erase(0, end + 1);
    }
  }
}

TEST(Options, AreNamedByTheirFirstLongSpelling) {
  EXPECT_EQ(option::nonblock.name(), "nonblock");
  EXPECT_EQ(option::wait.name(), "wait");
  EXPECT_EQ(option::exclusive.spelling(), "--exclusive");
  EXPECT_STREQ(option::conflict_exit_code.variable(), "REDLOCK_CONFLICT_EXIT_CODE");
}

TEST(Options, HaveValidDefaults) {
  for (const OptionRow* option : option::all_options) {
    if (option->spec().default_words != nullptr || option->default_text().empty()) continue;
    EXPECT_EQ(option->problem(option->default_text(), "x"), "") << option->name();
  }
}

TEST(Options, ReadTheDefaultThatTheyShow) {
  const auto expect_same = [](const auto& option) {
    const auto value = option.type().read(option.default_text(), "x");
    ASSERT_TRUE(value) << option.name();
    EXPECT_EQ(*value, option.fallback()) << option.name();
  };
  // One of each type.
  expect_same(option::exclusive);
  expect_same(option::verbose);
  expect_same(option::conflict_exit_code);
  expect_same(option::wait);
  expect_same(option::unavailable_wait);
  expect_same(option::stop_signal);
  expect_same(option::on_lost);
}

TEST(Options, ExplainInvalidValues) {
  EXPECT_EQ(option::on_lost.problem("never", "x"), "must be kill, term or warn");
  EXPECT_EQ(option::slots.problem("0", "x"), "must be at least 1");
  for (const char* text : {"1001", "3.0", "1.5"})
    EXPECT_EQ(option::slots.problem(text, "x"), "must be a whole number from 1 to 1000") << text;
  EXPECT_EQ(option::slots.problem("a,b,a", "x"), "has the name a twice");
  for (const char* text : {"+1", "-1", "1,2", "a,", ",a", "a b"}) {
    EXPECT_TRUE(option::slots.problem(text, "x").starts_with("must be a number, or names")) << text;
    EXPECT_FALSE(option::slot.problem(text, "x").empty()) << text;
  }
  for (const char* text : {"phone1,1e3", "1.0,2.0", "10.0.0.1"})
    EXPECT_EQ(option::slots.problem(text, "x"), "") << text;
  EXPECT_EQ(option::retry_delay.problem("0", "x"), "must be at least 1ms");
  EXPECT_EQ(option::min_hold.problem("366d", "x"), "must be at most 365d");
  EXPECT_EQ(option::quiet.problem("maybe", "x"), "must be true or false");
  EXPECT_EQ(option::verbose.problem("10", "x"), "must be true or false, or a number up to 9");
  for (const char* text : {"0,", ",1", "1,,2", "0, 1", "256", "-1", "+1", "one", "1-3"}) {
    EXPECT_EQ(option::success_codes.problem(text, "x"),
              "must be exit statuses from 0 to 255, separated by commas")
        << text;
  }
  EXPECT_EQ(option::success_codes.problem("0,1,255", "x"), "");
  EXPECT_EQ(option::note.problem(std::string(513, 'a'), "x"), "") << "it is shortened";
}

TEST(Options, NameAnEmptyValueAsSuch) {
  for (const OptionRow* option : std::initializer_list<const OptionRow*>{
           &option::while_pid, &option::conflict_exit_code, &option::if_fence, &option::slots,
           &option::slot, &option::success_codes, &option::runs}) {
    EXPECT_EQ(option->problem("", ""), "is empty") << option->name();
  }
}

// A message must not repeat a value from a file, so the caller passes a placeholder.
TEST(Options, ShowAnInvalidValueInTheGivenForm) {
  EXPECT_EQ(option::stop_signal.problem("secret", "..."),
            "unknown signal '...'; write one like TERM, INT or 15");
  EXPECT_EQ(option::ttl.problem("secret", "...").find("secret"), std::string::npos);
}

}  // namespace
}  // namespace redlock::cli
