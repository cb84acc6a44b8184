#pragma once

#include <array>
#include <csignal>
#include <limits>

#include "cli/option_types.hpp"
#include "core/exit_code.hpp"
#include "core/protocol.hpp"
#include "core/stop_plan.hpp"
#include "core/types.hpp"
#include "guard/isolation.hpp"
#include "store/owner_record.hpp"

/// The options, one row each. The parser, the variables, the configuration files, --help, `doctor
/// --settings` and the completion all use this row, and a test compares the manual with it.
/// CONTRIBUTING.md lists what else a new option needs.
namespace redlock::cli::option {

inline constexpr unsigned has_guard = waits | for_extend | for_doctor;

/// The type of a time limit that may also be `infinity`.
inline constexpr DurationType duration_or_infinity{Duration::zero(), infinite_duration, true};

// --- The lock ---

inline constexpr List key{
    {"-k,--key", asks_servers, OptionSource::line, Section::lock,
     "The key of the lock; 1 to 4096 bytes; run, acquire: several keys are locked all or none"},
    {"KEY"}};

inline constexpr Flag nonblock{{"-n,--nonblock,--nb", waits, OptionSource::anywhere, Section::lock,
                                "Exit with 75 at once if another process holds the lock"}};

inline constexpr DefaultOption<DurationType> wait{
    {"-w,--wait,--timeout", waits, OptionSource::anywhere, Section::lock,
     "Wait for the lock no longer than this, whatever then runs under it; 0 tries once"},
    duration_or_infinity,
    infinite_duration};

std::string ttl_default();
inline constexpr Option<DurationType> ttl{
    {"-t,--ttl", takes_lock | for_extend, OptionSource::anywhere, Section::lock,
     "How long the lock outlives a dead holder; run: it is renewed; acquire: renewed only with "
     "--while-pid or --detach; extend: from now on",
     ttl_default},
    {Milliseconds(1), Ttl::max}};

inline constexpr Option<DurationType> hold_for{
    {"--for", for_hold, OptionSource::line, Section::lock, "Hold the lock for this long"},
    {Milliseconds(1), Ttl::max}};

inline constexpr Text hold_until{
    {"--until", for_hold, OptionSource::line, Section::lock,
     "Hold the lock until then: '2026-12-01 09:00', 09:00 (the next one), 2026-12-01T09:00Z; local "
     "time unless a zone follows, as Z or +01:00"},
    {"TIME"}};

inline constexpr Text token_file{
    {"--token-file", for_acquire | for_hold | has_lease, OptionSource::line, Section::lock,
     "The file of the lease; acquire, hold: written with mode 0600"},
    {"FILE"}};

inline constexpr Flag force{
    {"--force", for_release, OptionSource::line, Section::lock,
     "Break the lock on KEY, whichever process holds it; its command may still run, see stop"}};

inline constexpr Flag foreign{
    {"--foreign", for_release, OptionSource::line, Section::lock,
     "With --force: break a key that is not a lock of redlock-cli, too, whatever data it is"}};

inline constexpr Option<NumberType> if_fence{
    {"--if-fence", for_release | for_stop, OptionSource::line, Section::lock,
     "Only if the lock still has this fence; release: of a hold, or with --force"},
    {0, Fence::max}};

inline constexpr Text reason{
    {"--reason", for_release | for_stop, OptionSource::line, Section::lock,
     "The reason, which the holder reports; up to 512 bytes; release: with --force"},
    {"TEXT", max_owner_field}};

inline constexpr Option<SlotType> slot{
    {"--slot", takes_lock | for_hold | for_stop | for_release, OptionSource::line, Section::lock,
     "Exactly this slot of a lock with --slots, a number or a name; release: of a hold, or with "
     "--force"},
    {}};

inline constexpr Flag stop_waiting{
    {"--waiting", for_stop, OptionSource::line, Section::lock,
     "Send away those who wait, and let the holder go on; they exit with 75 (-E replaces it)"}};

inline constexpr Flag stop_all{
    {"--all", for_stop, OptionSource::line, Section::lock,
     "Send away those who wait, then stop the holder: none of them starts in between"}};

std::string stop_wait_default();
inline constexpr Option<DurationType> stop_wait{
    {"-w,--wait", for_stop, OptionSource::line, Section::lock,
     "Wait for the command's end no longer than this; 0 asks once", stop_wait_default},
    duration_or_infinity};

inline constexpr Text note{{"--note", waits, OptionSource::anywhere, Section::lock,
                            "Why the lock is held, for waiters and status; up to 512 bytes",
                            [] { return std::string("the URL of the CI job"); }},
                           {"TEXT", max_owner_field}};

inline constexpr DefaultOption<NumberType> conflict_exit_code{
    {"-E,--conflict-exit-code", waits, OptionSource::anywhere, Section::lock,
     "Exit with N (0 to 255), not 75, if another process holds the lock"},
    {0, 255},
    to_int(ExitCode::busy)};

inline constexpr Flag shared{
    {"-s,--shared", takes_lock, OptionSource::anywhere, Section::lock,
     "Share the lock with others that share it; one without -s excludes them, as a writer does"}};

inline constexpr Flag exclusive{{"-x,-e,--exclusive", takes_lock, OptionSource::anywhere,
                                 Section::lock, "Hold the lock alone (the default)"},
                                true};

inline constexpr Option<PoolType> slots{
    {"--slots", takes_lock | for_hold | for_status, OptionSource::anywhere, Section::lock,
     "The lock has slots, for as many processes at once: a number of them, at most 1000, and "
     "REDLOCK_SLOT is the slot, from 0; or names, separated by commas, and REDLOCK_SLOT_NAME is "
     "its "
     "name"},
    {}};

inline constexpr Option<NumberType> take{
    {"--take", takes_lock, OptionSource::line, Section::lock,
     "With --slots: take M of the slots, all or none; REDLOCK_SLOT_LIST or REDLOCK_SLOT_NAME_LIST "
     "has them"},
    {1, Mode::max_slots, "M"}};

inline constexpr Flag supersede{{"--supersede", takes_lock, OptionSource::line, Section::lock,
                                 "The newest waiter wins: older waiters with --supersede give up "
                                 "with 75; the holder is left alone"}};

inline constexpr Flag replace{
    {"--replace", for_run, OptionSource::line, Section::lock,
     "Newest wins, what runs included: as --supersede, and CMD of an older run with --replace is "
     "stopped; this one starts when all of it is dead"}};

inline constexpr DefaultOption<NumberType> priority{
    {"--priority", takes_lock | for_hold, OptionSource::anywhere, Section::lock,
     "Acquire before waiters with a smaller N; the holder is left alone; 0 to 9"},
    {0, protocol::max_priority},
    0};

/// Longer than any queue.
inline constexpr std::uint64_t max_queue_bound = 1'000'000;
inline constexpr Option<NumberType> max_waiting{
    {"--max-waiting", takes_lock, OptionSource::line, Section::lock,
     "Exit with 75 at once if N others wait for the lock already"},
    {1, max_queue_bound, "N", "; -n lets none wait"}};

inline constexpr Option<DurationType> once_per{
    {"--once-per", for_run, OptionSource::line, Section::lock,
     "Skip CMD if a run of this lock succeeded less than DUR ago; its start counts, on any host; "
     "exits with 0 at once"},
    {Milliseconds(1), Ttl::max}};

inline constexpr DefaultOption<NumberType> fresh_exit_code{
    {"--fresh-exit-code", for_run, OptionSource::anywhere, Section::lock,
     "With --once-per: exit with N (0 to 255) if CMD is not run"},
    {0, 255},
    to_int(ExitCode::done)};

inline constexpr Option<StatusesType> success_codes{
    {"--success-codes", for_run, OptionSource::line, Section::lock,
     "Exit statuses of CMD that count as a success besides 0, for --once-per and status --max-age; "
     "as of programs that exit so after a warning",
     [] { return std::string("0"); }},
    {}};

inline constexpr Flag record_skips{{"--record-skips", for_run, OptionSource::line, Section::lock,
                                    "Count on the servers how often CMD was not run, because the "
                                    "lock was held or because of --once-per; status shows it"}};

inline constexpr DefaultOption<DurationType> min_hold{
    {"--min-hold", for_run, OptionSource::anywhere, Section::lock,
     "Keep the lock for at least this long, even if CMD ends sooner; run does not wait for it "
     "(cron: longer than the hosts' clocks differ)"},
    {Duration::zero(), Ttl::max},
    Duration::zero()};

inline constexpr Option<DurationType> max_hold{
    {"--max-hold", takes_lock, OptionSource::anywhere, Section::lock,
     "Stop what runs under the lock after this long; TERM, after --grace KILL, then the lock is "
     "released; run: exits with 124; acquire: with --detach, stops the runs under the lease"},
    {Milliseconds(1), infinite_duration, true}};

inline constexpr DefaultOption<DurationType> unavailable_wait{
    {"--unavailable-wait", waits, OptionSource::anywhere, Section::lock,
     "How long to tolerate losing the quorum while waiting, before exiting with 69; with -n not at "
     "all"},
    duration_or_infinity,
    std::chrono::seconds(10)};

inline constexpr DefaultOption<DurationType> retry_delay{
    {"--retry-delay", waits, OptionSource::anywhere, Section::lock,
     "How often, about, to poll when no notification will come, as while a foreign client holds "
     "the lock"},
    {Milliseconds(1)},
    Milliseconds(100)};

// --- The command ---

inline constexpr Text command{{"-c,--command", for_run, OptionSource::line, Section::command,
                               "Run TEXT with $SHELL -c instead of CMD"},
                              {"TEXT"}};

inline constexpr Option<NumberType> while_pid{
    {"--while-pid", for_acquire, OptionSource::line, Section::command,
     "Renew the lease in the background while process PID lives (the script: $$, a subshell: "
     "$BASHPID), then release it; PID is an ancestor of this command"},
    {1, std::numeric_limits<pid_t>::max(), "PID"}};

inline constexpr Flag detach{{"--detach", for_acquire, OptionSource::line, Section::command,
                              "Renew the lease in the background until `release --token-file` or "
                              "--max-hold; if it is lost, nothing stops the work under it"}};

inline constexpr Flag with_parent{
    {"--with-parent", for_run, OptionSource::line, Section::command,
     "Give up the wait, or stop CMD, when the process that started redlock-cli has ended"}};

inline constexpr DefaultOption<ChoiceType<OnLost, 3>> on_lost{
    {"--on-lost", takes_lock, OptionSource::anywhere, Section::command,
     "When the lock is lost: kill the command (TERM, then KILL), send TERM only, or only warn; run "
     "exits with 79 anyway"},
    {{{{"kill", OnLost::kill}, {"term", OnLost::term}, {"warn", OnLost::warn}}}},
    OnLost::kill};

std::string grace_default();
inline constexpr Option<DurationType> grace{
    {"--grace", takes_lock, OptionSource::anywhere, Section::command,
     "The time between TERM and KILL when CMD is stopped", grace_default},
    {}};

inline constexpr Text on_stop{
    {"--on-stop", for_run, OptionSource::line, Section::command,
     "When CMD is stopped or receives TERM, INT or HUP, run TEXT with /bin/sh -c to stop what a "
     "daemon or another host does for CMD; the lock is released only if that succeeds"},
    {"TEXT"}};

inline constexpr DefaultOption<SignalType> stop_signal{
    {"--stop-signal", takes_lock, OptionSource::anywhere, Section::command,
     "The first signal when CMD is stopped; run sends it in place of a TERM that it passes on, "
     "too"},
    SIGTERM};

inline constexpr DefaultOption<ChoiceType<Descendants, 3>> descendants{
    {"--descendants", for_run, OptionSource::anywhere, Section::command,
     "When CMD ends by itself and leaves processes: leave them running, wait for them with the "
     "lock held, or kill them"},
    {{{{"leave", Descendants::leave}, {"wait", Descendants::wait}, {"kill", Descendants::kill}}}},
    Descendants::leave};

inline constexpr DefaultOption<ChoiceType<SignalTo, 2>> signal_to{
    {"--signal-to", for_run, OptionSource::anywhere, Section::command,
     "Pass signals on to CMD's process group, or to CMD alone, for it to stop its processes in its "
     "own order; a stop reaches the rest after CMD, too"},
    {{{{"group", SignalTo::group}, {"command", SignalTo::command}}}},
    SignalTo::group};

inline constexpr DefaultOption<ChoiceType<guard::IsolationMode, 3>> isolate{
    {"--isolate", for_run, OptionSource::anywhere, Section::command,
     "Run CMD in a cgroup, which is killed as a whole, or in a pid namespace, which always ends "
     "with redlock-cli"},
    {{{{"none", guard::IsolationMode::none},
       {"cgroup", guard::IsolationMode::cgroup},
       {"pidns", guard::IsolationMode::pid_namespace}}}},
    guard::IsolationMode::none};

// --- The servers ---

inline constexpr List server{{"-S,--server", asks_servers, OptionSource::anywhere, Section::servers,
                              "A server, redis://host:6379 or local: (this user on this host); "
                              "rediss:// with TLS, unix:///path, sentinel://host,host/master, "
                              "cluster://host,host; several, separated by commas, form a quorum"},
                             {"URL"}};

std::string server_timeout_default();
inline constexpr Option<DurationType> server_timeout{
    {"--server-timeout", asks_servers, OptionSource::anywhere, Section::servers,
     "How long each server may take to connect and answer", server_timeout_default},
    {Milliseconds(1), Ttl::max}};

inline constexpr Text user{
    {"--user", asks_servers, OptionSource::anywhere, Section::servers, "Log in as this ACL user"},
    {"NAME"}};

inline constexpr Text password_file{
    {"--password-file", asks_servers, OptionSource::anywhere, Section::servers,
     "Log in with the password in the first line of FILE (else with REDISCLI_AUTH)"},
    {"FILE"}};

/// Longer than almost every ttl, and than the time in which a crash of a server is noticed.
inline constexpr DefaultOption<DurationType> restart_guard{
    {"--restart-guard", has_guard, OptionSource::anywhere, Section::servers,
     "With 3 or more servers: ignore the vote of a server that started less than DUR ago, since it "
     "may have forgotten a lock; 0 counts it. All clients of a key must set the longest ttl or "
     "--min-hold among them"},
    {Duration::zero(), Ttl::max},
    std::chrono::seconds(60)};

/// More replicas than any server has.
inline constexpr std::uint64_t max_replicas = 1000;
inline constexpr DefaultOption<NumberType> replicas{
    {"--replicas", has_guard, OptionSource::anywhere, Section::servers,
     "Count a server's vote only when N of its replicas have confirmed it"},
    {0, max_replicas},
    0};

// --- TLS ---

inline constexpr Text cacert{
    {"--cacert", asks_servers, OptionSource::anywhere, Section::tls,
     "Trust the CAs in this PEM file", [] { return std::string("the system's CAs"); }},
    {"FILE"}};

inline constexpr Text cacertdir{{"--cacertdir", asks_servers, OptionSource::anywhere, Section::tls,
                                 "Trust the CAs in this directory, in files named by hash"},
                                {"DIR"}};

inline constexpr Text cert{{"--cert", asks_servers, OptionSource::anywhere, Section::tls,
                            "The client certificate, a PEM file, with its chain"},
                           {"FILE"}};

inline constexpr Text cert_key{
    {"--cert-key", asks_servers, OptionSource::anywhere, Section::tls, "Its private key",
     [] { return std::string("the file of --cert"); }},
    {"FILE"}};

inline constexpr Text sni{
    {"--sni", asks_servers, OptionSource::anywhere, Section::tls,
     "Request and verify this server name", [] { return std::string("the host in the URL"); }},
    {"NAME"}};

inline constexpr Flag insecure{
    {"--insecure", asks_servers, OptionSource::anywhere, Section::tls,
     "Do not verify the server's certificate; prints a warning each time"}};

// --- Output, and where the settings are ---

inline constexpr Flag export_lease{{"--export", for_acquire | for_hold, OptionSource::line,
                                    Section::output, "Print shell commands that export the lease"}};

inline constexpr Flag exit_code{
    {"--exit-code", for_status, OptionSource::line, Section::output,
     "Exit with 0 if the lock is free, with 75 if it is held; with --slots, 0 if a slot is free"}};

inline constexpr Text prefix{{"--prefix", for_status, OptionSource::line, Section::output,
                              "Show only locks whose keys begin with TEXT"},
                             {"TEXT"}};

inline constexpr Option<DurationType> max_age{
    {"--max-age", for_status, OptionSource::line, Section::output,
     "Check: exit with 1 unless a run succeeded within DUR; for monitoring; its start counts"},
    {Milliseconds(1), Ttl::max}};

inline constexpr Option<DurationType> max_held{
    {"--max-held", for_status, OptionSource::line, Section::output,
     "Check: exit with 1 if the lock is held for over DUR; for monitoring"},
    {Milliseconds(1), Ttl::max}};

inline constexpr Option<OptionalNumberType> runs{
    {"--runs", for_status, OptionSource::line, Section::output,
     "Show the last N runs; when, where, which user, how long they waited and held the lock, how "
     "they ended"},
    {{1, protocol::kept_runs}, protocol::kept_runs}};

inline constexpr Flag openmetrics{
    {"--openmetrics", for_status, OptionSource::line, Section::output,
     "Print metrics for Prometheus, without KEY those of all locks that were used lately"}};

inline constexpr Flag all{{"--all", for_status, OptionSource::line, Section::output,
                           "Without KEY: show also free locks that were used lately"}};

inline constexpr Option<OptionalDurationType> watch{
    {"--watch", for_status, OptionSource::line, Section::output,
     "Refresh every DUR (1s) until interrupted, on a terminal in place"},
    {{Milliseconds(100), Ttl::max}, std::chrono::seconds(1)}};

inline constexpr Flag settings{{"--settings", for_doctor, OptionSource::line, Section::output,
                                "Show every setting, its value and its origin; ask no server"}};

inline constexpr Flag json{
    {"--json", asks_servers, OptionSource::anywhere, Section::output,
     "Print the result as JSON; run: on stderr, which CMD shares, so see --status-fd"}};

inline constexpr Flag quiet{
    {"-q,--quiet", asks_servers, OptionSource::anywhere, Section::output,
     "Print errors only; a lock that another process holds is none; status, "
     "doctor: on the command line, not even the result"}};

inline constexpr Counter verbose{{"-v,--verbose", asks_servers, OptionSource::anywhere,
                                  Section::output, "Print more; repeat it for still more"}};

inline constexpr Option<NumberType> status_fd{
    {"--status-fd", for_run, OptionSource::variable, Section::output,
     "Write the result as a line of JSON to file descriptor N"},
    {0, std::numeric_limits<int>::max()}};

inline constexpr Option<NumberType> events_fd{
    {"--events-fd", takes_lock, OptionSource::line, Section::output,
     "Write each event, as it happens, as a line of JSON to file descriptor N"},
    {0, std::numeric_limits<int>::max()}};

inline constexpr Flag sd_notify{{"--sd-notify", for_run, OptionSource::anywhere, Section::output,
                                 "For a systemd service with Type=notify: report ready when the "
                                 "lock is granted, and the holder while waiting"}};

inline constexpr Flag syslog{{"--syslog", waits, OptionSource::anywhere, Section::output,
                              "Send messages to the system log, too, even with -q"}};

std::string config_default();
inline constexpr Text config{{"--config", asks_servers, OptionSource::variable, Section::output,
                              "Read settings from FILE alone", config_default},
                             {"FILE"}};

inline constexpr Flag help{
    {"-h,--help", everywhere, OptionSource::line, Section::output, "Show the common options"}};

inline constexpr Flag help_all{
    {"--help-all", everywhere, OptionSource::line, Section::output, "Show all options"}};

inline constexpr Flag version{{"-V,--version", without_command, OptionSource::line, Section::output,
                               "Print the version and what this build is made of"}};

/// All options, in the order of --help within each section: the common ones first.
inline constexpr auto all_options = std::to_array<const OptionRow*>({
    &key,
    &nonblock,
    &wait,
    &ttl,
    &hold_for,
    &hold_until,
    &token_file,
    &force,
    &foreign,
    &if_fence,
    &reason,
    &slot,
    &stop_waiting,
    &stop_all,
    &stop_wait,
    &note,
    &conflict_exit_code,
    &shared,
    &exclusive,
    &slots,
    &take,
    &supersede,
    &replace,
    &priority,
    &max_waiting,
    &once_per,
    &fresh_exit_code,
    &success_codes,
    &record_skips,
    &min_hold,
    &max_hold,
    &unavailable_wait,
    &retry_delay,
    &command,
    &while_pid,
    &detach,
    &with_parent,
    &on_lost,
    &grace,
    &stop_signal,
    &on_stop,
    &descendants,
    &signal_to,
    &isolate,
    &server,
    &server_timeout,
    &user,
    &password_file,
    &restart_guard,
    &replicas,
    &cacert,
    &cacertdir,
    &cert,
    &cert_key,
    &sni,
    &insecure,
    &export_lease,
    &exit_code,
    &prefix,
    &max_age,
    &max_held,
    &runs,
    &openmetrics,
    &all,
    &watch,
    &settings,
    &json,
    &quiet,
    &verbose,
    &syslog,
    &status_fd,
    &events_fd,
    &sd_notify,
    &config,
    &help,
    &help_all,
    &version,
});

/// The common options: `COMMAND --help` shows only these, `--help-all` shows all.
inline constexpr auto common_options = std::to_array<const OptionRow*>({
    &key,          &nonblock,   &wait,       &ttl,
    &hold_for,     &hold_until, &token_file, &force,
    &if_fence,     &reason,     &slot,       &stop_waiting,
    &stop_all,     &stop_wait,  &note,       &conflict_exit_code,
    &shared,       &slots,      &once_per,   &max_hold,
    &command,      &while_pid,  &detach,     &server,
    &export_lease, &exit_code,  &prefix,     &max_age,
    &max_held,     &runs,       &watch,      &settings,
    &json,         &quiet,      &verbose,    &help,
    &help_all,     &version,
});

}  // namespace redlock::cli::option
