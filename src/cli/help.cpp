#include "cli/help.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_table.hpp"
#include "cli/option_rows.hpp"
#include "cli/version.hpp"
#include "output/terminal.hpp"
#include "support/columns.hpp"

namespace redlock::cli {
namespace {

/// On narrower terminals lines are too long, which is easier to read than narrower columns.
constexpr std::size_t min_width = 40;

/// The columns where the descriptions of commands, of options and of exit codes begin.
constexpr std::size_t command_column = 14;
constexpr std::size_t option_column = 30;
constexpr std::size_t code_column = 12;

/// The minimum width of descriptions, which fits the longest word. If there is less room, each
/// begins on a line of its own.
constexpr std::size_t min_text_width = 36;
constexpr std::size_t text_indent = 6;

struct Heading {
  Section section;
  std::string_view text;
};
constexpr std::array headings{
    Heading{Section::lock, "Lock"},       Heading{Section::command, "Command"},
    Heading{Section::servers, "Servers"}, Heading{Section::tls, "TLS"},
    Heading{Section::output, "Output"},
};

/// `first`, followed by `text` from `column` on, in lines of at most `width` columns.
std::string folded(const std::string& first, std::size_t column, std::string_view text,
                   std::size_t width) {
  if (column + min_text_width > width) column = std::min(column, text_indent);
  const std::string next_line = "\n" + std::string(column, ' ');
  const bool has_room = column == 0 || first.size() + 2 <= column;
  const std::string between = has_room ? std::string(column - first.size(), ' ') : next_line;
  return fmt::format("{}{}{}\n", first, between, fmt::join(fold(text, width - column), next_line));
}

/// Folds paragraphs, but leaves indented lines unchanged.
std::string folded_paragraphs(std::string_view text, std::size_t width) {
  std::istringstream lines{std::string(text)};
  std::string result;
  std::string paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) result += folded("", 0, paragraph, width);
    paragraph.clear();
  };
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == ' ') {
      end_paragraph();
      result.append(line).append("\n");
    } else {
      paragraph.append(paragraph.empty() ? "" : " ").append(line);
    }
  }
  end_paragraph();
  return result;
}

/// Which options --help shows: the common ones with the first clause of their texts, or all in
/// full.
enum class Extent { common, all };

std::vector<std::string_view> pieces(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> found;
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = text.find(separator);
    found.push_back(text.substr(0, end));
    if (end != std::string_view::npos) text.remove_prefix(end + separator.size());
  }
  return found;
}

/// The clauses that concern the command. One that begins with names of commands, `acquire, hold:
/// written`, concerns only these.
std::string clauses_for(Commands command, std::string_view help) {
  constexpr std::string_view colon = ": ";
  std::vector<std::string_view> clauses;
  for (std::string_view clause : pieces(help, "; ")) {
    const std::size_t end = clause.find(colon);
    const auto names = pieces(clause.substr(0, end), ", ");
    const bool is_for_some =
        end != std::string_view::npos &&
        std::ranges::all_of(names, [](auto name) { return find_command(name) != nullptr; });
    const bool is_for_us = is_for_some && std::ranges::any_of(names, [&](auto name) {
                             return find_command(name)->bit == command;
                           });
    if (is_for_some && !is_for_us) continue;
    if (is_for_us) clause.remove_prefix(end + colon.size());
    clauses.push_back(clause);
  }
  return fmt::format("{}", fmt::join(clauses, "; "));
}

std::string option_help(const OptionRow& option, Commands command, Extent extent,
                        std::size_t width) {
  std::string first = fmt::format("  {}", option.spec().flags);
  if (const std::string operand = option.operand(); !operand.empty()) first += " " + operand;
  const std::string_view help = option.spec().help;
  std::string text(extent == Extent::common ? help.substr(0, help.find("; "))
                                            : clauses_for(command, help));
  if (option.kind() != OptionKind::flag) {
    if (const auto words = option.default_text(); !words.empty()) {
      text += fmt::format(" (default: {})", words);
    }
  }
  return folded(first, option_column, text, width);
}

/// The options of a command, or of the program for without_command, under their headings.
std::string options_help(Commands command, Extent extent, std::size_t width) {
  std::string text;
  for (const Heading& heading : headings) {
    std::string options;
    for (const OptionRow* option : option::all_options) {
      const OptionSpec& spec = option->spec();
      if (spec.section != heading.section || (spec.commands & command) == 0) continue;
      if (extent == Extent::common && !std::ranges::count(option::common_options, option)) continue;
      options += option_help(*option, command, extent, width);
    }
    if (!options.empty()) text += fmt::format("\n{}:\n{}", heading.text, options);
  }
  return text;
}

std::string exit_codes_help(Commands command, std::size_t width) {
  std::string text = "\nExit codes:\n";
  for (const CodeMeaning& row : exit_codes_of(command))
    text += folded(fmt::format("  {:>3}", row.codes), code_column, row.meaning, width);
  return text;
}

std::string command_help(const CommandSpec& command, Extent extent, std::size_t width) {
  std::string text = fmt::format("Usage: redlock-cli {} {}\n\n", command.name, command.usage);
  text += folded_paragraphs(command.details, width);
  text += options_help(command.bit, extent, width);
  if ((command.bit & asks_servers) == 0) return text;
  const std::string_view more = extent == Extent::common ? "All options: --help-all. " : "";
  text += "\n" + folded_paragraphs(
                     fmt::format("Durations: 500ms, 30s, 5m, 1h30m, 2d, 1w; a bare number is "
                                 "seconds.\n\n{}Manual: redlock-cli-{}(1). Variables and files: "
                                 "redlock-cli.toml(5).",
                                 more, command.name),
                     width);
  return text + exit_codes_help(command.bit, width);
}

std::string program_help(std::size_t width) {
  std::string text =
      "A lock for shell scripts, cron jobs and CI pipelines, on Redis or Valkey\n\n"
      "Usage: redlock-cli COMMAND [OPTIONS]\n\nCommands:\n";
  for (const CommandSpec& command : command_table()) {
    text += folded(fmt::format("  {}", command.name), command_column, command.summary, width);
  }
  text += options_help(without_command, Extent::all, width);
  return text + "\n`redlock-cli help COMMAND` explains a command; the manual: man redlock-cli\n" +
         exit_codes_help(without_command, width);
}

}  // namespace

std::string help_or_version(const CommandLine& line) {
  if (line.find(option::version) != nullptr) return version_text();
  const bool wants_all = line.find(option::help_all) != nullptr;
  if (!wants_all && line.find(option::help) == nullptr) return {};
  const std::size_t width = std::max(output::terminal_size(STDOUT_FILENO).columns, min_width);
  return line.command == nullptr
             ? program_help(width)
             : command_help(*line.command, wants_all ? Extent::all : Extent::common, width);
}

std::string overview() {
  return "redlock-cli run -k KEY CMD [ARG...]    run a command while holding a lock\n"
         "redlock-cli status [KEY...]            show holders, waiters and past runs\n"
         "redlock-cli stop KEY                   stop the command under a lock, on any host\n"
         "redlock-cli doctor                     check whether the servers are fit\n"
         "redlock-cli help [COMMAND]             explain a command, or list all of them\n";
}

}  // namespace redlock::cli
