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

/// A server that needs more than this part of its timeout has no reserve for a bad moment.
constexpr int latency_part = 4;

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
    server.findings.push_back({Level::good, "clock", "its clock agrees with ours"});
  }
}

void judge_latency(Diagnosis& server, Duration server_timeout) {
  if (!server.latency) return;
  const bool slow = *server.latency > server_timeout / latency_part;
  server.findings.push_back({slow ? Level::warning : Level::good, "latency",
                             "it takes " + format_duration(*server.latency) +
                                 " to answer; --server-timeout is " +
                                 format_duration(server_timeout)});
}

bool are_same(const std::string& one, const std::string& other) {
  return !one.empty() && one == other;
}

/// Compares the server with those before it.
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

/// The diagnoses under way.
struct Progress {
  std::unique_ptr<Event> event;
  std::vector<Diagnosis> servers;
  std::size_t open;
};

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
      if (finding.level != Level::unknown) set.worst = std::max(set.worst, finding.level);
    }
  }
  return set;
}

asio::awaitable<SetDiagnosis> diagnose(asio::any_io_executor executor, const Clock& clock,
                                       std::vector<ServerLink> servers, DiagnosisRequest request) {
  const auto progress = std::make_shared<Progress>();
  progress->event = clock.make_event();
  progress->servers.resize(servers.size());
  progress->open = servers.size();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    names.push_back(servers[i].address->name());
    spawn(executor,
          [executor, &clock, progress, i, request, server = servers[i]]() -> asio::awaitable<void> {
            progress->servers[i] =
                co_await server.address->diagnose(executor, clock, server.options, request);
            if (--progress->open == 0) progress->event->notify();
          });
  }
  while (progress->open > 0) co_await progress->event->wait_until(Instant::max());

  co_return judge(std::move(names), std::move(progress->servers), request.server_timeout);
}

}  // namespace redlock
