#include "commands/status.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "commands/this_user.hpp"
#include "commands/watch.hpp"
#include "core/last_runs.hpp"
#include "engine/round.hpp"
#include "output/failure_text.hpp"
#include "output/key_status.hpp"
#include "output/lock_json.hpp"
#include "output/openmetrics.hpp"
#include "output/outcome.hpp"
#include "output/status.hpp"
#include "output/status_line.hpp"
#include "output/terminal.hpp"
#include "output/text_parts.hpp"
#include "proc/ancestry.hpp"
#include "proc/process_stat.hpp"
#include "support/duration.hpp"

namespace redlock::commands {
namespace {

/// The exit code of --max-age and --max-held beyond the limit. Monitoring systems read 1 as a
/// warning.
constexpr int exit_beyond_limits = 1;

/// Turns votes without readable runs into faults, for a check that depends on the runs.
void require_runs(std::vector<InspectVote>& votes) {
  for (InspectVote& vote : votes) {
    const LastRuns* runs = nullptr;
    if (const auto* free = std::get_if<Free>(&vote)) runs = &free->runs;
    if (const auto* taken = std::get_if<Taken>(&vote)) runs = &taken->runs;
    if (runs != nullptr && runs->unreadable) vote = Fault(*runs->unreadable);
  }
}

/// The progress of a long listing, on a terminal.
class ScanLine {
 public:
  explicit ScanLine(const Session& session)
      : enabled_(!session.console().is_quiet() && output::can_draw_on(STDERR_FILENO)),
        clock_(session.clock()),
        shown_from_(clock_.now() + delay) {}

  /// The callback for list_resources(); null if no progress is to be shown.
  std::function<void(const ListProgress&)> listener() {
    if (!enabled_) return nullptr;
    return [this](const ListProgress& progress) { show(progress); };
  }

 private:
  void show(const ListProgress& progress) {
    if (clock_.now() < shown_from_) return;
    shown_from_ = clock_.now() + interval;
    const std::string of = progress.of ? fmt::format(" of about {}", *progress.of) : "";
    line_.draw(fmt::format("scanned {}{} keys", progress.keys, of));
  }

  /// A faster listing shows no progress.
  static constexpr std::chrono::milliseconds delay{1000};
  static constexpr std::chrono::milliseconds interval{200};

  bool enabled_;
  const Clock& clock_;
  Instant shown_from_;
  output::StatusLine line_{::getpgrp()};
};

/// The processes that a `run` still waits for after a signal ended its command. Known only on the
/// holder's own host, because recording them on the servers would cost the holder a round trip.
std::vector<output::AwaitedProcess> awaited_by_holder(const Inspection& inspection) {
  if (!inspection.holder || !inspection.holder->owner) return {};
  const Owner& owner = *inspection.holder->owner;
  if (!owner.supervised || owner.finished || owner.host != host_name()) return {};
  std::vector<output::AwaitedProcess> awaited;
  for (const pid_t pid : proc::awaited_by(static_cast<pid_t>(owner.pid)))
    awaited.push_back({pid, proc::process_text(pid)});
  return awaited;
}

/// The callback of inspect_locks() for each lock, with the wall-clock time of the answer.
using Show = std::function<void(const output::KeyStatus&, Milliseconds)>;

asio::awaitable<output::StatusReport> inspect_locks(Session& session, const StatusOptions& options,
                                                    Show show) {
  const Instant began = session.clock().now();
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
    resources = std::move(listing.resources);
    if (!session.json() && !options.openmetrics) std::ranges::sort(resources, output::comes_before);
    report.other_key = std::move(listing.other_key);
    report.faults = std::move(listing.faults);
    report.skipped = std::move(listing.skipped);
  }
  const auto inspected = [&](const Resource& resource, std::vector<InspectVote> votes) {
    if (options.limits.max_age) require_runs(votes);
    if (report.faults.empty())
      report.faults = faults_among(server_set, [&](std::size_t s) { return &votes[s]; });
    output::KeyStatus key{resource, summarize(votes), server_set.names(), std::move(votes)};
    if (!options.slot_names.empty()) {
      key.free_slot_names.emplace();
      for (const std::size_t slot : free_slots(key.votes, options.slot_names.size()))
        key.free_slot_names->push_back(options.slot_names[slot]);
    }
    key.awaited = awaited_by_holder(key.inspection);
    if (options.runs) {
      key.runs = kept_runs(key.inspection.runs_by_server);
      if (key.runs->size() > *options.runs) key.runs->resize(*options.runs);
    }
    show(key, session.clock().wall());
  };
  const InspectScope scope{options.runs ? RunsTold::kept : RunsTold::last, options.slot_names};
  co_await inspect_all(server_set, resources, scope, inspected);
  report.at = session.clock().wall();
  report.took = session.clock().now() - began;
  co_return report;
}

output::StatusView view_of(const Session& session, const StatusOptions& options,
                           std::size_t servers) {
  const bool listed = options.resources.empty();
  return {listed, options.verbose && !session.json(), servers, options.slots};
}

/// Collects the output of `status`, lock by lock, and determines the exit code.
class Printout {
 public:
  Printout(Session& session, const StatusOptions& options)
      : options_(options),
        servers_(session.server_set().size()),
        json_(session.json()),
        // An empty file of metrics would look like a server without locks.
        prints_(options.prints || options.openmetrics),
        for_people_(view_of(session, options, servers_)),
        metrics_(options.slots) {}

