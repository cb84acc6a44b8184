#include "cli/option_table.hpp"

#include <algorithm>
#include <array>

namespace redlock::cli {
namespace {

constexpr std::array commands{
    CommandSpec{for_run, "run", "-k KEY [OPTIONS] -- CMD [ARG...]", "run a command while holding a lock",
                R"(Takes the lock, runs CMD, renews the lock while CMD runs, releases it when CMD ends and exits
as CMD did. Should the lock be lost, or come so near to its end that it might be, CMD and everything
it started is stopped (TERM, then KILL) and the exit code is 79.

CMD finds REDLOCK_KEY, REDLOCK_TOKEN, REDLOCK_FENCE and REDLOCK_LEASE in its environment (and
REDLOCK_SLOT with --slots). Its arguments, stdin and inherited descriptors are not touched; there is
no shell unless -c asks for one. Whoever waits is served in order of arrival.

  redlock-cli run -k deploy -- ./deploy.sh --prod
  redlock-cli run -k nightly -n -E 0 -q --min-hold 1m -- backup    (cron: only one host does it, if
                                                                    their clocks differ by less than 1m)
  redlock-cli run -k deploy -w 10m -c 'make && make install'
  redlock-cli run -k gpu --slots 4 -c 'train --device "$REDLOCK_SLOT"')"},
    CommandSpec{for_acquire, "acquire", "-k KEY {--ttl DUR | --while-pid PID} [OPTIONS]", "take a lock and hand it to the script",
                R"(Takes the lock for DUR and prints its token. Nothing renews it: use `redlock-cli extend`, or choose
DUR long enough, and `redlock-cli release` at the end. Or let it be renewed while a process lives: should
the lease be lost, that process and all its descendants are stopped as --on-lost says.

  l=$(redlock-cli acquire -k deploy --ttl 60s --export) || exit
  eval "$l"                        (sets REDLOCK_KEY, REDLOCK_TOKEN, REDLOCK_FENCE, REDLOCK_LEASE)
  redlock-cli extend --ttl 60s
  redlock-cli release

  redlock-cli acquire -k deploy --while-pid $$ --token-file ~/deploy.lease || exit

  redlock-cli acquire -k deploy --ttl 1h --token-file /run/deploy.lease
  redlock-cli release --token-file /run/deploy.lease)"},
    CommandSpec{for_extend, "extend", "--ttl DUR [OPTIONS]", "give a lease a new ttl",
                R"(Extends the lease found in --token-file, else in the environment (REDLOCK_LEASE, or REDLOCK_KEY and
REDLOCK_TOKEN). It never shortens a lease and never takes back one that was lost: that is exit code 79.)"},
    CommandSpec{for_release, "release", "[OPTIONS]", "give a lock back, or break somebody's",
                R"(Releases the lease found in --token-file, else in the environment (REDLOCK_LEASE, or REDLOCK_KEY and
REDLOCK_TOKEN); 79 if it is not ours any more. A lease that `run` holds is released by `run` alone.

