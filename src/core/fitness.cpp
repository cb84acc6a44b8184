#include "core/fitness.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "core/decision.hpp"
#include "support/duration.hpp"
#include "support/text.hpp"

namespace redlock {
namespace {

/// Hosts whose clocks are kept differ by milliseconds; beyond this nobody keeps one of them.
constexpr std::chrono::seconds clock_tolerance{1};

/// A server that needs more than this part of its time leaves none for a bad moment.
constexpr int latency_part = 4;

/// The first version that has all the scripts need.
constexpr int oldest_version = 5;

/// Collects the findings about one server.
class Examiner {
 public:
  Examiner(const Checkup& checkup, const FitnessDemands& demands) : checkup_(checkup), report_(checkup.report), demands_(demands) {}

  ServerFitness examine() {
    if (checkup_.fault) {
      add(Grade::bad, "reach", checkup_.fault->text);
      return std::move(fitness_);
    }
    fitness_.votes = !checkup_.lock_fault;
    rights();
    if (report_.is_ours) return std::move(fitness_);
    software();
    role();
    persistence();
    eviction();
    replicas();
    clock();
    latency();
    uptime();
    return std::move(fitness_);
  }

 private:
  void add(Grade grade, std::string check, std::string text) { fitness_.findings.push_back({grade, std::move(check), std::move(text)}); }

  void software() {
    int major = 0;
    const std::string& version = report_.version;
    if (std::from_chars(version.data(), version.data() + version.size(), major).ec != std::errc()) {
      return add(Grade::unknown, "software", "it does not tell its version");
    }
    if (major < oldest_version) return add(Grade::bad, "software", "it is version " + escape_for_terminal(version) + ", and 5 is needed");
    add(Grade::good, "software", report_.software + " " + escape_for_terminal(version));
  }

  void role() {
    if (report_.role.empty()) return add(Grade::unknown, "role", "it does not tell whether it is a replica");
    if (report_.role == "master") return add(Grade::good, "role", "it is no replica");
    fitness_.votes = false;
    add(Grade::bad, "role",
        "it is a replica of " + (report_.master.empty() ? "another" : escape_for_terminal(report_.master)) + ": name the master instead");
  }

  void rights() {
    std::string missing;
    for (const std::string& right : checkup_.missing_rights) missing += " +" + right;
    if (checkup_.lock_fault) {
      return add(
          Grade::bad, "rights",
          "cannot " + checkup_.lock_step + ": " + checkup_.lock_fault->text + (missing.empty() ? "" : "; missing rights:" + missing));
    }
    if (!missing.empty()) return add(Grade::warning, "rights", "a lock can be held, but these rights are missing:" + missing);
    if (checkup_.lock_held) return add(Grade::unknown, "rights", "somebody holds the key; what a holder does was not tried");
    add(Grade::good, "rights", "a lock can be taken, extended, healed and released");
  }

  /// With a restart guard a server may forget everything when it restarts.
  void persistence() {
    if (report_.saves_well == false) {
      return add(Grade::warning, "persistence", "it fails to save its data, and may refuse writes for that (MISCONF)");
    }
    const bool guarded = demands_.restart_guard > Duration::zero();
    if (report_.append_only == true && report_.append_fsync == "always")
      return add(Grade::good, "persistence", "every write is on its disk");
    if (guarded && report_.append_only) {
      return add(Grade::good, "persistence", "it may forget locks when it crashes, and has no vote for a while then (--restart-guard)");
    }
    if (report_.append_only == true && report_.append_fsync.empty()) {
      return add(Grade::unknown, "persistence", "it does not tell whether every write is on its disk (appendfsync)");
    }
    if (report_.append_only == true) {
      return add(Grade::warning, "persistence", "a crash of its host loses the last locks: set appendfsync always");
    }
    if (!report_.append_only) return add(Grade::unknown, "persistence", "it does not tell whether it keeps its data");
    if (report_.save && report_.save->empty()) {
      return add(Grade::warning, "persistence",
                 "it keeps nothing, so a restart loses every lock: set appendonly yes and appendfsync always");
    }
    add(Grade::warning, "persistence", "it saves now and then at best, so a crash loses locks: set appendonly yes and appendfsync always");
  }

  void eviction() {
    if (report_.eviction_policy.empty()) return add(Grade::unknown, "eviction", "it does not tell its maxmemory-policy");
    if (report_.eviction_policy == "noeviction") return add(Grade::good, "eviction", "it evicts nothing");
    const std::string when = report_.max_memory == 0 ? "once it has a maxmemory" : "when its memory is full";
    add(Grade::warning, "eviction",
        "it evicts locks " + when + " (" + escape_for_terminal(report_.eviction_policy) + "): set maxmemory-policy noeviction");
  }

