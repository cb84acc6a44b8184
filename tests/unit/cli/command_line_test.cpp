#include "cli/command_line.hpp"

#include <gtest/gtest.h>

#include "cli/option_rows.hpp"
#include "commands/command_error.hpp"

namespace redlock::cli {
namespace {

using Words = std::vector<std::string>;

CommandLine read(const Words& words) {
  CommandLine line;
  read_command_line(words, line);
  return line;
}

/// The error for these words; empty if they are valid.
std::string error_of(const Words& words, CommandLine* line = nullptr) {
  CommandLine own;
  try {
    read_command_line(words, line != nullptr ? *line : own);
  } catch (const CommandError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return {};
}

Words values(const CommandLine& line, const OptionRow& option) {
  const auto* found = line.find(option);
  return found != nullptr ? *found : Words{};
}

const Words nasty{"-n", "--json",  "--",   "",   "-",  "[a,b]",
                  "{}", "--key=x", "a\nb", "-h", "++", "run"};

TEST(CommandLine, LeavesTheCommandOfRunAlone) {
  for (const bool dashes : {false, true}) {
    Words words{"run", "-k", "a", "-n"};
    if (dashes) words.emplace_back("--");
    Words command{"cmd"};
    command.insert(command.end(), nasty.begin(), nasty.end());
    words.insert(words.end(), command.begin(), command.end());
    const CommandLine line = read(words);
    EXPECT_EQ(line.words, command);
    EXPECT_EQ(line.has_dashes, dashes);
    EXPECT_EQ(line.given.size(), 2U);
  }
}

TEST(CommandLine, LeavesEveryWordAfterDashesAlone) {
  for (const std::string& word : nasty) {
    EXPECT_EQ(read({"run", "-k", "a", "--", word, "x"}).words, (Words{word, "x"}));
    EXPECT_EQ(read({"run", "-n", "--", word, "x"}).words, (Words{word, "x"}));
    EXPECT_EQ(values(read({"status", "--", word}), option::key), Words{word});
  }
}

TEST(CommandLine, TakesAValueInEachOfItsForms) {
  for (const Words& form : {Words{"-k", "a"}, Words{"-ka"}, Words{"--key", "a"}, Words{"--key=a"},
                            Words{"-nk", "a"}, Words{"-nka"}}) {
    for (const char* next : {"cmd", "--", "-q"}) {
      Words words{"run"};
      words.insert(words.end(), form.begin(), form.end());
      words.insert(words.end(), {next, "cmd"});
      const CommandLine line = read(words);
      EXPECT_EQ(values(line, option::key), Words{"a"}) << form.front() << " " << next;
      EXPECT_EQ(line.words.back(), "cmd");
      EXPECT_EQ(line.has_dashes, std::string(next) == "--");
    }
  }
}

TEST(CommandLine, KeepsAnEmptyValueFromTakingTheNextWord) {
  for (const Words& next :
       {Words{"cmd"}, Words{"-n"}, Words{"--", "cmd"}, Words{}, Words{"cmd", "--"}, Words{""}}) {
    Words words{"run", "-k", "a", "--note="};
    words.insert(words.end(), next.begin(), next.end());
    const CommandLine line = read(words);
    EXPECT_EQ(values(line, option::note), Words{""});
    if (!next.empty() && next.front() != "-n") {
      EXPECT_EQ(line.words, next.front() == "--" ? Words{"cmd"} : next);
    }
  }
}

TEST(CommandLine, TakesAnOptionalValueIfTheNextWordIsOne) {
  const auto watch_of = [](const Words& words) { return values(read(words), option::watch); };
  EXPECT_EQ(watch_of({"status", "--watch"}), Words{"1s"});
  EXPECT_EQ(watch_of({"status", "--watch", "5s"}), Words{"5s"});
  EXPECT_EQ(watch_of({"status", "--watch=250ms", "deploy"}), Words{"250ms"});
  EXPECT_EQ(watch_of({"status", "--watch", "-v"}), Words{"1s"});
  EXPECT_EQ(watch_of({"status", "--watch", "--", "5s"}), Words{"1s"});
  const CommandLine line = read({"status", "--watch", "deploy", "-v"});
  EXPECT_EQ(values(line, option::watch), Words{"1s"});
  EXPECT_EQ(values(line, option::key), Words{"deploy"});
  EXPECT_NE(error_of({"status", "--watch=soon"}), "");
  EXPECT_NE(error_of({"status", "--watch="}), "");
  EXPECT_NE(error_of({"status", "--watch", "--watch"}), "");
}

TEST(CommandLine, RefusesAnOptionalValueThatIsOutOfRange) {
  constexpr std::string_view advice = "; a key like this is named with -k";
  for (const char* number : {"0", "21", "50", "99999999999999999999"}) {
    EXPECT_EQ(error_of({"status", "nightly", "--runs", number}),
              error_of({"status", "nightly", std::string("--runs=") + number}).append(advice));
  }
  for (const char* duration : {"0", "50ms", "infinity", "500000000000h"}) {
    EXPECT_EQ(error_of({"status", "--watch", duration}),
              error_of({"status", std::string("--watch=") + duration}).append(advice));
  }
  EXPECT_EQ(values(read({"status", "--runs", "-k", "50"}), option::key), Words{"50"});
  for (const char* key : {"50x", "1.5", "5s"})
    EXPECT_EQ(values(read({"status", "--runs", key}), option::key), Words{key});
  for (const char* key : {"50x", "2026-11-27", "s"})
    EXPECT_EQ(values(read({"status", "--watch", key}), option::key), Words{key});
}

TEST(CommandLine, RefusesAValueThatLooksLikeAnOption) {
  for (const std::string word : {"-n", "-1s", "--", "--bogus", "-Z", "- x", "--=", "--key=a"}) {
    EXPECT_EQ(error_of({"run", "-k", word, "cmd"}),
              "--key needs a value, and " + (word == "- x" ? "'- x'" : word) +
                  " looks like an option; if it is the value, write --key=" +
                  (word == "- x" ? "'- x'" : word));
    EXPECT_EQ(values(read({"run", "--key=" + word, "cmd"}), option::key), Words{word});
    EXPECT_EQ(values(read({"run", "-k" + word, "cmd"}), option::key), Words{word});
  }
  EXPECT_EQ(error_of({"run", "-k"}), "--key needs a value");
  EXPECT_EQ(values(read({"run", "-k", "-", "cmd"}), option::key), Words{"-"});
  EXPECT_EQ(values(read({"run", "-k", "?", "cmd"}), option::key), Words{"?"});
  EXPECT_EQ(values(read({"run", "-k", "", "cmd"}), option::key), Words{""});
}

TEST(CommandLine, CountsRepeatedFlagsAndRefusesRepeatedValues) {
  EXPECT_EQ(values(read({"status", "-vqv", "--verbose"}), option::verbose).size(), 3U);
  EXPECT_EQ(values(read({"run", "-k", "a", "-kb", "--key=c", "x"}), option::key),
            (Words{"a", "b", "c"}));
  EXPECT_EQ(error_of({"run", "-t", "5s", "--ttl=5s", "x"}), "--ttl is given twice");
  for (const char* value : {"", "false", "true", "1"}) {
    EXPECT_EQ(error_of({"release", "a", std::string("--force=") + value}),
              "--force takes no value");
  }
}

TEST(CommandLine, GathersKeysFromWordsAndOptions) {
  EXPECT_EQ(values(read({"status", "a", "-k", "b", "c", "--", "-d"}), option::key),
            (Words{"b", "a", "c", "-d"}));
  EXPECT_EQ(read({"status"}).find(option::key), nullptr);
}

TEST(CommandLine, KeepsTheOptionsBeforeCmdAsTheyWereTyped) {
  EXPECT_EQ(read({"run", "-nk", "a", "--wait=5s", "cmd", "-x"}).options,
            (Words{"-nk", "a", "--wait=5s"}));
  EXPECT_EQ(read({"run", "-t", "5s", "--", "--", "-x"}).options, (Words{"-t", "5s"}));
  EXPECT_EQ(read({"run", "-n", "--"}).options, Words{"-n"});
  EXPECT_EQ(read({"run", "cmd"}).options, Words{});
}

TEST(CommandLine, TakesOneKeyWithoutAnOptionForAcquireAndExtend) {
  for (const char* command : {"acquire", "extend"}) {
    EXPECT_EQ(values(read({command, "a", "-t", "5s"}), option::key), Words{"a"});
    EXPECT_EQ(values(read({command, "-k", "a", "-k", "b"}), option::key), (Words{"a", "b"}));
    for (const Words& more : {Words{"a", "b"}, Words{"-k", "a", "b"}, Words{"a", "-k", "b"},
                              Words{"--", "a"}, Words{"a", "--", "b"}}) {
      Words words{command};
      words.insert(words.end(), more.begin(), more.end());
      EXPECT_NE(error_of(words), "") << more.front();
    }
  }
}

TEST(CommandLine, DoesNotTakeAHostAfterTheLetterOfHelpForARequest) {
  const std::string why = "-h is help; a server is -S redis://localhost:6379";
  for (const char* command : {"run", "acquire", "hold", "extend", "release", "stop", "status"}) {
    EXPECT_EQ(error_of({command, "-h", "localhost"}), why);
    EXPECT_EQ(error_of({command, "-n", "-h", "localhost", "-p", "6379", "x"}), why);
    EXPECT_NE(read({command, "-h"}).find(option::help), nullptr);
    EXPECT_NE(read({command, "-h", "--json"}).find(option::help), nullptr);
    EXPECT_NE(read({command, "--help", "localhost"}).find(option::help), nullptr);
  }
  EXPECT_EQ(error_of({"-h", "localhost", "run", "x"}), why);
  EXPECT_EQ(error_of({"status", "-h", "redis://h:1"}), "-h is help; a server is -S redis://h:1");
  for (const Words& words : {Words{"-h", "run"}, Words{"-h", "run", "-k"}, Words{"-h", "localhost"},
                             Words{"help", "-h", "run"}})
    EXPECT_NE(read(words).find(option::help), nullptr);
}

TEST(CommandLine, TakesTheServerOfOtherToolsForOne) {
  const std::string why = "a server is named with a capital -S: -S redis://h:6379";
  for (const char* option : {"-s", "-u"}) {
    EXPECT_EQ(error_of({"run", "-k", "a", option, "redis://h", "x"}), why);
    EXPECT_EQ(error_of({option, "redis://h", "run", "x"}), why);
  }
}

TEST(CommandLine, IsReadToItsEndDespiteAnError) {
  CommandLine line;
  EXPECT_EQ(
      error_of({"acquire", "--ttl", "-n", "-w", "5x", "--bogus", "--export", "--json"}, &line),
      "--ttl needs a value, and -n looks like an option; if it is the value, write --ttl=-n");
  EXPECT_NE(line.find(option::export_lease), nullptr);
  EXPECT_NE(line.find(option::json), nullptr);
  EXPECT_EQ(line.name, "acquire");

  CommandLine unknown;
  error_of({"bogus", "-x", "--json"}, &unknown);
  EXPECT_NE(unknown.find(option::json), nullptr);
  EXPECT_EQ(unknown.command, nullptr);

  CommandLine run;
  error_of({"run", "--bogus", "5s", "--json", "--status-fd=3", "--", "cmd", "--quiet"}, &run);
  EXPECT_NE(run.find(option::json), nullptr);
  EXPECT_EQ(values(run, option::status_fd), Words{"3"});
  EXPECT_EQ(run.find(option::quiet), nullptr);
}

TEST(CommandLine, ReadsHelpAndVersionInEachOfTheirForms) {
  for (const Words& words : {Words{"help", "run"}, Words{"run", "--help"},
                             Words{"run", "-t", "5x", "-h"}, Words{"run", "--bogus", "-h"}}) {
    const CommandLine line = read(words);
    EXPECT_NE(line.find(option::help), nullptr);
    ASSERT_NE(line.command, nullptr);
    EXPECT_EQ(line.command->name, "run");
  }
  EXPECT_EQ(read({"help"}).command, nullptr);
  EXPECT_NE(read({"version"}).find(option::version), nullptr);
  EXPECT_EQ(read({"version", "--help"}).find(option::version), nullptr);
  EXPECT_EQ(read({"run", "cmd", "--help"}).find(option::help), nullptr);
}

}  // namespace
}  // namespace redlock::cli
