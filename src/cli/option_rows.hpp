#pragma once

#include <array>
#include <csignal>
#include <limits>

#include "child/isolation.hpp"
#include "child/stop_plan.hpp"
#include "cli/option_types.hpp"
#include "core/types.hpp"
#include "output/exit_code.hpp"
#include "store/owner_record.hpp"

/// The options, one row each. The row is all that the parser, the variables, the configuration
/// files, --help, `doctor --settings` and the completion know of an option; the manual is compared
/// with it. CONTRIBUTING.md tells what else a new option needs.
namespace redlock::cli::option {

inline constexpr unsigned has_guard = takes_lock | for_extend | for_doctor;

/// Of what is a time to wait: `infinity` is one, too.
inline constexpr DurationType forever_too{Duration::zero(), infinite_duration, true};

// --- The lock ---

inline constexpr List key{
    {"-k,--key", asks_servers, OptionSource::line, Section::lock,
     "What is locked: the key at the servers, 1 to 4096 bytes (repeat: all of them or none)"},
    {"KEY"}};

inline constexpr Flag nonblock{
    {"-n,--nonblock,--nb", takes_lock, OptionSource::anywhere, Section::lock,
     "Do not wait: exit with 75 at once if another process holds the lock"}};

inline constexpr DefaultOption<DurationType> wait{
    {"-w,--wait,--timeout", takes_lock, OptionSource::anywhere, Section::lock,
     "How long to wait for the lock at most; 0 tries once"},
    forever_too,
    infinite_duration};

/// Of `run`, and of `acquire --while-pid` and `--detach`.
inline constexpr std::chrono::seconds default_ttl{30};
std::string ttl_default();
inline constexpr Option<DurationType> ttl{
    {"-t,--ttl", takes_lock | for_extend, OptionSource::anywhere, Section::lock,
     "How long the lock outlives a holder that died; run renews it while CMD runs", ttl_default},
    {Milliseconds(1), Ttl::max}};

inline constexpr Text token_file{
    {"--token-file", for_acquire | has_lease, OptionSource::line, Section::lock,
     "Keep the lease in FILE (mode 0600): written by acquire, read by extend and release"},
    {"FILE"}};

inline constexpr Flag force{{"--force", for_release, OptionSource::line, Section::lock,
                             "Break the lock on KEY, whichever process holds it"}};

inline constexpr Flag foreign{{"--foreign", for_release, OptionSource::line, Section::lock,
                               "With --force: break also what is no lock of redlock-cli, whatever "
                               "data it is"}};

inline constexpr Option<NumberType> if_fence{
    {"--if-fence", for_release | for_stop, OptionSource::line, Section::lock,
     "Only if the lock still has this fence (release: with --force)"},
    {0, Fence::max}};

inline constexpr Text reason{
    {"--reason", for_release | for_stop, OptionSource::line, Section::lock,
     "Why, told to the holder (shortened to 512 bytes; release: with --force)"},
    {"TEXT", max_owner_field}};

inline constexpr Option<NumberType> slot{
    {"--slot", for_stop, OptionSource::line, Section::lock,
     "Stop what holds this slot, of a lock that is taken with --slots"},
    {0, Mode::max_slots - 1}};

std::string stop_wait_default();
inline constexpr Option<DurationType> stop_wait{
    {"-w,--wait", for_stop, OptionSource::line, Section::lock,
     "How long to wait until it has ended; 0 asks once", stop_wait_default},
    forever_too};

inline constexpr Text note{
    {"--note", takes_lock, OptionSource::anywhere, Section::lock,
     "Why the lock is held: shown to waiters and in status (shortened to 512 bytes)",
     [] { return std::string("the URL of the CI job that runs us"); }},
    {"TEXT", max_owner_field}};

inline constexpr DefaultOption<NumberType> conflict_exit_code{
    {"-E,--conflict-exit-code", takes_lock, OptionSource::anywhere, Section::lock,
     "Exit with N (0 to 255) if another process holds the lock"},
    {0, 255},
    to_int(ExitCode::busy)};

inline constexpr Flag shared{
    {"-s,--shared", takes_lock, OptionSource::anywhere, Section::lock,
     "Share the lock with others that share it; an exclusive lock excludes all of them"}};

inline constexpr Flag exclusive{{"-x,-e,--exclusive", takes_lock, OptionSource::anywhere,
                                 Section::lock, "Hold the lock alone, which is the default"},
                                true};

inline constexpr Option<NumberType> slots{
    {"--slots", takes_lock | for_status, OptionSource::anywhere, Section::lock,
     "Let up to N (at most 1000) hold the lock at the same time; the number of the slot, from 0 "
     "on, is in REDLOCK_SLOT"},
    {1, Mode::max_slots}};

inline constexpr Option<NumberType> take{
    {"--take", takes_lock, OptionSource::line, Section::lock,
     "With --slots: take M of the N slots, all or none; their numbers are in REDLOCK_SLOT_LIST"},
    {1, Mode::max_slots, "M"}};

inline constexpr Flag supersede{
    {"--supersede", takes_lock, OptionSource::line, Section::lock,
     "Newest wins: those that wait for the lock with --supersede longer than this one give up with "
     "75; the one that holds it is left alone"}};

inline constexpr Flag replace{
    {"--replace", for_run, OptionSource::line, Section::lock,
     "Newest wins, what runs included: as --supersede, and CMD of an older run with --replace is "
     "stopped; this one starts when all of it is dead"}};

/// More than any queue has.
inline constexpr std::uint64_t max_queue_bound = 1'000'000;
inline constexpr Option<NumberType> max_waiting{
    {"--max-waiting", takes_lock, OptionSource::line, Section::lock,
     "Do not wait if N others wait for the lock already: exit with 75 at once"},
    {0, max_queue_bound}};

inline constexpr Option<DurationType> once_per{
    {"--once-per", for_run, OptionSource::line, Section::lock,
     "Do not run CMD if a run of this lock that exited with 0, on any host, started less than DUR "
     "ago: exit with 0 at once"},
    {Milliseconds(1), Ttl::max}};

inline constexpr DefaultOption<NumberType> fresh_exit_code{
    {"--fresh-exit-code", for_run, OptionSource::anywhere, Section::lock,
     "With --once-per: exit with N (0 to 255) if CMD need not run"},
    {0, 255},
    to_int(ExitCode::done)};

inline constexpr Flag record_skips{
    {"--record-skips", for_run, OptionSource::line, Section::lock,
     "If CMD is not run, since another process holds the lock or for --once-per, let the servers "
     "count that, for status"}};

inline constexpr DefaultOption<DurationType> min_hold{
    {"--min-hold", for_run, OptionSource::anywhere, Section::lock,
     "Keep others out at least this long, even if CMD ends sooner; run exits at once (cron: longer "
     "than the hosts' clocks differ, shorter than the time between two jobs)"},
    {Duration::zero(), Ttl::max},
    Duration::zero()};

inline constexpr Option<DurationType> max_hold{
    {"--max-hold", takes_lock, OptionSource::anywhere, Section::lock,
     "Hold the lock no longer than this: then stop what runs under it (TERM, after --grace KILL), "
     "release, and exit with 124"},
    {Milliseconds(1), infinite_duration, true}};

inline constexpr DefaultOption<DurationType> unavailable_wait{
    {"--unavailable-wait", takes_lock, OptionSource::anywhere, Section::lock,
     "How long to tolerate losing the quorum while waiting, then exit with 69; not at all with -n"},
    forever_too,
    std::chrono::seconds(10)};

inline constexpr DefaultOption<DurationType> retry_delay{
    {"--retry-delay", takes_lock, OptionSource::anywhere, Section::lock,
     "About how often to poll where no notification will come, as while a foreign client holds "
     "the lock"},
    {Milliseconds(1)},
    Milliseconds(100)};

// --- The command ---

inline constexpr Text command{{"-c,--command", for_run, OptionSource::line, Section::command,
                               "Run TEXT with $SHELL -c instead of CMD"},
                              {"TEXT"}};

inline constexpr Option<NumberType> while_pid{
    {"--while-pid", for_acquire, OptionSource::line, Section::command,
     "Renew the lease in the background while process PID lives, then release it; $$ is the "
     "script itself, any other must be an ancestor of this command"},
    {1, std::numeric_limits<pid_t>::max(), "PID"}};

inline constexpr Flag detach{
    {"--detach", for_acquire, OptionSource::line, Section::command,
     "Renew the lease in the background until `release --token-file` or the end of --max-hold; "
     "nothing stops what runs under it if it is lost"}};

inline constexpr Flag with_parent{
    {"--with-parent", for_run, OptionSource::line, Section::command,
     "When the process that started redlock-cli has ended, give up the wait, or stop CMD, as if "
     "told to"}};

inline constexpr DefaultOption<ChoiceType<child::OnLost, 3>> on_lost{
    {"--on-lost", takes_lock, OptionSource::anywhere, Section::command,
     "What to do to what runs under the lock when the lock is lost: kill (TERM, then KILL), term, "
     "or warn only; run exits with 79 anyway"},
    {{{{"kill", child::OnLost::kill},
       {"term", child::OnLost::term},
       {"warn", child::OnLost::warn}}}},
    child::OnLost::kill};

std::string grace_default();
inline constexpr Option<DurationType> grace{
    {"--grace", takes_lock, OptionSource::anywhere, Section::command,
     "Time between TERM and KILL when CMD must be stopped", grace_default},
    {}};

inline constexpr Text on_stop{{"--on-stop", for_run, OptionSource::line, Section::command,
                               "When CMD is stopped or told to end, run TEXT with $SHELL -c, to "
                               "stop what a daemon or another "
                               "host does for CMD; the lock is released only if that succeeds"},
                              {"TEXT"}};

inline constexpr DefaultOption<SignalType> stop_signal{
    {"--stop-signal", takes_lock, OptionSource::anywhere, Section::command,
     "What to send first when CMD must be stopped"},
    SIGTERM};

inline constexpr DefaultOption<ChoiceType<child::Descendants, 3>> descendants{
    {"--descendants", for_run, OptionSource::anywhere, Section::command,
     "What becomes of processes that CMD leaves running when it ends by itself: leave them, wait "
     "for them with the lock held, or kill them"},
    {{{{"leave", child::Descendants::leave},
       {"wait", child::Descendants::wait},
       {"kill", child::Descendants::kill}}}},
    child::Descendants::leave};

inline constexpr DefaultOption<ChoiceType<child::SignalTo, 2>> signal_to{
    {"--signal-to", for_run, OptionSource::anywhere, Section::command,
     "Who gets the signals that are passed on: the process group that CMD leads, or the command "
     "alone, which then stops its own processes in its order"},
    {{{{"group", child::SignalTo::group}, {"command", child::SignalTo::command}}}},
    child::SignalTo::group};

inline constexpr DefaultOption<ChoiceType<child::IsolationMode, 3>> isolate{
    {"--isolate", for_run, OptionSource::anywhere, Section::command,
     "Run CMD in a cgroup, which is killed as one, or in a pid namespace, which ends when "
     "redlock-cli does, however that ends"},
    {{{{"none", child::IsolationMode::none},
       {"cgroup", child::IsolationMode::cgroup},
       {"pidns", child::IsolationMode::pid_namespace}}}},
    child::IsolationMode::none};

// --- The servers ---

inline constexpr List server{
    {"-S,--server", asks_servers, OptionSource::anywhere, Section::servers,
     "A server: redis://[user@]host[:port][/db], unix:///path, sentinel://host,host/master, "
     "cluster://host,host; with TLS rediss://, sentinels://, clusters:// (repeat, or separate by "
     "commas; all are one quorum); or local:, this host without a server"},
    {"URL"}};

std::string server_timeout_default();
inline constexpr Option<DurationType> server_timeout{
    {"--server-timeout", asks_servers, OptionSource::anywhere, Section::servers,
     "How long one server may take to connect and answer", server_timeout_default},
    {Milliseconds(1), Ttl::max}};

inline constexpr Text user{
    {"--user", asks_servers, OptionSource::anywhere, Section::servers, "Log in as this ACL user"},
    {"NAME"}};

inline constexpr Text password_file{
    {"--password-file", asks_servers, OptionSource::anywhere, Section::servers,
     "Log in with the password in the first line of FILE (else REDISCLI_AUTH is used)"},
    {"FILE"}};

/// Longer than nearly every ttl, and than it takes to notice that a server crashed.
inline constexpr DefaultOption<DurationType> restart_guard{
    {"--restart-guard", has_guard, OptionSource::anywhere, Section::servers,
     "With 3 servers or more: the vote of one that started within DUR does not count, since it may "
     "have forgotten a lock; 0 counts it (all clients of a key need the longest of any, at least "
     "the ttl and --min-hold)"},
    {Duration::zero(), Ttl::max},
    std::chrono::seconds(60)};

/// More than any server has.
inline constexpr std::uint64_t max_replicas = 1000;
inline constexpr DefaultOption<NumberType> replicas{
    {"--replicas", has_guard, OptionSource::anywhere, Section::servers,
     "A server's vote counts only when N of its replicas have confirmed it"},
    {0, max_replicas},
    0};

// --- TLS ---

inline constexpr Text cacert{
    {"--cacert", asks_servers, OptionSource::anywhere, Section::tls,
     "Trust the CAs in this PEM file", [] { return std::string("the system's CAs"); }},
    {"FILE"}};

inline constexpr Text cacertdir{{"--cacertdir", asks_servers, OptionSource::anywhere, Section::tls,
                                 "Trust the CAs in this directory, named by hash"},
                                {"DIR"}};

inline constexpr Text cert{{"--cert", asks_servers, OptionSource::anywhere, Section::tls,
                            "Our certificate, a PEM file (with its chain)"},
                           {"FILE"}};

inline constexpr Text cert_key{
    {"--cert-key", asks_servers, OptionSource::anywhere, Section::tls, "Its private key",
     [] { return std::string("the file of --cert"); }},
    {"FILE"}};

inline constexpr Text sni{
    {"--sni", asks_servers, OptionSource::anywhere, Section::tls,
     "Ask for this server name and verify it", [] { return std::string("the host in the URL"); }},
    {"NAME"}};

inline constexpr Flag insecure{{"--insecure", asks_servers, OptionSource::anywhere, Section::tls,
                                "Do not verify the server's certificate; warns each time"}};

// --- Output, and where the settings are ---

inline constexpr Flag export_lease{{"--export", for_acquire, OptionSource::line, Section::output,
                                    "Print shell commands that export the lease; see the example"}};

inline constexpr Flag exit_code{
    {"--exit-code", for_status, OptionSource::line, Section::output,
     "Exit with 0 if the lock (with --slots: one of them) is free, with 75 if it is held"}};

inline constexpr Text prefix{{"--prefix", for_status, OptionSource::line, Section::output,
                              "Only locks whose keys begin with TEXT"},
                             {"TEXT"}};

inline constexpr Option<DurationType> max_age{
    {"--max-age", for_status, OptionSource::line, Section::output,
     "Exit with 0 if the last successful run started less than DUR ago, else with 1, and say so in "
     "one line: a monitoring check"},
    {Milliseconds(1), Ttl::max}};

inline constexpr Option<DurationType> max_held{
    {"--max-held", for_status, OptionSource::line, Section::output,
     "Exit with 1 if a command has held the lock for longer than DUR, else with 0, and say so in "
     "one line: a monitoring check, alone or with --max-age"},
    {Milliseconds(1), Ttl::max}};

inline constexpr Option<OptionalNumberType> runs{
    {"--runs", for_status, OptionSource::line, Section::output,
     "Show the last N runs: when, where, by whom, how long they waited and held the lock, and how "
     "they ended"},
    {{1, protocol::kept_runs}, protocol::kept_runs}};

inline constexpr Flag openmetrics{
    {"--openmetrics", for_status, OptionSource::line, Section::output,
     "Print the state of the locks as metrics for Prometheus, without KEY of all that were used "
     "lately"}};

inline constexpr Flag all{{"--all", for_status, OptionSource::line, Section::output,
                           "Without KEY: also show locks that are free, but were used lately"}};

inline constexpr Option<OptionalDurationType> watch{
    {"--watch", for_status, OptionSource::line, Section::output,
     "Show it again every DUR (1s) until interrupted; on a terminal in place"},
    {{Milliseconds(100), Ttl::max}, std::chrono::seconds(1)}};

inline constexpr Flag settings{
    {"--settings", for_doctor, OptionSource::line, Section::output,
     "Show every setting, its value and where it comes from, and ask no server"}};

inline constexpr Flag json{
    {"--json", asks_servers, OptionSource::anywhere, Section::output,
     "Print the result as JSON (run: on stderr, since stdout belongs to CMD)"}};

inline constexpr Flag quiet{
    {"-q,--quiet", asks_servers, OptionSource::anywhere, Section::output,
     "Only messages about errors; a lock held by another process is not an error"}};

inline constexpr Counter verbose{{"-v,--verbose", asks_servers, OptionSource::anywhere,
                                  Section::output, "Say more; repeat for still more"}};

inline constexpr Option<NumberType> status_fd{
    {"--status-fd", for_run, OptionSource::variable, Section::output,
     "At the end write one line of JSON to file descriptor N: what really happened"},
    {0, std::numeric_limits<int>::max()}};

inline constexpr Option<NumberType> events_fd{
    {"--events-fd", takes_lock, OptionSource::line, Section::output,
     "Write a line of JSON to file descriptor N for each thing that happens, when it does"},
    {0, std::numeric_limits<int>::max()}};

inline constexpr Flag sd_notify{
    {"--sd-notify", for_run, OptionSource::anywhere, Section::output,
     "As a service of systemd (Type=notify): be ready when the lock is granted, and show who holds "
     "it meanwhile"}};

inline constexpr Flag syslog{{"--syslog", takes_lock, OptionSource::anywhere, Section::output,
                              "Send the messages to the system log, too; there even with -q"}};

std::string config_default();
inline constexpr Text config{{"--config", asks_servers, OptionSource::variable, Section::output,
                              "Read settings from FILE alone", config_default},
                             {"FILE"}};

inline constexpr Flag help{
    {"-h,--help", everywhere, OptionSource::line, Section::output, "Explain the command"}};

inline constexpr Flag version{{"-V,--version", without_command, OptionSource::line, Section::output,
                               "Print the version, and what this build is made of"}};

/// All of them, in the order in which --help shows those of a section: the common ones first.
inline constexpr auto all_options = std::to_array<const OptionRow*>({
    &key,
    &nonblock,
    &wait,
    &ttl,
    &token_file,
    &force,
    &foreign,
    &if_fence,
    &reason,
    &slot,
    &stop_wait,
    &note,
    &conflict_exit_code,
    &shared,
    &exclusive,
    &slots,
    &take,
    &supersede,
    &replace,
    &max_waiting,
    &once_per,
    &fresh_exit_code,
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
    &version,
});

}  // namespace redlock::cli::option
