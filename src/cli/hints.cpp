#include "cli/hints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/option_rows.hpp"
#include "cli/redact.hpp"
#include "cli/spelling.hpp"
#include "guard/command.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

/// A word that users of other tools type, and what it is here: a name, or a whole hint.
struct Synonym {
  std::string_view word;
  std::string_view ours;
};

/// A lock that seems to be stuck is held by a command that runs: breaking it lets two run at once.
constexpr std::string_view how_to_free =
    "`redlock-cli stop KEY` ends the command that holds a lock, `redlock-cli release` releases a "
    "lease of your own; of a dead holder: man redlock-cli-release";

constexpr std::string_view how_to_lock =
    "`redlock-cli run` runs a command under a lock, `redlock-cli hold` holds one without a command";
constexpr std::string_view how_to_lift = "`redlock-cli release KEY` lifts a hold";
constexpr std::string_view how_runs_ended = "`redlock-cli status KEY --runs` shows past runs";
constexpr std::string_view how_to_watch = "`redlock-cli status --watch` shows the locks repeatedly";
constexpr std::string_view how_to_measure = "`redlock-cli status --openmetrics` prints metrics";
constexpr std::string_view how_to_check =
    "`redlock-cli status KEY --max-age DUR` checks the last run, `redlock-cli doctor` the servers";
constexpr std::string_view how_it_is_set = "`redlock-cli doctor --settings` shows all settings";
constexpr std::string_view how_from_flock =
    "`redlock-cli run -k KEY CMD` runs a command under a lock (coming from flock(1): "
    "docs/migration.md)";
constexpr std::string_view how_to_wait =
    "`redlock-cli run -k KEY -w DUR CMD` waits for the lock, then runs a command";
constexpr std::string_view how_to_lead =
    "`redlock-cli run -k KEY CMD` runs a command on one host at a time";
constexpr std::string_view how_to_limit =
    "`redlock-cli run -k KEY --slots N CMD` lets N commands run at once";

constexpr std::array command_synonyms{
    Synonym{"lock", how_to_lock},
    Synonym{"exec", "run"},
    Synonym{"flock", how_from_flock},
    Synonym{"wait", how_to_wait},
    Synonym{"leader", how_to_lead},
    Synonym{"elect", how_to_lead},
    Synonym{"sem", how_to_limit},
    Synonym{"freeze", "hold"},
    Synonym{"block", "hold"},
    Synonym{"pause", "hold"},
    Synonym{"drain", "hold"},
    Synonym{"cordon", "hold"},
    Synonym{"unfreeze", how_to_lift},
    Synonym{"lift", how_to_lift},
    Synonym{"unhold", how_to_lift},
    Synonym{"resume", how_to_lift},
    Synonym{"unpause", how_to_lift},
    Synonym{"uncordon", how_to_lift},
    Synonym{"list", "status"},
    Synonym{"ls", "status"},
    Synonym{"who", "status"},
    Synonym{"ps", "status"},
    Synonym{"show", "status"},
    Synonym{"info", "status"},
    Synonym{"inspect", "status"},
    Synonym{"get", "status"},
    Synonym{"top", "status"},
    Synonym{"queue", "status"},
    Synonym{"history", how_runs_ended},
    Synonym{"log", how_runs_ended},
    Synonym{"logs", how_runs_ended},
    Synonym{"why", how_runs_ended},
    Synonym{"runs", how_runs_ended},
    Synonym{"last", how_runs_ended},
    Synonym{"watch", how_to_watch},
    Synonym{"monitor", how_to_watch},
    Synonym{"metrics", how_to_measure},
    Synonym{"kill", "stop"},
    Synonym{"cancel", "stop"},
    Synonym{"abort", "stop"},
    Synonym{"terminate", "stop"},
    Synonym{"renew", "extend"},
    Synonym{"check", how_to_check},
    Synonym{"test", "doctor"},
    Synonym{"ping", "doctor"},
    Synonym{"health", "doctor"},
    Synonym{"config", how_it_is_set},
    Synonym{"settings", how_it_is_set},
    Synonym{"break", how_to_free},
    Synonym{"steal", how_to_free},
    Synonym{"force-unlock", how_to_free},
    Synonym{"unlock", how_to_free},
    Synonym{"rm", how_to_free},
    Synonym{"clear", how_to_free},
    Synonym{"free", how_to_free},
    Synonym{"delete", how_to_free},
};

