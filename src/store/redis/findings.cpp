#include "store/redis/findings.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <set>

#include "core/decision.hpp"
#include "support/duration.hpp"
#include "support/text.hpp"

namespace redlock::redis {
namespace {

/// The first major version with everything that the scripts need.
constexpr int min_version = 5;

/// Synchronised hosts differ by milliseconds.
constexpr std::chrono::seconds clock_tolerance{1};

/// Derives the findings from a report and collects them in a diagnosis.
class FindingsBuilder {
 public:
  FindingsBuilder(const ServerReport& report, const Demands& demands, Diagnosis& diagnosis)
      : report_(report), demands_(demands), diagnosis_(diagnosis) {}

  void judge() {
    login();
    software();
    role();
    persistence();
    eviction();
    replicas();
    clock();
    replica_clocks();
    uptime();
    address();
    unanswered();
  }

 private:
  void add(Level level, std::string probe, std::string text, std::string advice = {}) {
    diagnosis_.findings.push_back({level, std::move(probe), std::move(text), std::move(advice)});
  }

  /// Adds the finding that the result of a check is unknown, since it depends on this question.
  void add_unknown(std::string probe, const std::string& text, std::string_view question) {
    add(Level::unknown, std::move(probe), text + because_of(question));
  }

  /// Why the question was not answered, to be appended to a text; empty if it was.
  std::string because_of(std::string_view question) {
    std::string text;
    std::size_t others = 0;
    for (const Unanswered& one : report_.unanswered) {
      if (one.question != question) continue;
      if (text.empty()) {
        text = ": " + one.question + ": " + one.why;
      } else {
        ++others;
      }
    }
    if (others > 0) text += ", and " + std::to_string(others) + " more";
    told_.emplace(question);
    return text;
  }

  /// The questions that are left: no check is unknown because of them, but one may be wrong.
  void unanswered() {
    for (const Unanswered& one : report_.unanswered) {
      // Services refuse CONFIG for ever, and scripts without a key. The checks that need these
      // answers have said so.
      const bool is_usual =
          one.refused && !one.question.starts_with("INFO") && one.question != "TIME";
      if (is_usual || told_.contains(one.question)) continue;
      add_unknown("report", "it did not answer a question about itself", one.question);
    }
  }

  /// If the server refuses our locks, it presumably refuses those of other hosts, too.
  void login() {
    if (!report_.unprotected || !diagnosis_.votes) return;
    add(Level::warning, "login",
        "it requires no password, so every host that can reach it can take and break locks",
        "set a password (requirepass) or an ACL user");
  }

  void software() {
    int major = 0;
    const std::string& version = report_.version;
    if (std::from_chars(version.data(), version.data() + version.size(), major).ec != std::errc()) {
      return add_unknown("software", "it does not report its version", "INFO server");
    }
    const std::string shown = escape_for_terminal(version);
    if (report_.software == "redis" && major < min_version) {
      // What a lock needs was tried.
      return add(diagnosis_.votes ? Level::warning : Level::bad, "software",
                 "it is version " + shown + ", and " + std::to_string(min_version) + " is needed");
    }
    add(Level::good, "software", report_.software + " " + shown);
  }

  void role() {
    if (report_.role.empty())
      return add_unknown("role", "it does not report whether it is a replica", "INFO replication");
    if (report_.role == "master") return add(Level::good, "role", "it is not a replica");
    diagnosis_.votes = false;
    const std::string master =
        report_.master.empty() ? "another" : escape_for_terminal(report_.master);
    add(Level::bad, "role", "it is a replica of " + master, "name the master instead");
  }

  /// With a restart guard, a server may lose all data when it restarts.
  void persistence() {
    constexpr const char* probe = "persistence";
    if (report_.saves_well == false) {
      return add(Level::warning, probe,
                 "it fails to save its data, and may refuse writes for that (MISCONF)");
    }
    if (report_.append_only == true && report_.append_fsync == "always") {
      return add(Level::good, probe, "it syncs every write to disk");
    }
    const bool guarded = demands_.restart_guard > Duration::zero();
    if (guarded && report_.append_only) {
      return add(
          Level::good, probe,
          "it may forget locks in a crash, and has no vote for a while after it (--restart-guard)");
    }
    if (report_.append_only == true && report_.append_fsync.empty()) {
      return add_unknown(probe,
                         "it does not tell whether it syncs every write to disk (appendfsync)",
                         "CONFIG GET appendfsync");
    }
    if (report_.append_only == true) {
      return add(Level::warning, probe, "a crash of its host loses the last locks",
                 "set appendfsync always");
    }
    if (!report_.append_only) {
      return add_unknown(probe, "it does not report whether it persists its data",
                         "INFO persistence");
    }
    add(Level::warning, probe, without_append_only(), "set appendonly yes and appendfsync always");
  }

