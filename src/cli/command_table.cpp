#include "cli/command_table.hpp"

#include <algorithm>
#include <array>

namespace redlock::cli {
namespace {

constexpr std::array specs{
    CommandSpec{
        for_run, "run", Operands::command, "-k KEY [OPTIONS] [--] CMD [ARG...]",
        "run a command while holding a lock",
        R"(Run CMD under a lock: renew it while CMD runs, release it when CMD ends, and exit as
CMD did. If the lock is lost or could expire, stop CMD and everything it started (TERM, then KILL)
and exit with 79.

  redlock-cli run -k deploy ./deploy.sh --prod
  redlock-cli run -k deploy -w 10m -c 'make && make install'
  redlock-cli run -k nightly -n -E 0 -q --once-per 20h --min-hold 1m -- backup)"},
    CommandSpec{
        for_acquire, "acquire", Operands::key, "KEY {--ttl DUR|--while-pid PID|--detach} [OPTIONS]",
        "acquire a lock for a script",
        R"(Acquire a lock and print its token. With --ttl alone nothing renews it: the script
extends it, and releases it at the end. With --while-pid it is renewed while a process lives; if it
is lost, that process and its descendants are stopped. With --detach it is renewed until it is
released, and nothing stops the work if it is lost.

  l=$(redlock-cli acquire -k deploy --while-pid $$ --export) || exit
  eval "$l"   # REDLOCK_KEY, REDLOCK_TOKEN, REDLOCK_FENCE, REDLOCK_LEASE

  l=$(redlock-cli acquire -k deploy --ttl 60s --export) || exit
  eval "$l"
  redlock-cli extend --ttl 60s
  redlock-cli release

  redlock-cli acquire -k a --detach --max-hold 2h --token-file a.lease || exit
  redlock-cli release --token-file a.lease)"},
    CommandSpec{
        for_hold, "hold", Operands::keys, "KEY {--for DUR|--until TIME} [OPTIONS]",
        "hold a lock without a command, such as for a freeze",
        R"(Hold the lock without a process, until it ends by itself or is lifted: nothing else runs
under it. `redlock-cli release KEY` lifts it, on any host and for every user who may lock. Your own
commands run under the lock with the lease of --export or --token-file. With --slots and --slot only
that slot is on hold, such as a broken device.

  redlock-cli hold deploy --until 09:00 --note 'database move'
  redlock-cli release deploy
  redlock-cli hold phones --slots p1,p2,p3 --slot p2 --for 2d --note broken

  l=$(redlock-cli hold deploy --for 2d --export) || exit
  eval "$l"
  redlock-cli run -k deploy ./deploy.sh)"},
    CommandSpec{
        for_extend, "extend", Operands::key, "--ttl DUR [OPTIONS]", "give a lease a new ttl",
        R"(Extend the lease in --token-file, else the one in the environment (REDLOCK_LEASE, or
REDLOCK_KEY and REDLOCK_TOKEN). It never shortens a lease, and never revives a lost one (79).)"},
    CommandSpec{
        for_release, "release", Operands::keys, "[KEY...] [OPTIONS]",
        "release a lock, lift a hold, or break another process's lock",
        R"(Release the lease in --token-file, else the one in the environment (REDLOCK_LEASE, or
REDLOCK_KEY and REDLOCK_TOKEN). A lease that `run` holds is released by `run` alone.

Without a lease of KEY, lift the hold on KEY, whichever user made it. What runs under it runs on,
and keeps the lock until it ends.

With --force, break the lock on KEY and report its holder. The next command starts at once, while
the old one may still run: prefer `redlock-cli stop`, which prevents the overlap.

