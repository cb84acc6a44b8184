#include "cli/command_table.hpp"

#include <algorithm>
#include <array>

namespace redlock::cli {
namespace {

constexpr std::array specs{
    CommandSpec{
        for_run, "run", Operands::command, "-k KEY [OPTIONS] [--] CMD [ARG...]",
        "run a command while holding a lock",
        R"(Takes the lock, runs CMD, renews the lock while CMD runs, releases it when CMD ends
and exits as CMD did. If the lock is lost, or comes so near to its end that it might be, CMD and
everything it started are stopped (TERM, then KILL) and the exit code is 79.

CMD finds REDLOCK_KEY, REDLOCK_TOKEN, REDLOCK_FENCE and REDLOCK_LEASE in its environment (and
REDLOCK_SLOT with --slots). Its arguments, stdin and inherited descriptors are not touched; there
is no shell unless -c asks for one. Waiters are served in order of arrival.

  redlock-cli run -k deploy ./deploy.sh --prod
  redlock-cli run -k deploy -w 10m -c 'make && make install'
  redlock-cli run -k gpu --slots 4 -c 'train --device "$REDLOCK_SLOT"'

In a crontab, where one host is to do it, once a night:

  redlock-cli run -k nightly -n -E 0 -q --once-per 20h --min-hold 1m -- backup)"},
    CommandSpec{for_acquire, "acquire", Operands::none,
                "-k KEY {--ttl DUR|--while-pid PID|--detach} [OPTIONS]",
                "take a lock and hand it to the script",
                R"(Takes the lock for DUR and prints its token. Nothing renews it: use `redlock-cli
extend`, or choose DUR long enough, and `redlock-cli release` at the end. Or let it be renewed while
a process lives: if the lease is lost, that process and all its descendants are stopped as --on-lost
says.

  l=$(redlock-cli acquire -k deploy --ttl 60s --export) || exit
  eval "$l"   # REDLOCK_KEY, REDLOCK_TOKEN, REDLOCK_FENCE, REDLOCK_LEASE
  redlock-cli extend --ttl 60s
  redlock-cli release

  l=$(redlock-cli acquire -k deploy --while-pid $$ --export) || exit
  eval "$l"

  redlock-cli acquire -k deploy --ttl 1h --token-file /run/deploy.lease || exit
  redlock-cli release --token-file /run/deploy.lease

With --detach it is renewed until then, or until the end of --max-hold, and bound to no process:
nothing stops the work if the lease is lost.

  redlock-cli acquire -k a --detach --max-hold 2h --token-file a.lease || exit)"},
    CommandSpec{
        for_extend, "extend", Operands::none, "--ttl DUR [OPTIONS]", "give a lease a new ttl",
        R"(Extends the lease found in --token-file, else in the environment (REDLOCK_LEASE, or
REDLOCK_KEY and REDLOCK_TOKEN). It never shortens a lease and never revives one that was lost: that
is exit code 79.)"},
    CommandSpec{
        for_release, "release", Operands::keys, "[KEY...] [OPTIONS]",
        "release a lock, or break one that another process holds",
        R"(Releases the lease found in --token-file, else in the environment (REDLOCK_LEASE, or
REDLOCK_KEY and REDLOCK_TOKEN); 79 if it is not ours any more. A lease that `run` holds is released
by `run` alone.

  redlock-cli release

With --force it breaks another's lock on KEY, whatever still runs under it, and says whose it was
(`redlock-cli stop` ends that first); with --if-fence only if it is still that one; --reason is told to the holder. A key that is no lock of redlock-cli
is left alone, and shown; --foreign breaks it, too.

  redlock-cli release deploy --force
  redlock-cli release deploy --force --if-fence N
  redlock-cli release deploy --force --reason TEXT)"},
    CommandSpec{for_stop, "stop", Operands::keys, "KEY [OPTIONS]",
                "stop what runs under a lock, on whatever host, and wait for its end",
                R"(Asks the process that holds the lock to stop what runs under it, as at the end of
--max-hold: TERM to all of it, KILL after its --grace. The lock is kept meanwhile, and released when
all of it is dead, so nothing starts before. Whoever waits for the lock starts then, as usual.

Exits with 0 when the lock is no longer held by that one, with 75 when it still is after the wait,
or cannot be asked: `acquire` without --while-pid, --on-lost warn, another program. Once it was
asked it stops, however this command ends.

  redlock-cli stop deploy --reason 'wrong branch'
  redlock-cli stop gpu --slot 2 -w 5m)"},
    CommandSpec{
        for_status, "status", Operands::keys, "[KEY...] [OPTIONS]", "show who holds what",
        R"(Shows who holds the lock, since when, whether it is renewed, who waits, and what each
server says. Without KEY: every lock that this tool made at these servers.

  redlock-cli status deploy
  redlock-cli status deploy --exit-code -q   # 0 free, 75 held
  redlock-cli status nightly --max-age 26h   # 0 if it succeeded since, else 1
  redlock-cli status nightly --runs          # the last runs)"},
    CommandSpec{
        for_doctor, "doctor", Operands::keys, "[KEY] [OPTIONS]",
        "check whether the servers are fit to hold locks",
        R"(Asks each server how it is set up, and takes, extends, heals and releases a lock of its
own there. Says what is amiss, and what is not known for lack of permissions. Exits with 0 if the
set of servers is fit, with 1 if there are warnings, with 69 if no quorum of them can vote. Leaves
no key behind. KEY is for a user who may lock nothing else.

  redlock-cli doctor
  redlock-cli doctor job:probe
  redlock-cli doctor --settings   # every setting and where it comes from)"},
    CommandSpec{for_completion, "completion", Operands::shell, "SHELL",
                "print what completes redlock-cli in bash, zsh or fish",
                R"(Packages install it. Otherwise load it where your shell is set up: ~/.bashrc;
~/.zshrc, behind compinit; ~/.config/fish/config.fish:

  source <(redlock-cli completion bash)
  source <(redlock-cli completion zsh)
  redlock-cli completion fish | source

It completes commands, options and their values, the command of `run`, and the keys that are
locked at the servers, if these answer at once.)"},
    CommandSpec{for_help, "help", Operands::topic, "[COMMAND]", "explain a command",
                "Prints what `redlock-cli COMMAND --help` prints."},
    CommandSpec{for_version, "version", Operands::none, "",
                "print the version, and what this build is made of",
                "Prints what `redlock-cli --version` prints."},
};

}  // namespace

std::span<const CommandSpec> command_table() {
  return specs;
}

const CommandSpec* find_command(std::string_view name) {
  const auto* found = std::find_if(specs.begin(), specs.end(),
                                   [&](const CommandSpec& spec) { return spec.name == name; });
  return found == specs.end() ? nullptr : found;
}

}  // namespace redlock::cli