  [[nodiscard]] const char* without_append_only() const {
    if (!report_.save) return "it has no append-only file, so a crash loses locks";
    return report_.save->empty() ? "it persists nothing, so a restart loses every lock"
                                 : "it saves snapshots only, so a crash loses locks";
  }

  void eviction() {
    const std::string& policy = report_.eviction_policy;
    if (policy.empty())
      return add_unknown("eviction", "it does not report its maxmemory-policy", "INFO memory");
    if (policy == "noeviction") return add(Level::good, "eviction", "it evicts no keys");
    const std::string when =
        report_.max_memory == 0 ? "once it has a maxmemory" : "when its memory is full";
    add(Level::warning, "eviction",
        "it evicts locks " + when + " (" + escape_for_terminal(policy) + ")",
        "set maxmemory-policy noeviction");
  }

  void replicas() {
    if (demands_.replicas == 0) {
      // Without a replica there is no fail-over.
      if (!report_.fails_over || report_.replicas == 0) return;
      return add(Level::warning, "replicas", "a replica that takes over may lack the last locks",
                 "set --replicas 1");
    }
    const std::string wanted = "--replicas needs " + std::to_string(demands_.replicas);
    if (!report_.replicas) {
      return add_unknown("replicas", "it does not report its number of replicas; " + wanted,
                         "INFO replication");
    }
    const bool enough = *report_.replicas >= static_cast<std::int64_t>(demands_.replicas);
    if (!enough) diagnosis_.votes = false;
    add(enough ? Level::good : Level::bad, "replicas",
        std::to_string(*report_.replicas) + " of its replicas are in sync; " + wanted);
  }

  /// Does not check whether the clock is right: engine/diagnosis compares it with ours.
  void clock() {
    if (!report_.clock_offset) add_unknown("clock", "it does not report its time", "TIME");
  }

  /// Expiries are instants of the master's clock. After a fail-over, the data with its expiries is
  /// read with the replica's clock.
  void replica_clocks() {
    constexpr const char* probe = "replica-clock";
    std::size_t agree = 0;
    for (const ReplicaClock& replica : report_.replica_clocks) {
      const std::string name = "the clock of its replica " + escape_for_terminal(replica.address);
      if (!replica.ahead) {
        add(Level::unknown, probe, name + " is not known: " + replica.why_unknown);
      } else if (*replica.ahead > clock_tolerance) {
        add(Level::warning, probe,
            name + " is " + format_duration(*replica.ahead) +
                " ahead of its own: after a fail-over locks expire that much too early",
            "synchronise the clocks of their hosts (NTP)");
      } else if (-*replica.ahead > clock_tolerance) {
        add(Level::warning, probe,
            name + " is " + format_duration(-*replica.ahead) +
                " behind its own: after a fail-over locks of dead hosts stay that much longer",
            "synchronise the clocks of their hosts (NTP)");
      } else {
        ++agree;
      }
    }
    if (agree > 0 && agree == report_.replica_clocks.size())
      add(Level::good, probe, "the clocks of its replicas match its own");
  }

  void address() {
    if (report_.servers_behind < 2) {
      const std::string why = because_of(more_connections_question);
      if (!why.empty()) {
        add(Level::unknown, "address",
            "it is not known whether connections to its address reach other servers, too" + why);
      }
      return;
    }
    diagnosis_.votes = false;
    add(Level::bad, "address",
        "connections to its address reach " + std::to_string(report_.servers_behind) +
            " different servers (their run ids differ), and each would grant the lock: is it a "
            "load balancer, or is a fail-over under way?",
        "name each server by an address of its own");
  }

