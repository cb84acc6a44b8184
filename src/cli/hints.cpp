#include "cli/hints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "cli/option_rows.hpp"
#include "cli/spelling.hpp"
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
    "lease of your own";

constexpr std::string_view how_to_lock =
    "`redlock-cli run` runs a command under a lock, `redlock-cli hold` holds one without a command";
constexpr std::string_view how_to_lift = "`redlock-cli release KEY` lifts a hold";
constexpr std::string_view how_runs_ended = "`redlock-cli status KEY --runs` shows past runs";
constexpr std::string_view how_to_watch = "`redlock-cli status --watch` shows the locks repeatedly";
constexpr std::string_view how_to_measure = "`redlock-cli status --openmetrics` prints metrics";
constexpr std::string_view how_it_is_set = "`redlock-cli doctor --settings` shows all settings";

constexpr std::array command_synonyms{
    Synonym{"lock", how_to_lock},
    Synonym{"exec", "run"},
    Synonym{"freeze", "hold"},
    Synonym{"block", "hold"},
    Synonym{"pause", "hold"},
    Synonym{"unfreeze", how_to_lift},
    Synonym{"lift", how_to_lift},
    Synonym{"unhold", how_to_lift},
    Synonym{"resume", how_to_lift},
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
    Synonym{"check", "doctor"},
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

constexpr std::array option_synonyms{
    Synonym{"--no-wait", "--nonblock"},
    Synonym{"--nowait", "--nonblock"},
    Synonym{"--nonblocking", "--nonblock"},
    Synonym{"--lock-timeout", "--wait"},
    Synonym{"--wait-timeout", "--wait"},
    Synonym{"--max-wait", "--wait"},
    Synonym{"--retry", "--wait"},
    Synonym{"--max-time", "--max-hold"},
    Synonym{"--max-runtime", "--max-hold"},
    Synonym{"--kill-after", "--max-hold"},
    Synonym{"--lease", "--ttl"},
    Synonym{"--expire", "--ttl"},
    Synonym{"--expiry", "--ttl"},
    Synonym{"--name", "--key"},
    Synonym{"--semaphore", "--slots"},
    Synonym{"--concurrency", "--slots"},
    Synonym{"--cancel", "--replace"},
    Synonym{"--cancel-in-progress", "--replace"},
    Synonym{"--daily", "--once-per"},
    Synonym{"--skip", "--nonblock"},
    Synonym{"--history", "--runs"},
    Synonym{"--last", "--runs"},
    Synonym{"--comment", "--note"},
    Synonym{"--redis", how_to_name_servers},
    Synonym{"--url", how_to_name_servers},
    Synonym{"--host", how_to_name_servers},
    Synonym{"--port", how_to_name_servers},
    Synonym{"--db", "a database is part of the URL: --server redis://HOST:PORT/DB"},
    Synonym{"--tls", "TLS is part of the URL: --server rediss://HOST:PORT"},
    Synonym{"--local", "locks on this host alone: --server local:"},
    // flock(1)
    Synonym{"-o", never_inherited},
    Synonym{"--close", never_inherited},
    Synonym{"-F", "leave it out: two guards must outlive the command"},
    Synonym{"--no-fork", "leave it out: two guards must outlive the command"},
    Synonym{"-u", "`redlock-cli release` releases a lease"},
    Synonym{"--unlock", "`redlock-cli release` releases a lease"},
};

/// Empty if there is none.
std::string_view our_word_for(std::string_view word, std::span<const Synonym> synonyms) {
  const auto found = std::ranges::find(synonyms, word, &Synonym::word);
  return found == synonyms.end() ? std::string_view() : found->ours;
}

bool is_sentence(std::string_view ours) {
  return ours.find(' ') != std::string_view::npos;
}

/// Builtins of shells that no program replaces.
constexpr std::array<std::string_view, 8> shell_words{".",    "cd", "eval",   "exec",
                                                      "exit", "if", "export", "source"};

}  // namespace

std::string hint_for_command(std::string_view word) {
  const std::string_view meant = our_word_for(word, command_synonyms);
  if (is_sentence(meant)) return fmt::format("; {}", meant);
  if (!meant.empty()) return fmt::format("; did you mean '{}'?", meant);
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
  const std::string_view meant = our_word_for(name, option_synonyms);
  if (is_sentence(meant)) return fmt::format("; {}", meant);
  if (std::ranges::find(names, meant) != names.end())
    return fmt::format("; did you mean '{}'?", meant);
  return did_you_mean(name, names);
}

std::string hint_for_program(std::string_view name) {
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