constexpr std::string_view how_to_name_servers = "servers are URLs: --server redis://HOST:PORT";
constexpr std::string_view never_inherited = "leave it out: the command does not inherit the lock";
constexpr std::string_view not_forked = "leave it out: two guards must outlive the command";
constexpr std::string_view how_to_release = "`redlock-cli release` releases a lease";

constexpr std::array option_synonyms{
    Synonym{"--no-wait", "--nonblock"},
    Synonym{"--nowait", "--nonblock"},
    Synonym{"--nonblocking", "--nonblock"},
    Synonym{"--try", "--nonblock"},
    Synonym{"--lock-timeout", "--wait"},
    Synonym{"--wait-timeout", "--wait"},
    Synonym{"--max-wait", "--wait"},
    Synonym{"--retry", "--wait"},
    Synonym{"--max-time", "--max-hold"},
    Synonym{"--max-runtime", "--max-hold"},
    Synonym{"--time-limit", "--max-hold"},
    Synonym{"--limit-time", "--max-hold"},
    Synonym{"--kill-after", "--max-hold"},
    Synonym{"--lease", "--ttl"},
    Synonym{"--expire", "--ttl"},
    Synonym{"--expiry", "--ttl"},
    Synonym{"--name", "--key"},
    Synonym{"--semaphore", "--slots"},
    Synonym{"--concurrency", "--slots"},
    Synonym{"--jobs", "--slots"},
    Synonym{"-j", "--slots"},
    Synonym{"--max", "--slots"},
    Synonym{"--limit", "--slots"},
    Synonym{"--cancel", "--replace"},
    Synonym{"--cancel-in-progress", "--replace"},
    Synonym{"--cancel-running", "--replace"},
    Synonym{"--kill", "--replace"},
    Synonym{"--preempt", "--replace"},
    Synonym{"--takeover", "--replace"},
    Synonym{"--take-over", "--replace"},
    Synonym{"--daily", "--once-per"},
    Synonym{"--once-a-day", "--once-per"},
    Synonym{"--leader", how_to_lead},
    Synonym{"--skip", "--nonblock"},
    Synonym{"--history", "--runs"},
    Synonym{"--last", "--runs"},
    Synonym{"--comment", "--note"},
    Synonym{"--redis", how_to_name_servers},
    Synonym{"--url", how_to_name_servers},
    Synonym{"--host", how_to_name_servers},
    Synonym{"--port", how_to_name_servers},
    Synonym{"-p", how_to_name_servers},
    Synonym{"--db", "a database is part of the URL: --server redis://HOST:PORT/DB"},
    Synonym{"--tls", "TLS is part of the URL: --server rediss://HOST:PORT"},
    Synonym{"--local", "locks of this user on this host: --server local:"},
};

/// The options of flock(1) that we do not have.
constexpr std::array flock_options{
    Synonym{"-o", never_inherited},
    Synonym{"--close", never_inherited},
    Synonym{"-F", not_forked},
    Synonym{"--no-fork", not_forked},
    Synonym{"--fcntl", "leave it out: it is for the lock files of flock(1)"},
    Synonym{"-u", how_to_release},
    Synonym{"--unlock", how_to_release},
};

/// All letters of flock(1)'s options.
constexpr std::string_view flock_letters = "sxenowEFuc";

/// An option that only other commands have, and what these commands have in its place: a name, or a
/// whole hint.
struct Counterpart {
  const OptionRow* option;
  unsigned commands;
  std::string_view ours;
};