  void uptime() {
    const bool guarded = demands_.restart_guard > Duration::zero();
    if (!report_.facts.up) {
      const std::string question = "INFO server";
      if (!guarded) return add_unknown("uptime", "it does not report its uptime", question);
      diagnosis_.votes = false;
      const bool is_silent = std::ranges::any_of(report_.unanswered, [&](const Unanswered& one) {
        return one.question == question && !one.refused;
      });
      return add(
          Level::bad, "uptime",
          "it does not report its uptime, which --restart-guard needs" + because_of(question),
          is_silent ? "" : "allow INFO (+info)");
    }
    if (!guarded) return;
    if (const auto left = guard_remaining(*report_.facts.up, demands_.restart_guard)) {
      diagnosis_.votes = false;
      const std::string why = *report_.facts.up < Duration::zero()
                                  ? "its clock was set back to before its start"
                                  : "it started " + format_duration(*report_.facts.up) + " ago";
      return add(Level::warning, "uptime",
                 why + ", its vote counts in " + format_duration(*left) + " (--restart-guard)");
    }
    add(Level::good, "uptime", "it has been up for longer than the --restart-guard");
  }

  const ServerReport& report_;
  const Demands& demands_;
  Diagnosis& diagnosis_;
  std::set<std::string, std::less<>> told_;  ///< questions of which a finding says why they failed
};

std::vector<Fact> facts_of(const ServerReport& report) {
  const auto text = [](const std::string& value) {
    return value.empty() ? decltype(Fact::value)() : decltype(Fact::value)(value);
  };
  std::vector<Fact> facts;
  facts.push_back(
      {"software", report.version.empty() ? decltype(Fact::value)() : text(report.software)});
  facts.push_back({"version", text(report.version)});
  facts.push_back({"role", text(report.role)});
  facts.push_back({"run_id", text(report.facts.run_id)});
  facts.push_back({"up_s"});
  if (report.facts.up) {
    facts.back().value = std::chrono::duration_cast<std::chrono::seconds>(*report.facts.up).count();
  }
  facts.push_back({"append_only"});
  if (report.append_only) facts.back().value = *report.append_only;
  facts.push_back({"append_fsync", text(report.append_fsync)});
  facts.push_back({"save"});
  if (report.save) facts.back().value = *report.save;
  facts.push_back({"eviction_policy", text(report.eviction_policy)});
  return facts;
}

std::string or_unknown(const std::string& text) {
  return text.empty() ? "?" : text;
}

std::string persistence_of(const ServerReport& report) {
  if (!report.append_only) return "?";
  if (*report.append_only) return "aof " + or_unknown(report.append_fsync);
  if (!report.save) return "no aof";
  return report.save->empty() ? "none" : "rdb";
}

std::vector<Cell> cells_of(const ServerReport& report) {
  return {{"SOFTWARE", report.version.empty() ? "?" : report.software + " " + report.version},
          {"ROLE", or_unknown(report.role)},
          {"UP", report.facts.up ? format_duration(*report.facts.up) : "?"},
          {"KEEPS", persistence_of(report)},
          {"EVICTS", or_unknown(report.eviction_policy)}};
}

}  // namespace

Diagnosis diagnosis_of(const ServerReport& report, Finding rights, const Demands& demands) {
  Diagnosis diagnosis;
  diagnosis.votes = rights.level != Level::bad;
  diagnosis.findings.push_back(std::move(rights));
  FindingsBuilder(report, demands, diagnosis).judge();

  diagnosis.facts = facts_of(report);
  diagnosis.cells = cells_of(report);
  diagnosis.latency = report.latency;
  diagnosis.clock_offset = report.clock_offset;
  diagnosis.identity = report.facts.run_id;
  diagnosis.lineage = report.replication_id;
  return diagnosis;
}

Finding unnotified(const Fault& fault) {
  return {Level::warning, "notifications",
          "waiters cannot subscribe there, so they poll and get the lock later: " + fault.text,
          "let them subscribe, bypassing a proxy that does not pass on SUBSCRIBE"};
}

Finding untried(const std::vector<std::string>& rights, const Fault& fault) {
  std::string names;
  for (const std::string& right : rights) names += " +" + right;
  const std::string text = names.empty()
                               ? "it is not known which commands it allows: "
                               : "it is not known whether these rights are missing:" + names + ": ";
  return {Level::unknown, "rights", text + fault.text};
}

Finding unreported(const Fault& fault) {
  return {Level::unknown, "report", "it did not answer all questions about itself: " + fault.text};
}

Diagnosis unreachable(const Fault& fault) {
  Diagnosis diagnosis;
  diagnosis.reachable = false;
  diagnosis.findings.push_back({Level::bad, "reach", fault.text});
  diagnosis.facts = facts_of(ServerReport());
  diagnosis.cells = cells_of(ServerReport());
  for (Cell& cell : diagnosis.cells) cell.text = "-";
  return diagnosis;
}

}  // namespace redlock::redis