  redlock-cli release
  redlock-cli release deploy                 # lifts `redlock-cli hold deploy`
  redlock-cli release phones --slot p2       # lifts the hold of one slot
  redlock-cli release deploy --force --reason 'host is gone')"},
    CommandSpec{
        for_stop, "stop", Operands::keys, "KEY [OPTIONS]",
        "stop the command under a lock, on any host, and wait for its end",
        R"(Ask the holder, on any host, to stop its command: TERM, after its --grace KILL. The
lock stays taken until the whole process tree is dead, so nothing overlaps. The next waiter then
starts as usual. The request stands even if this command ends first.

Not every holder can be stopped (75): not `acquire` without --while-pid, not --on-lost warn, and
not another program.

  redlock-cli stop deploy --reason 'wrong branch'
  redlock-cli stop deploy --all              # those who wait, too
  redlock-cli stop gpu --slot 2 -w 5m)"},
    CommandSpec{for_status, "status", Operands::keys, "[KEY...] [OPTIONS]",
                "show holders, waiters and past runs",
                R"(Show who holds the lock and since when, who waits for it, and what each of
several servers answered. Without KEY, print one row per lock of redlock-cli on these servers.

  redlock-cli status deploy
  redlock-cli status deploy --exit-code -q   # 0 free, 75 held
  redlock-cli status nightly --max-age 26h   # 0 if it succeeded since, else 1
  redlock-cli status nightly --runs          # the last runs)"},
    CommandSpec{
        for_doctor, "doctor", Operands::keys, "[KEY] [OPTIONS]",
        "check whether the servers are fit to hold locks",
        R"(Check each server's settings, then acquire, extend, heal and release a lock of its
own there. Report what is wrong, and what cannot be checked for lack of permissions. Without KEY no
key is left behind. KEY is for a user who may lock nothing else; its fence counter stays.

  redlock-cli doctor
  redlock-cli doctor job:probe
  redlock-cli doctor --settings   # every setting and its origin)"},
    CommandSpec{
        for_completion, "completion", Operands::shell, "SHELL",
        "print the completion script for bash, zsh or fish",
        R"(Packages install it. Otherwise load it in ~/.bashrc, in ~/.zshrc after compinit, or
in ~/.config/fish/config.fish:

  source <(redlock-cli completion bash)
  source <(redlock-cli completion zsh)
  redlock-cli completion fish | source

It completes commands, options and their values, the command of `run`, and the keys that are locked
on the servers, if these answer at once.)"},
    CommandSpec{for_help, "help", Operands::topic, "[COMMAND]", "explain a command",
                "Print what `redlock-cli COMMAND --help` prints."},
    CommandSpec{for_version, "version", Operands::none, "",
                "print the version and what this build is made of",
                "Print what `redlock-cli --version` prints."},
};

/// The meaning of an exit code in the help of some commands.
struct CodeRow {
  unsigned commands;
  CodeMeaning meaning;
};

constexpr unsigned general = without_command;
constexpr unsigned all = asks_servers | general;
constexpr std::array code_rows{
    CodeRow{all & ~(for_status | for_doctor | for_run), {"0", "done"}},
    CodeRow{for_run, {"0", "CMD exited with 0; otherwise run exits as CMD did"}},
    CodeRow{for_status, {"0", "the servers answered; with a check: the answer is yes"}},
    CodeRow{for_status, {"1", "--max-age, --max-held: beyond the limit, or not known"}},
    CodeRow{for_doctor, {"0", "the servers are fit to hold locks"}},
    CodeRow{for_doctor, {"1", "they are fit, with warnings, or as far as can be seen"}},
    CodeRow{all, {"64", "usage: the command line is wrong"}},
    CodeRow{all, {"69", "unavailable: no quorum of servers answered"}},
    CodeRow{all, {"70", "internal error"}},
    CodeRow{all, {"71", "operating system: cannot fork, write, ..."}},
    CodeRow{general | waits, {"75", "busy: another process holds the lock (-E replaces it)"}},
    CodeRow{for_stop, {"75", "busy: it still holds the lock, or cannot be stopped"}},
    CodeRow{for_status, {"75", "--exit-code: the lock is held"}},
    CodeRow{all & ~for_doctor, {"77", "denied: login, rights, or TLS verification"}},
    CodeRow{all, {"78", "configuration: a setting or server URL is wrong"}},
    CodeRow{general | for_run,
            {"79", "lost: the lock was lost, and the command stopped (see --on-lost)"}},
    CodeRow{for_acquire, {"79", "lost: a lock was lost while the others were acquired"}},
    CodeRow{has_lease, {"79", "lost: the lease is no longer yours"}},
    CodeRow{for_stop, {"79", "lost: --if-fence named another lease"}},
    CodeRow{general | for_run, {"80", "unconfirmed: the command may have outlived the lock"}},
    CodeRow{for_stop, {"80", "unconfirmed: the lock is gone, but its command may still run"}},
    CodeRow{general | for_run, {"124", "timed out: --max-hold stopped the command"}},
    CodeRow{general | for_run, {"126, 127", "CMD cannot be executed, is not found"}},
};

}  // namespace

std::span<const CommandSpec> command_table() {
  return specs;
}

std::vector<CodeMeaning> exit_codes_of(Commands command) {
  std::vector<CodeMeaning> meanings;
  for (const CodeRow& row : code_rows) {
    if ((row.commands & command) != 0) meanings.push_back(row.meaning);
  }
  return meanings;
}

const CommandSpec* find_command(std::string_view name) {
  const auto* found = std::find_if(specs.begin(), specs.end(),
                                   [&](const CommandSpec& spec) { return spec.name == name; });
  return found == specs.end() ? nullptr : found;
}

}  // namespace redlock::cli
