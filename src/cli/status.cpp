#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "child/ancestry.hpp"
#include "child/process_stat.hpp"
#include "cli/command_session.hpp"
#include "cli/commands.hpp"
#include "cli/option_rows.hpp"
#include "cli/read_lock_options.hpp"
#include "core/last_runs.hpp"
#include "engine/inspect.hpp"
#include "engine/round.hpp"
#include "output/check.hpp"
#include "output/describe.hpp"
#include "output/json.hpp"
#include "output/openmetrics.hpp"
#include "output/outcome.hpp"
#include "output/status.hpp"
#include "output/terminal.hpp"
#include "run/command_error.hpp"
#include "run/session.hpp"
#include "run/watch.hpp"

namespace redlock::cli {
namespace {

/// With --max-age and --max-held. As a monitoring system reads it: a warning.
constexpr int exit_beyond_limits = 1;

struct StatusOptions {
  std::vector<Resource> resources;  ///< empty: all locks
  std::string prefix;               ///< of the keys of these
  Listed listed;                    ///< which of these
  std::optional<std::size_t> slots;
  bool exit_code;
  std::optional<Duration> watch;  ///< show it again after this time
  bool verbose;
  output::CheckLimits limits;       ///< for a monitoring check
  std::optional<std::size_t> runs;  ///< how many of the last runs to show
  bool openmetrics;

  [[nodiscard]] bool checks() const { return limits.max_age || limits.max_held; }
};

/// A server that does not tell the last runs has no vote where they are what is asked for.
void demand_runs(std::vector<InspectVote>& votes) {
  for (InspectVote& vote : votes) {
    const LastRuns* runs = nullptr;
    if (const auto* free = std::get_if<Free>(&vote)) runs = &free->runs;
    if (const auto* taken = std::get_if<Taken>(&vote)) runs = &taken->runs;
    if (runs != nullptr && runs->unreadable) vote = Fault(*runs->unreadable);
  }
}

/// Shows at a terminal how far a long listing has come.
class ScanLine {
 public:
  explicit ScanLine(const run::Session& session)
      : wanted_(!session.console().is_quiet() && output::can_draw_on(STDERR_FILENO)),
        clock_(session.clock()),
        shown_from_(clock_.now() + delay) {}

  /// What list_resources() calls; null: nothing is to be shown.
  std::function<void(const ListProgress&)> listener() {
    if (!wanted_) return nullptr;
    return [this](const ListProgress& progress) { show(progress); };
  }

  void erase() {
    if (shown_) output::write_all(STDERR_FILENO, erase_line);
  }

 private:
  void show(const ListProgress& progress) {
    if (clock_.now() < shown_from_) return;
    shown_from_ = clock_.now() + interval;
    shown_ = true;
    const std::string of = progress.of ? fmt::format(" of about {}", *progress.of) : "";
    output::write_all(STDERR_FILENO,
                      fmt::format("{}looked through {}{} keys", erase_line, progress.keys, of));
  }

  /// A list that is there by then needs no line.
  static constexpr std::chrono::milliseconds delay{1000};
  static constexpr std::chrono::milliseconds interval{200};
  static constexpr const char* erase_line = "\r\x1b[K";

