#include "engine/diagnosis.hpp"

#include <algorithm>

#include "core/decision.hpp"
#include "support/duration.hpp"
#include "support/spawn.hpp"
#include "support/text.hpp"

namespace redlock {
namespace {

/// Synchronised hosts differ by milliseconds. A larger difference means that one of the clocks is
/// not synchronised.
constexpr std::chrono::seconds clock_tolerance{1};

/// A server whose latency exceeds its timeout divided by this has too little reserve for load
/// peaks.
constexpr int latency_divisor = 4;

void judge_clock(Diagnosis& server) {
  if (!server.clock_offset) return;
  const Duration offset = *server.clock_offset;
  const Duration tolerated = clock_tolerance + server.latency.value_or(Duration::zero());
  if (offset > tolerated) {
    server.findings.push_back(
        {Level::warning, "clock", "its clock is " + format_duration(offset) + " ahead of ours"});
  } else if (-offset > tolerated) {
    server.findings.push_back(
        {Level::warning, "clock", "its clock is " + format_duration(-offset) + " behind ours"});
  } else {
    server.findings.push_back({Level::good, "clock", "its clock matches ours"});
  }
}

void judge_latency(Diagnosis& server, Duration server_timeout) {
  if (!server.latency) return;
  const bool slow = *server.latency > server_timeout / latency_divisor;
  server.findings.push_back({slow ? Level::warning : Level::good, "latency",
                             "it takes " + format_duration(*server.latency) +
                                 " to answer; --server-timeout is " +
                                 format_duration(server_timeout)});
}

bool are_same(const std::string& one, const std::string& other) {
  return !one.empty() && one == other;
}

/// Compares the server with all before it, and takes its vote if it is one of them or copies one.
void judge_independence(SetDiagnosis& set, std::size_t index) {
  Diagnosis& server = set.servers[index];
  for (std::size_t first = 0; first < index; ++first) {
    const Diagnosis& other = set.servers[first];
    const std::string name = escape_for_terminal(set.names[first]);
    if (are_same(server.identity, other.identity)) {
      server.votes = false;
      set.has_duplicate = true;
      server.findings.push_back({Level::bad, "identity",
                                 "it is the same server as " + name + ", which has only one vote"});
      return;
    }
    if (are_same(server.lineage, other.lineage)) {
      server.votes = false;
      server.findings.push_back({Level::bad, "replication",
                                 "it is not independent: it and " + name +
                                     " are replicas of each other, or of the same master"});
      return;
    }
  }
}

}  // namespace

SetDiagnosis judge(std::vector<std::string> names, std::vector<Diagnosis> servers,
                   Duration server_timeout) {
  SetDiagnosis set{std::move(names), std::move(servers)};
  set.needed = quorum_of(set.servers.size());
  for (std::size_t i = 0; i < set.servers.size(); ++i) {
    judge_clock(set.servers[i]);
    judge_latency(set.servers[i], server_timeout);
    judge_independence(set, i);
  }

  for (const Diagnosis& server : set.servers) {
    if (server.votes) ++set.voting;
    for (const Finding& finding : server.findings) {
      if (finding.level == Level::unknown) ++set.unknown;
      if (finding.level != Level::unknown) set.worst = std::max(set.worst, finding.level);
    }
  }
  return set;
}

asio::awaitable<SetDiagnosis> diagnose(asio::any_io_executor executor, const Clock& clock,
                                       std::vector<ServerLink> servers, DiagnosisRequest request) {
  std::vector<Diagnosis> found(servers.size());
  const auto diagnose_one = [&](std::size_t i) -> asio::awaitable<void> {
    found[i] = co_await servers[i].address->diagnose(executor, clock, servers[i].options, request);
  };
  co_await run_all(executor, clock, servers.size(), diagnose_one);

  std::vector<std::string> names;
  for (const ServerLink& server : servers) names.push_back(server.address->name());
  co_return judge(std::move(names), std::move(found), request.server_timeout);
}

}  // namespace redlock