  void replicas() {
    if (demands_.replicas == 0) {
      // Where there is no replica, none can take its place.
      if (report_.fails_over && report_.replicas != 0)
        add(Grade::warning, "replicas", "a replica that takes its place may not have got the last locks: set --replicas 1");
      return;
    }
    const std::string wanted = "--replicas wants " + std::to_string(demands_.replicas);
    if (!report_.replicas) return add(Grade::unknown, "replicas", "it does not tell how many replicas it has; " + wanted);
    const bool enough = *report_.replicas >= static_cast<std::int64_t>(demands_.replicas);
    if (!enough) fitness_.votes = false;
    add(enough ? Grade::good : Grade::bad, "replicas", std::to_string(*report_.replicas) + " of its replicas are in step; " + wanted);
  }

  void clock() {
    if (!report_.clock_offset) return add(Grade::unknown, "clock", "it does not tell its time");
    const Duration offset = *report_.clock_offset;
    const Duration unsure = report_.latency.value_or(Duration::zero());
    if (offset > clock_tolerance + unsure)
      return add(Grade::warning, "clock", "its clock is " + format_duration(offset) + " ahead of ours");
    if (-offset > clock_tolerance + unsure)
      return add(Grade::warning, "clock", "its clock is " + format_duration(-offset) + " behind ours");
    add(Grade::good, "clock", "its clock agrees with ours");
  }

  void latency() {
    if (!report_.latency) return;
    const bool slow = *report_.latency > demands_.server_timeout / latency_part;
    add(slow ? Grade::warning : Grade::good, "latency",
        "it takes " + format_duration(*report_.latency) + " to answer; --server-timeout is " + format_duration(demands_.server_timeout));
  }

  void uptime() {
    if (!report_.facts.up) {
      if (demands_.restart_guard <= Duration::zero()) return add(Grade::unknown, "uptime", "it does not tell for how long it is up");
      fitness_.votes = false;
      return add(Grade::bad, "uptime", "it does not tell for how long it is up, which --restart-guard needs: allow INFO (+info)");
    }
    if (demands_.restart_guard <= Duration::zero()) return;
    if (const auto left = guard_left(*report_.facts.up, demands_.restart_guard)) {
      fitness_.votes = false;
      return add(
          Grade::warning, "uptime",
          "it started " + format_duration(*report_.facts.up) + " ago, its vote counts in " + format_duration(*left) + " (--restart-guard)");
    }
    add(Grade::good, "uptime", "it has been up for longer than the --restart-guard");
  }

  const Checkup& checkup_;
  const ServerReport& report_;
  const FitnessDemands& demands_;
  ServerFitness fitness_;
};

/// Who is whose twin or replica; of such a group the first server keeps its vote.
void compare(const std::vector<std::string>& names, const std::vector<Checkup>& checkups, Fitness& fitness) {
  for (std::size_t i = 0; i < checkups.size(); ++i) {
    const ServerReport& report = checkups[i].report;
    for (std::size_t first = 0; first < i; ++first) {
      const ServerReport& other = checkups[first].report;
      if (!report.facts.run_id.empty() && report.facts.run_id == other.facts.run_id) {
        fitness.servers[i].votes = false;
        fitness.servers[i].findings.push_back(
            {Grade::bad, "identity", "it is the same server as " + escape_for_terminal(names[first]) + ", which has but one vote"});
        break;
      }
      if (!report.replication_id.empty() && report.replication_id == other.replication_id) {
        fitness.servers[i].votes = false;
        fitness.servers[i].findings.push_back(
            {Grade::bad, "replication",
             "it is not independent: it and " + escape_for_terminal(names[first]) + " are replicas of each other, or of the same master"});
        break;
      }
    }
  }
}

}  // namespace

Fitness judge(const std::vector<std::string>& names, const std::vector<Checkup>& checkups, const FitnessDemands& demands) {
  Fitness fitness;
  for (const Checkup& checkup : checkups) fitness.servers.push_back(Examiner(checkup, demands).examine());
  compare(names, checkups, fitness);
  fitness.needed = quorum_of(checkups.size());
  for (const ServerFitness& server : fitness.servers) {
    if (server.votes) ++fitness.voting;
    for (const Finding& finding : server.findings) {
      if (finding.grade != Grade::unknown) fitness.worst = std::max(fitness.worst, finding.grade);
    }
  }
  return fitness;
}

}  // namespace redlock