constexpr std::array counterparts{
    Counterpart{&option::reason, waits, "--note"},
    Counterpart{&option::note, for_stop | for_release, "--reason"},
    Counterpart{&option::ttl, for_hold, "--for"},
    Counterpart{&option::max_hold, for_hold, "--for"},
    Counterpart{&option::hold_for, for_run, "--max-hold"},
    Counterpart{&option::hold_for, for_acquire, "--ttl"},
    Counterpart{&option::slots, for_stop | for_release, "--slot"},
    Counterpart{&option::once_per, for_status, "--max-age"},
    Counterpart{&option::force, for_run,
                "--replace stops an older run that has it, too, `redlock-cli stop KEY` stops any"},
    Counterpart{&option::force, for_stop,
                "it kills what outlives --grace; of a dead holder: man redlock-cli-release"},
    Counterpart{&option::force, asks_servers,
                "`redlock-cli stop KEY` ends the command that holds a lock"},
};

/// Empty if there is none.
std::string_view our_word_for(std::string_view word, std::span<const Synonym> synonyms) {
  const auto found = std::ranges::find(synonyms, word, &Synonym::word);
  return found == synonyms.end() ? std::string_view() : found->ours;
}

bool is_sentence(std::string_view ours) {
  return ours.find(' ') != std::string_view::npos;
}

/// The option that a word of single letters begins with, or one of flock(1)'s in a cluster of its
/// letters: `-j` of `-j4`, `-o` of `-xo`. Empty if it is neither.
std::string_view letter_in(std::string_view word) {
  if (word.size() < 3 || word.starts_with("--")) return {};
  const std::string_view letters = word.substr(1);
  if (letters.find_first_not_of(flock_letters) == std::string_view::npos) {
    for (const Synonym& option : flock_options) {
      if (option.word.size() == 2 && letters.find(option.word[1]) != std::string_view::npos)
        return option.word;
    }
  }
  const bool has_number = letters.find_first_not_of("0123456789", 1) == std::string_view::npos;
  return has_number ? word.substr(0, 2) : std::string_view();
}

std::string_view flock_option(std::string_view name) {
  const std::string_view letter = letter_in(name);
  return our_word_for(letter.empty() ? name : letter, flock_options);
}

std::string_view our_option(std::string_view name) {
  const std::string_view letter = letter_in(name);
  return our_word_for(letter.empty() ? name : letter, option_synonyms);
}

/// For an absolute path that names a socket: redis-cli's `-s SOCKET`.
std::string hint_for_socket(const std::string& path) {
  std::error_code ignored;
  const bool is_socket = path.starts_with('/') &&
                         (path.ends_with(".sock") || std::filesystem::is_socket(path, ignored));
  if (!is_socket) return {};
  return fmt::format("; a server is -S {} (-s shares the lock)",
                     shell_word(shown_word("unix://" + path)));
}

/// The words as they can be typed, with a space before each.
std::string typed(std::span<const std::string> words) {
  std::string text;
  for (const std::string& word : words) text += " " + shell_word(shown_word(word));
  return text;
}

/// A key that stands behind the first word, and the words without it.
struct LateKey {
  std::string key;
  std::vector<std::string> words;
};

std::optional<LateKey> late_key_in(const std::vector<std::string>& words) {
  constexpr std::string_view with_value = "--key=";
  for (std::size_t i = 1; i < words.size() && words[i] != "--"; ++i) {
    const bool is_attached = words[i].starts_with(with_value);
    const bool is_before = i + 1 < words.size() && (words[i] == "-k" || words[i] == "--key") &&
                           !looks_like_option(words[i + 1]);
    if (!is_attached && !is_before) continue;
    LateKey late{is_attached ? words[i].substr(with_value.size()) : words[i + 1], words};
    // The -k of curl.
    if (late.key.find("://") != std::string::npos) continue;
    const auto begin = late.words.begin() + static_cast<std::ptrdiff_t>(i);
    late.words.erase(begin, begin + (is_attached ? 1 : 2));
    return late;
  }
  return std::nullopt;
}

/// Builtins of shells that no program replaces.
constexpr std::array<std::string_view, 8> shell_words{".",    "cd", "eval",   "exec",
                                                      "exit", "if", "export", "source"};

}  // namespace