  bool wanted_;
  const Clock& clock_;
  Instant shown_from_;
  bool shown_ = false;
};

/// Only on the holder's own host: its record cannot tell without a round trip of the holder's.
std::vector<output::AwaitedProcess> awaited_by_holder(const Inspection& inspection) {
  if (!inspection.holder || !inspection.holder->owner) return {};
  const Owner& owner = *inspection.holder->owner;
  if (!owner.supervised || owner.finished || owner.host != host_name()) return {};
  std::vector<output::AwaitedProcess> awaited;
  for (const pid_t pid : child::awaited_by(static_cast<pid_t>(owner.pid)))
    awaited.push_back({pid, child::process_text(pid)});
  return awaited;
}

asio::awaitable<output::StatusReport> inspect_locks(run::Session& session,
                                                    const StatusOptions& options) {
  ServerSet& server_set = session.server_set();
  output::StatusReport report;
  std::vector<Resource> resources = options.resources;
  if (resources.empty()) {
    ScanLine line(session);
    ListingRequest request;
    request.listed = options.listed;
    request.prefix = options.prefix;
    request.wants_other_key = options.prefix.empty();
    request.progress = line.listener();
    Listing listing = co_await list_resources(server_set, std::move(request));
    line.erase();
    resources = std::move(listing.resources);
    report.other_key = std::move(listing.other_key);
    report.faults = std::move(listing.faults);
    report.skipped = std::move(listing.skipped);
  }
  auto all_votes = co_await inspect_all(server_set, resources);
  for (std::size_t i = 0; i < resources.size(); ++i) {
    std::vector<InspectVote>& votes = all_votes[i];
    if (options.limits.max_age) demand_runs(votes);
    if (report.faults.empty())
      report.faults = faults_among(server_set, [&](std::size_t s) { return &votes[s]; });
    output::KeyStatus key{resources[i], summarize(votes), server_set.names(), std::move(votes)};
    key.awaited = awaited_by_holder(key.inspection);
    if (options.runs) {
      key.runs = kept_runs(key.inspection.runs_by_server);
      if (key.runs->size() > *options.runs) key.runs->resize(*options.runs);
    }
    report.keys.push_back(std::move(key));
  }
  report.at = session.clock().wall();
  co_return report;
}

ExitCode code_of(const output::StatusReport& report, const StatusOptions& options,
                 std::size_t servers) {
  const auto any = [&](auto test) { return std::ranges::any_of(report.keys, test); };
  const bool unknown = any([](const output::KeyStatus& key) {
    return key.inspection.state == InspectState::unavailable;
  });
  if (unknown || servers - report.faults.size() < quorum_of(servers)) {
    return output::code_of(output::result_for_faults(report.faults, servers));
  }
  const bool taken = any([&](const output::KeyStatus& key) {
    if (options.slots) return free_slots(key.votes, *options.slots) == 0;
    return key.inspection.state != InspectState::free;
  });
  if (!options.exit_code) return ExitCode::done;
  if (taken) return ExitCode::busy;
  return report.skipped.empty() ? ExitCode::done : ExitCode::unavailable;  // not known to be free
}

/// One line for each key, as a monitoring system shows it.
output::CheckResult check(const output::StatusReport& report, const output::CheckLimits& limits) {
  output::CheckResult all{true, {}};
  for (const output::KeyStatus& key : report.keys) {
    const output::CheckResult one = output::check(key.inspection, limits);
    all.within = all.within && one.within;
    all.text += fmt::format("{}: {}\n", output::key_text(key.resource), one.text);
  }
  return all;
}

output::StatusView view_of(const run::Session& session, const StatusOptions& options,
                           std::size_t servers) {
  const bool listed = options.resources.empty();
  return {listed, options.verbose && !session.json(), servers, options.slots};
}

/// Prints it once, or, without a terminal to draw on, again and again.
asio::awaitable<run::Finish> print(run::Session& session, const StatusOptions& options) {
  const std::size_t servers = session.server_set().size();
  const output::StatusView view = view_of(session, options, servers);
  for (;;) {
    const output::StatusReport report = co_await inspect_locks(session, options);
    const ExitCode code = code_of(report, options, servers);
    const bool answered = code == ExitCode::done || code == ExitCode::busy;
    const output::CheckResult checked = check(report, options.limits);
    const bool is_beyond = answered && options.checks() && !checked.within;
    const int exit_code = is_beyond ? exit_beyond_limits : to_int(code);
    const std::string text =
        options.openmetrics ? output::openmetrics_text(report, view)
        : session.json()
            ? output::status_json(report.keys, report.faults, report.skipped, exit_code) + "\n"
        : options.checks()
            ? checked.text
            : output::status_text(report, view, output::width_of_output(STDOUT_FILENO));
    // A file of metrics that is empty would look like one without locks.
    if (!session.console().is_quiet() || options.openmetrics) print_result(text);
    if (options.watch) {
      co_await sleep_until(session.clock(), session.clock().now() + *options.watch);
      continue;
    }
    if (!answered && !report.faults.empty()) {
      const char* const quorum = servers > 1 ? "no quorum; " : "";
      session.console().error(quorum + output::faults_text(report.faults));
    }
    co_await session.server_set().close(CloseMode::immediate);
    co_return run::Finish{exit_code};
  }
}

asio::awaitable<run::Finish> draw(run::Session& session, const StatusOptions& options,
                                  const child::InheritedSignals& inherited) {
  const auto report = std::make_shared<output::StatusReport>();
  const output::StatusView view = view_of(session, options, session.server_set().size());
  const run::Watched watched{[&session, &options, report]() -> asio::awaitable<void> {
                               *report = co_await inspect_locks(session, options);
                             },
                             [&options, report, view](output::TerminalSize size) {
                               return output::status_screen(*report, view, *options.watch,
                                                            size.rows, size.columns);
                             }};
  co_return co_await run::watch(session, inherited, *options.watch, watched);
}

using Options = std::initializer_list<const OptionRow*>;

void refuse_beside(const Settings& settings, const OptionRow& one, Options others) {
  for (const OptionRow* other : others) {
    if (const auto rival = settings.find(*other))
      Settings::refuse_both(*settings.find(one), *rival);
  }
}

/// Each of these options answers another question.
void check_questions(const Settings& settings, const StatusOptions& options) {
  for (const OptionRow* one : Options{&option::max_age, &option::max_held, &option::runs}) {
    const auto setting = settings.find(*one);
    if (setting && options.resources.empty())
      Settings::refuse(*setting, "needs KEY: the lock that it is about");
  }
  for (const OptionRow* one : Options{&option::max_age, &option::max_held, &option::openmetrics}) {
    if (settings.find(*one))
      refuse_beside(settings, *one, {&option::exit_code, &option::watch, &option::runs});
  }
  if (!options.openmetrics) return;
  refuse_beside(settings, option::openmetrics, {&option::max_age, &option::max_held});
  if (settings.is_on_line(option::json))
    throw CommandError(ExitCode::usage, "--json and --openmetrics: choose one of them");
}

StatusOptions read_status_options(const Settings& settings) {
  StatusOptions options;
  if (const auto keys = settings.find(option::key)) {
    for (Resource& resource : keys_in(*keys)) {
      if (std::ranges::find(options.resources, resource) == options.resources.end())
        options.resources.push_back(std::move(resource));
    }
  }
  const auto prefix = settings.get(option::prefix);
  if (prefix && !options.resources.empty()) {
    throw CommandError(ExitCode::usage, "--prefix chooses among all locks; give either it or keys");
  }
  options.prefix = prefix.value_or("");
  options.slots = settings.get(option::slots);
  options.exit_code = settings.get(option::exit_code);
  options.watch = settings.get(option::watch);
  options.verbose = settings.get(option::verbose) > 0;
  const bool all = settings.get(option::all);
  options.openmetrics = settings.get(option::openmetrics);
  options.listed = all || options.openmetrics ? Listed::used : Listed::held;
  if (all && !options.resources.empty())
    Settings::refuse(*settings.find(option::all), "shows every lock: leave out KEY");
  options.limits = {settings.get(option::max_age), settings.get(option::max_held)};
  options.runs = settings.get(option::runs);
  check_questions(settings, options);
  return options;
}

}  // namespace

run::Finish status_command(const Settings& settings, const run::Start& start) {
  const StatusOptions options = read_status_options(settings);
  const run::ServerOptions servers = read_server_options(settings);
  run::Session session(session_options(settings), servers, timeout_without_ttl(servers));
  const bool in_place = options.watch && !session.json() && !session.console().is_quiet() &&
                        output::can_draw_on(STDOUT_FILENO);
  return session.run(in_place ? draw(session, options, start.inherited) : print(session, options));
}

}  // namespace redlock::cli