  redlock-cli release
  redlock-cli release -k deploy --force               (breaks anybody's lock, and says whose it was)
  redlock-cli release -k deploy --force --if-fence N  (only if it is still that one)
  redlock-cli release -k deploy --force --reason TEXT (TEXT is told to the one whose lock it was))"},
    CommandSpec{for_status, "status", "[-k KEY...] [OPTIONS]", "show who holds what",
                R"(Shows who holds the lock, since when, whether it is renewed, who waits, and what each server says.
Without -k: every lock that this tool made at these servers.

  redlock-cli status -k deploy
  redlock-cli status -k deploy --exit-code -q    (0 free, 75 held))"},
    CommandSpec{for_doctor, "doctor", "[OPTIONS]", "check whether the servers are fit to hold locks",
                R"(Asks each server how it is set up, and takes, extends, heals and releases a lock of its own there.
Says what is amiss, and what is not known for want of rights. Exits with 0 if the set of servers is
fit, with 1 if there are warnings, with 69 if no quorum of them can vote. Leaves no key behind.

  redlock-cli doctor
  redlock-cli doctor -k job:probe        (for a user who may lock nothing else)
  redlock-cli doctor --settings          (every setting and where it comes from))"},
};

constexpr std::array options{
    OptionSpec{"-k,--key", "key", OptionKind::list, "KEY", every_command, OptionSource::line,
               "What is locked: the key at the servers, 1 to 4096 bytes (repeat: all of them or none)"},
    OptionSpec{"-n,--nonblock,--nb", "nonblock", OptionKind::flag, "", takes_lock, OptionSource::anywhere,
               "Do not wait: exit with 75 at once if another holds the lock", "false"},
    OptionSpec{"-w,--wait,--timeout", "wait", OptionKind::value, "DUR", takes_lock, OptionSource::anywhere,
               "Wait at most so long for the lock (default: for ever; 0: try once)", "for ever"},
    OptionSpec{"--unavailable-wait", "unavailable-wait", OptionKind::value, "DUR", takes_lock, OptionSource::anywhere,
               "While waiting, bear a missing quorum of servers so long, then exit with 69 (default 10s; 0 with -n)", "10s"},
    OptionSpec{"-t,--ttl", "ttl", OptionKind::value, "DUR", takes_lock | for_extend, OptionSource::anywhere,
               "How long the lock outlives a holder that died (run: default 30s, renewed while CMD runs)",
               "30s; acquire --ttl and extend: none"},
    OptionSpec{"-E,--conflict-exit-code", "conflict-exit-code", OptionKind::value, "N", takes_lock, OptionSource::anywhere,
               "Exit with N (0 to 255) instead of 75 when another holds the lock", "75"},
    OptionSpec{"-s,--shared", "shared", OptionKind::flag, "", takes_lock, OptionSource::anywhere,
               "Share the lock with others who share it; only an exclusive lock keeps us out (and we keep it out)", "false"},
    OptionSpec{"-x,-e,--exclusive", "exclusive", OptionKind::flag, "", takes_lock, OptionSource::anywhere, "Take the lock alone (default)",
               "true"},
    OptionSpec{"--slots", "slots", OptionKind::value, "N", takes_lock, OptionSource::anywhere,
               "Up to N hold the lock at the same time (at most 1000); which of them we are, from 0 on, is in REDLOCK_SLOT"},
    OptionSpec{"--note", "note", OptionKind::value, "TEXT", takes_lock, OptionSource::anywhere,
               "Why the lock is held: shown to whoever waits for it (at most 512 bytes)"},
    OptionSpec{"--retry-delay", "retry-delay", OptionKind::value, "DUR", takes_lock, OptionSource::anywhere,
               "While a foreign client holds the lock, which calls nobody, look again after about so long (default 100ms)", "100ms"},
    OptionSpec{"-c,--command", "command", OptionKind::value, "TEXT", for_run, OptionSource::line, "Run TEXT with $SHELL -c instead of CMD"},
    OptionSpec{"--grace", "grace", OptionKind::value, "DUR", takes_lock, OptionSource::anywhere,
               "Time between TERM and KILL when CMD must be stopped (default: ttl/5, at most 5s)", "a fifth of the ttl, at most 5s"},
    OptionSpec{"--stop-signal", "stop-signal", OptionKind::value, "SIG", takes_lock, OptionSource::anywhere,
               "What to send first when CMD must be stopped (default TERM)", "TERM"},
    OptionSpec{"--on-lost", "on-lost", OptionKind::value, "kill|term|warn", takes_lock, OptionSource::anywhere,
               "What to do when the lock is lost to what runs under it: kill (TERM, then KILL; default), term, or warn only; run exits "
               "with 79 anyway",
               "kill"},
    OptionSpec{"--descendants", "descendants", OptionKind::value, "leave|wait|kill", for_run, OptionSource::anywhere,
               "What CMD leaves running when it ends by itself: leave it (default), wait for it with the lock held, or kill it", "leave"},
    OptionSpec{"--min-hold", "min-hold", OptionKind::value, "DUR", for_run, OptionSource::anywhere,
               "Keep others out for at least so long, even if CMD ends sooner; run exits at once (cron: longer than the hosts' clocks "
               "differ, shorter than the time between two jobs)",
               "0s"},
    OptionSpec{"--isolate", "isolate", OptionKind::value, "none|cgroup|pidns", for_run, OptionSource::anywhere,
               "Shut CMD in: in a cgroup, killed as one; or in a pid namespace, which ends when we do, however we do (default none)",
               "none"},
    OptionSpec{"--status-fd", "status-fd", OptionKind::value, "N", for_run, OptionSource::variable,
               "At the end write one line of JSON to file descriptor N: what really happened"},
    OptionSpec{"--while-pid", "while-pid", OptionKind::value, "PID", for_acquire, OptionSource::line,
               "Renew the lease in the background while process PID lives, then release it; $$ is the script itself, any other "
               "must be an ancestor of this command"},
    OptionSpec{"--export", "export", OptionKind::flag, "", for_acquire, OptionSource::line,
               "Print shell commands that export the lease; see the example"},
    OptionSpec{"--token-file", "token-file", OptionKind::value, "FILE", for_acquire | has_lease, OptionSource::line,
               "Keep the lease in FILE (mode 0600): written by acquire, read by extend and release"},
    OptionSpec{"--force", "force", OptionKind::flag, "", for_release, OptionSource::line, "Break the lock named by -k, whoever holds it"},
    OptionSpec{"--if-fence", "if-fence", OptionKind::value, "N", for_release, OptionSource::line,
               "With --force: only if the lock still has this fence"},
    OptionSpec{"--reason", "reason", OptionKind::value, "TEXT", for_release, OptionSource::line,
               "With --force: why, told to the one whose lock it was (at most 512 bytes)"},
    OptionSpec{"--exit-code", "exit-code", OptionKind::flag, "", for_status, OptionSource::line,
               "Exit with 0 if the lock is free, with 75 if it is held"},
    OptionSpec{"--watch", "watch", OptionKind::flag, "", for_status, OptionSource::line, "Show it again every second until interrupted"},
    OptionSpec{"--settings", "settings", OptionKind::flag, "", for_doctor, OptionSource::line,
               "Show every setting, its value and where it comes from, and ask no server"},
    OptionSpec{
        "-S,--server", "server", OptionKind::list, "URL", every_command, OptionSource::anywhere,
        "A server: redis://[user@]host[:port][/db], unix:///path, sentinel://host,host/master, cluster://host,host; with TLS rediss://, "
        "sentinels://, clusters:// (repeat, or separate by commas; all are one quorum); or local:, this host without a server"},
    OptionSpec{"--server-timeout", "server-timeout", OptionKind::value, "DUR", every_command, OptionSource::anywhere,
               "How long one server may take to connect and answer (default: 5 % of the ttl, 50ms to 1s)", "5 % of the ttl, 50ms to 1s"},
    OptionSpec{"--restart-guard", "restart-guard", OptionKind::value, "DUR", takes_lock | for_extend | for_doctor, OptionSource::anywhere,
               "With 3 servers or more: one that started within DUR may have forgotten a lock, its vote does not count (default 60s, 0: "
               "off; at least the ttl and --min-hold; all clients of a key need the longest of any)",
               "60s"},
    OptionSpec{"--replicas", "replicas", OptionKind::value, "N", takes_lock | for_extend | for_doctor, OptionSource::anywhere,
               "A server's vote counts only when N of its replicas have confirmed it (default 0)", "0"},
    OptionSpec{"--user", "user", OptionKind::value, "NAME", every_command, OptionSource::anywhere, "Log in as this ACL user"},
    OptionSpec{"--password-file", "password-file", OptionKind::value, "FILE", every_command, OptionSource::anywhere,
               "Log in with the password in the first line of FILE (else REDISCLI_AUTH is used)"},
    OptionSpec{"--cacert", "cacert", OptionKind::value, "FILE", every_command, OptionSource::anywhere,
               "With TLS: believe the CAs in this PEM file (default: the system's)", "the system's CAs"},
    OptionSpec{"--cacertdir", "cacertdir", OptionKind::value, "DIR", every_command, OptionSource::anywhere,
               "With TLS: believe the CAs in this directory, named by hash"},
    OptionSpec{"--cert", "cert", OptionKind::value, "FILE", every_command, OptionSource::anywhere,
               "With TLS: our certificate, a PEM file (with its chain)"},
    OptionSpec{"--cert-key", "cert-key", OptionKind::value, "FILE", every_command, OptionSource::anywhere,
               "With TLS: its private key (default: in the same file)", "the file of cert"},
    OptionSpec{"--sni", "sni", OptionKind::value, "NAME", every_command, OptionSource::anywhere,
               "With TLS: ask for this server name and verify it, instead of the URL's host", "the host in the URL"},
    OptionSpec{"--insecure", "insecure", OptionKind::flag, "", every_command, OptionSource::anywhere,
               "With TLS: do not verify the server's certificate; warns each time", "false"},
    OptionSpec{"--config", "config", OptionKind::value, "FILE", every_command, OptionSource::variable,
               "Read settings from FILE instead of the usual places", "~/.config/redlock-cli/config.toml, then /etc/redlock-cli.toml"},
    OptionSpec{"--json", "json", OptionKind::flag, "", every_command, OptionSource::anywhere,
               "Print the result as JSON (run: on stderr, since stdout is CMD's)", "false"},
    OptionSpec{"-q,--quiet", "quiet", OptionKind::flag, "", every_command, OptionSource::anywhere,
               "Only messages about errors; that another holds the lock is none", "false"},
    OptionSpec{"-v,--verbose", "verbose", OptionKind::flag, "", every_command, OptionSource::anywhere, "Say more; repeat for still more",
               "0"},
};

}  // namespace

std::span<const CommandSpec> command_table() {
  return commands;
}
std::span<const OptionSpec> option_table() {
  return options;
}

const OptionSpec* find_option(std::string_view name) {
  const auto* found = std::find_if(options.begin(), options.end(), [&](const OptionSpec& option) { return option.name == name; });
  return found == options.end() ? nullptr : found;
}

std::string variable_of(const OptionSpec& option) {
  std::string variable = "REDLOCK_";
  for (const char c : option.name) variable += c == '-' ? '_' : static_cast<char>(c - 'a' + 'A');
  return variable;
}

}  // namespace redlock::cli