std::string hint_for_command(std::string_view word) {
  const std::string_view meant = our_word_for(word, command_synonyms);
  if (is_sentence(meant)) return fmt::format("; {}", meant);
  if (!meant.empty()) return fmt::format("; did you mean '{}'?", meant);
  const bool is_path = word.find('/') != std::string_view::npos;
  if (is_path && word.find("://") == std::string_view::npos)
    return fmt::format("; {}", how_from_flock);
  std::vector<std::string_view> harmless;
  for (const CommandSpec& command : command_table()) {
    if ((command.bit & (for_stop | for_release)) == 0) harmless.push_back(command.name);
  }
  return did_you_mean(word, harmless);
}

std::string hint_for_option(std::string_view name, const CommandSpec& command) {
  std::vector<std::string_view> names;
  for (const OptionRow* option : option::all_options) {
    if ((option->spec().commands & command.bit) == 0 || option == &option::force) continue;
    for (const std::string_view spelling : spellings_of(*option)) {
      if (spelling.starts_with("--")) names.push_back(spelling);
    }
  }
  if (const std::string_view ours = flock_option(name); !ours.empty())
    return fmt::format("; {}", ours);
  const std::string_view meant = our_option(name);
  if (is_sentence(meant)) return fmt::format("; {}", meant);
  if (std::ranges::find(names, meant) != names.end())
    return fmt::format("; did you mean '{}'?", meant);
  return did_you_mean(name, names);
}

std::string hint_for_option_of_others(std::string_view name, const CommandSpec& command) {
  for (const Counterpart& row : counterparts) {
    const std::vector<std::string_view> spellings = spellings_of(*row.option);
    const bool is_it = std::ranges::find(spellings, name) != spellings.end();
    if (!is_it || (row.commands & command.bit) == 0) continue;
    if (is_sentence(row.ours)) return fmt::format("; {}", row.ours);
    return fmt::format("; with {} it is {}", command.name, row.ours);
  }
  return {};
}

std::string hint_before_command(std::string_view name) {
  if (!flock_option(name).empty()) return fmt::format("; {}", how_from_flock);
  const std::string_view meant = our_option(name);
  if (meant.empty()) return {};
  return fmt::format("; {}{}", is_sentence(meant) ? "" : "with run it is ", meant);
}

std::string missing_key_text(const CommandLine& line) {
  const std::string text = "run needs -k KEY: the name of the lock";
  const std::vector<std::string>& words = line.words;
  if (words.empty()) return text;
  const std::string beginning = "redlock-cli run" + typed(line.options) + " -k ";
  const std::string first = shell_word(shown_word(words.front()));
  const std::string socket = hint_for_socket(words.front());
  if (const auto late = late_key_in(words)) {
    const std::string key = shell_word(shown_word(late->key));
    const std::string better = ": " + beginning + key + " --" + typed(late->words);
    return fmt::format("-k stands after the command {}: options come before the command{}", first,
                       socket.empty() ? better : socket);
  }
  const std::string place = text + ", before the command";
  if (!socket.empty()) return place + socket;
  // `run deploy ./deploy.sh`
  const bool has_key = words.size() > 1 && !guard::find_program(words.front());
  if (!has_key) return fmt::format("{}: {}KEY -- {}", place, beginning, first);
  return fmt::format("{}: {}{}", place, beginning, typed(words).substr(1));
}

std::string hint_for_program(const std::string& path) {
  const std::string_view name = path;
  if (std::string hint = hint_for_socket(path); !hint.empty()) return hint;
  const std::size_t equals = name.find('=');
  const std::string_view variable = name.substr(0, equals);
  const bool is_name = !variable.empty() && variable.find_first_not_of(
                                                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstu"
                                                "vwxyz0123456789_") == std::string_view::npos;
  if (equals != std::string_view::npos && is_name)
    return "; env(1) sets variables: env NAME=VALUE CMD";
  const bool is_builtin = std::ranges::find(shell_words, name) != shell_words.end();
  if (is_builtin || name.find_first_of(" \t\n;&|<>$()") != std::string_view::npos)
    return "; -c runs the text of a shell: -c 'cd /srv && make'";
  return {};
}

}  // namespace redlock::cli