  void add(const output::KeyStatus& lock, Milliseconds at) {
    const bool is_free = lock.inspection.state == InspectState::free;
    unknown_ = unknown_ || lock.inspection.state == InspectState::unavailable;
    taken_ =
        taken_ || (options_.slots ? free_slots(lock.votes, *options_.slots).empty() : !is_free);
    // A check prints one line per key, as monitoring systems expect.
    if (options_.checks()) {
      const output::CheckResult one = output::check(lock.inspection, options_.limits);
      checked_.within = checked_.within && one.within;
      checked_.text += fmt::format("{}: {}\n", output::key_text(lock.resource), one.text);
    }
    if (!prints_) return;
    if (options_.openmetrics) {
      metrics_.add(lock, at);
    } else if (json_) {
      as_json_.add(lock);
    } else if (!options_.checks()) {
      for_people_.add(lock, at);
    }
  }

  [[nodiscard]] bool is_answered(const output::StatusReport& report) const {
    const ExitCode code = code_by_servers(report);
    return code == ExitCode::done || code == ExitCode::busy;
  }

  [[nodiscard]] int exit_code(const output::StatusReport& report) const {
    const bool is_beyond = is_answered(report) && options_.checks() && !checked_.within;
    return is_beyond ? exit_beyond_limits : to_int(code_by_servers(report));
  }

  /// Prints the result. Call it once, after all locks have been added.
  void print(const output::StatusReport& report) {
    if (!prints_) return;
    if (options_.openmetrics) {
      print_result(std::move(metrics_).text());
    } else if (json_) {
      print_result(std::move(as_json_).text(report.faults, report.skipped, exit_code(report)) +
                   "\n");
    } else if (options_.checks()) {
      print_result(checked_.text);
    } else {
      print_result(for_people_.text(report, output::width_of_output(STDOUT_FILENO)));
    }
  }

 private:
  [[nodiscard]] ExitCode code_by_servers(const output::StatusReport& report) const {
    if (unknown_ || servers_ - report.faults.size() < quorum_of(servers_)) {
      return output::code_of(output::result_for_faults(report.faults, servers_));
    }
    if (!options_.exit_code) return ExitCode::done;
    if (taken_) return ExitCode::busy;
    return report.skipped.empty() ? ExitCode::done : ExitCode::unavailable;  // not known to be free
  }

  const StatusOptions& options_;
  std::size_t servers_;
  bool json_;
  bool prints_;
  bool unknown_ = false;  ///< the state of a lock is unknown
  bool taken_ = false;    ///< a lock is held, or has no free slot
  output::CheckResult checked_{true, {}};
  output::ShownLocks for_people_;
  output::StatusJson as_json_;
  output::OpenMetrics metrics_;
};

/// Prints the status once, or repeatedly for a --watch that cannot draw on a terminal.
asio::awaitable<ExitAs> print_status(Session& session, const StatusOptions& options) {
  const std::size_t servers = session.server_set().size();
  bool warned = false;
  for (;;) {
    const Instant began = session.clock().now();
    Printout printout(session, options);
    const Show show = [&](const auto& lock, Milliseconds at) { printout.add(lock, at); };
    const output::StatusReport report = co_await inspect_locks(session, options, show);
    printout.print(report);
    if (options.watch) {
      if (report.took > *options.watch && !std::exchange(warned, true)) {
        session.console().notice(fmt::format("{}: longer than --watch {}",
                                             output::took_text(report),
                                             format_duration(*options.watch)));
      }
      co_await sleep_until(session.clock(), began + *options.watch);
      continue;
    }
    if (!printout.is_answered(report) && !report.faults.empty()) {
      const char* const quorum = servers > 1 ? "no quorum; " : "";
      session.console().error(quorum + output::faults_text(report.faults));
    }
    co_await session.server_set().close(CloseMode::immediate);
    co_return ExitAs{printout.exit_code(report)};
  }
}

asio::awaitable<ExitAs> draw_status(Session& session, const StatusOptions& options,
                                    const guard::InheritedSignals& inherited) {
  struct Found {
    output::ShownLocks locks;
    output::StatusReport report;
  };
  const output::StatusView view = view_of(session, options, session.server_set().size());
  const auto found = std::make_shared<Found>(Found{output::ShownLocks(view), {}});
  const auto refresh = [&session, &options, view, found]() -> asio::awaitable<void> {
    output::ShownLocks locks(view);
    const Show show = [&](const auto& lock, Milliseconds at) { locks.add(lock, at); };
    found->report = co_await inspect_locks(session, options, show);
    found->locks = std::move(locks);
  };
  const auto lines = [&options, found](output::TerminalSize size) {
    return found->locks.screen(found->report, *options.watch, size.rows, size.columns);
  };
  const Watched watched{refresh, lines};
  co_return co_await watch(session, inherited, *options.watch, watched);
}

}  // namespace

ExitAs status(Session& session, const StatusOptions& options,
              const guard::InheritedSignals& inherited) {
  const bool in_place =
      options.watch && !session.json() && options.prints && output::can_draw_on(STDOUT_FILENO);
  return session.run(in_place ? draw_status(session, options, inherited)
                              : print_status(session, options));
}

}  // namespace redlock::commands
