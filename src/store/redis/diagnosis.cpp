#include "store/redis/diagnosis.hpp"

#include <algorithm>
#include <chrono>
#include <set>

#include "core/helper_keys.hpp"
#include "core/protocol.hpp"
#include "store/lock_probe.hpp"
#include "store/redis/cluster.hpp"
#include "store/redis/error_reply.hpp"
#include "store/redis/findings.hpp"
#include "store/redis/interview.hpp"
#include "store/redis/rights.hpp"
#include "store/redis/server_info.hpp"
#include "store/redis/tls_source.hpp"
#include "support/spawn.hpp"

namespace redlock::redis {
namespace {

/// The number of further connections to an address, which would reveal a load balancer.
constexpr std::size_t more_connections = 8;

/// Of one section of INFO: a master may list many replicas.
constexpr ReplyLimits info_limits{.bulk = 1024 * 1024, .total = 1024 * 1024};

/// The maximum number of replicas whose clocks are compared.
constexpr std::size_t max_replicas = 16;

/// How long the key for testing the rights lives, in server timeouts, each of which may take four
/// (StepTime), and at least: longer than all of the questions take.
constexpr int right_probes_life = 16;
constexpr Milliseconds min_right_probes_life{5000};

/// The rights that the scripts need and we lack, as far as is known.
struct Rights {
  std::vector<std::string> missing;  ///< or the command does not exist there; in lower case
  std::vector<std::string> untried;  ///< it is not known whether these are missing
  std::optional<Fault> why_untried{};
};

/// Diagnoses one vote.
class Probe {
 public:
  /// `endpoint` and `options` are the vote's.
  Probe(RedisVote& vote, asio::any_io_executor executor, const Clock& clock, Endpoint endpoint,
        RedisServerOptions options, const DiagnosisRequest& request)
      : vote_(vote),
        executor_(std::move(executor)),
        clock_(clock),
        endpoint_(std::move(endpoint)),
        options_(std::move(options)),
        request_(request) {}

  /// `logged_in`: whether the server required a password; only valid once it has answered.
  asio::awaitable<Diagnosis> run(const bool& logged_in) {
    const Endpoint& endpoint = endpoint_;
    const unsigned replicas = options_.replicas;
    auto report = co_await ask_masters();
    // A proxy may close the connection at a command that it does not support, although locks work.
    std::optional<Fault> no_report;
    if (!report) {
      no_report = std::move(report.error());
      if (no_report->kind != FaultKind::silent || !vote_.was_reached())
        co_return unreachable(*no_report);
      report = ServerReport();
    }
    if (endpoint.kind == Endpoint::Kind::tcp && !report->facts.run_id.empty())
      co_await count_servers(*report);
    report->fails_over =
        endpoint.kind == Endpoint::Kind::sentinel || endpoint.kind == Endpoint::Kind::cluster;
    // A server with TLS may require a client certificate, so it counts as protected.
    report->unprotected = endpoint.is_remote() && !logged_in && !endpoint.tls;

    LockProbe lock(vote_, clock_, request_);
    if (report->refuses_scripts) {
      lock.fail("take a lock", *report->refuses_scripts);
    } else {
      co_await lock.run();
    }
    if (no_report && lock.failed()) co_return unreachable(*no_report);
    Rights rights = co_await ask_for_rights(lock.unused_key());
    // In a cluster, a replica redirects to its master instead.
    if (report->role.empty() && endpoint.kind != Endpoint::Kind::cluster) {
      const bool denied = co_await may_not_ask_for_role(lock.unused_key());
      if (denied) rights.missing.emplace_back("role");
    }
    const auto not_notified = co_await subscribe(lock.key(), rights.missing);
    if (lock.has_own_key()) {
      const auto left = co_await erase(lock.key());
      if (left) lock.fail("remove the probe", *left);
    } else {
      lock.undo();
    }
    Diagnosis diagnosis =
        diagnosis_of(*report, lock.finding(rights.missing), {request_.restart_guard, replicas});
    if (rights.why_untried && !lock.failed())
      diagnosis.findings.push_back(untried(rights.untried, *rights.why_untried));
    if (not_notified) diagnosis.findings.push_back(unnotified(*not_notified));
    if (no_report) diagnosis.findings.push_back(unreported(*no_report));
    co_return diagnosis;
  }

 private:
  [[nodiscard]] Instant deadline() const { return clock_.now() + request_.server_timeout; }

  /// The weakest guarantees among the masters' reports.
  asio::awaitable<Result<ServerReport, Fault>> ask_masters() {
    const auto masters = co_await vote_.masters(deadline());
    if (!masters) co_return unexpected(masters.error());
    std::optional<ServerReport> weakest;
    std::optional<Fault> silence;
    std::vector<Unanswered> not_asked;  // of each further master
    std::size_t silent = 0;
    bool was_answered = false;
    for (const RedisVote::Master& master : *masters) {
      ServerReport report;
      if (silent == max_unanswered) {
        report.unanswered = not_asked;
        for (Unanswered& one : report.unanswered) one.why = master.address + one.why;
        weakest = weaker(std::move(*weakest), report);
        continue;
      }
      const std::shared_ptr<RedisServer> server = master.server();
      auto fault = co_await ask(*server, report);
      if (fault) {
        // The locks of the other masters say nothing about this one.
        if (!server->was_reached()) fault->kind = FaultKind::unavailable;
        if (!master.address.empty()) fault->text = master.address + ": " + fault->text;
        if (fault->kind != FaultKind::silent) co_return unexpected(std::move(*fault));
        silence = std::move(fault);
        ++silent;
        not_asked = report.unanswered;
        for (Unanswered& one : not_asked) one.why = ": not asked, since others do not answer";
      } else {
        was_answered = true;
      }
      if (!master.address.empty()) {
        for (Unanswered& one : report.unanswered) one.why = master.address + ": " + one.why;
      }
      weakest = weakest ? weaker(std::move(*weakest), report) : std::move(report);
    }
    if (was_answered) co_return std::move(*weakest);
    if (silence) co_return unexpected(std::move(*silence));
    co_return unexpected(Fault{FaultKind::unavailable, "no server of its cluster has any slot"});
  }

  /// Fills in the report. Returns why the server cannot be used, if that is known by now: it
  /// answered no question, or requires a login.
  asio::awaitable<std::optional<Fault>> ask(RedisServer& server, ServerReport& report) {
    Interview interview(server, clock_, request_.server_timeout, report);
    // Together all sections may be too large, and several in one command need Redis 7.
    Reply info = text_reply("");
    Instant told_uptime;
    for (const char* section : {"server", "memory", "persistence", "replication"}) {
      Command question{"INFO", section};
      const Reply part = co_await interview.ask(std::move(question), info_limits);
      if (section == std::string_view("server")) told_uptime = clock_.now();
      if (part.type == Reply::Type::text) info.text += part.text + "\r\n";
    }
    const Milliseconds asked_at = clock_.wall();
    const Instant asked = clock_.now();
    Command time_command{"TIME"};
    const Reply time = co_await interview.ask(std::move(time_command));
    const Duration took = clock_.now() - asked;
    Command fsync_command{"CONFIG", "GET", "appendfsync"};
    const Reply fsync = co_await interview.ask(std::move(fsync_command));
    Command save_command{"CONFIG", "GET", "save"};
    const Reply save = co_await interview.ask(std::move(save_command));
    // A server that has loaded our scripts runs them even without this right, but only until it
    // restarts.
    Command eval_command{"EVAL", "return 1", "0"};
    const Reply eval = co_await interview.ask(std::move(eval_command));
    if (auto fault = interview.silence()) co_return fault;
    // A proxy may refuse a script without a key. In that case the lock shows whether scripts work.
    const bool refused =
        eval.type == Reply::Type::error && fault_of_error(eval.text).kind == FaultKind::denied;
    if (refused && wants_login(eval.text)) co_return fault_of_error(eval.text);

    ServerReport told = report_from(info.text);
    told.latency = report.latency;
    told.unanswered = std::move(report.unanswered);
    report = std::move(told);
    report.facts = facts_from(info, told_uptime, clock_.now());
    if (const auto server_time = time_from(time)) {
      report.clock_offset = *server_time - asked_at - took / 2;
    }
    report.append_fsync = configured(fsync).value_or("");
    report.save = configured(save);
    if (refused) report.refuses_scripts = fault_of_error(eval.text);
    if (report.clock_offset) {
      report.replica_clocks =
          co_await compare_clocks(ServerInfo(info.text).replicas(), *report.clock_offset);
    }
    co_return std::nullopt;
  }

  /// Counts the different servers that connections to the address reach, including the known one.
  asio::awaitable<void> count_servers(ServerReport& report) {
    std::set<std::string> run_ids{report.facts.run_id};
    const Instant end = deadline();
    const auto ask_one = [&](std::size_t) -> asio::awaitable<void> {
      RedisServer server(executor_, clock_, endpoint_, options_);
      Command question{"INFO", "server"};
      const auto info = co_await server.ask(std::move(question), ReplyLimits{}, end);
      if (info) {
        ServerFacts facts = facts_from(*info, end, end);
        if (!facts.run_id.empty()) run_ids.insert(std::move(facts.run_id));
      } else {
        report.unanswered.push_back({std::string(more_connections_question), info.error().text});
      }
      server.abort();
    };
    // Open all of them at the same time: a balancer may distribute connections by their number.
    co_await run_all(executor_, clock_, more_connections, ask_one);
    report.servers_behind = run_ids.size();
  }

  /// Compares each replica's clock with the master's, whose offset from ours is given.
  asio::awaitable<std::vector<ReplicaClock>> compare_clocks(std::vector<Address> replicas,
                                                            Duration master_offset) {
    if (replicas.size() > max_replicas) replicas.resize(max_replicas);
    std::vector<ReplicaClock> clocks(replicas.size());
    const Instant end = deadline();
    const auto ask_one = [&](std::size_t i) -> asio::awaitable<void> {
      clocks[i].address = replicas[i].text();
      const auto offset = co_await offset_of(replicas[i], end);
      if (offset) {
        clocks[i].ahead = *offset - master_offset;
      } else {
        clocks[i].why_unknown = offset.error().text;
      }
    };
    co_await run_all(executor_, clock_, replicas.size(), ask_one);
    co_return clocks;
  }

  /// The wall clock of the server at this address minus ours.
  asio::awaitable<Result<Duration, Fault>> offset_of(Address address, Instant end) {
    if (address.host.empty())
      co_return unexpected(Fault{FaultKind::unavailable, "it announces no address"});
    RedisServer server(executor_, clock_, endpoint_.server_at(address), options_);
    // The first question opens the connection, so its duration does not count.
    Command first{"TIME"};
    Command second{"TIME"};
    auto time = co_await server.ask(std::move(first), ReplyLimits{}, end);
    const Milliseconds asked_at = clock_.wall();
    const Instant asked = clock_.now();
    if (time) time = co_await server.ask(std::move(second), ReplyLimits{}, end);
    const Duration latency = clock_.now() - asked;
    server.abort();
    if (!time) co_return unexpected(time.error());
    if (time->type == Reply::Type::error) co_return unexpected(fault_of_error(time->text));
    const auto time_there = time_from(*time);
    if (!time_there) co_return unexpected(Fault{FaultKind::garbage, "malformed TIME reply"});
    co_return *time_there - asked_at - latency / 2;
  }

  /// The rights to the commands that the scripts run.
  asio::awaitable<Rights> ask_for_rights(Resource unused_key) {
    Rights rights;
    const auto server = co_await vote_.master_of(unused_key.key(), deadline());
    if (!server) {
      rights.why_untried = server.error();
      co_return rights;
    }
    const auto life =
        std::max(min_right_probes_life,
                 std::chrono::ceil<Milliseconds>(right_probes_life * request_.server_timeout));
    std::size_t silences = 0;
    bool is_safe = true;  // without the string under the key, commands would create data
    for (Command& command : right_probes(unused_key.key(), life)) {
      const std::string right = right_to(command);
      if (!is_safe || silences == max_unanswered) {
        if (rights.why_untried) rights.untried.push_back(right);
        continue;
      }
      const Instant end = deadline();
      const auto reply = co_await (*server)->ask(std::move(command), ReplyLimits{}, end);
      if (!reply) {
        // A proxy may close the connection at one command and accept the next.
        rights.untried.push_back(right);
        rights.why_untried = reply.error();
        if (clock_.now() >= end) ++silences;
        is_safe = right != "set";
        continue;
      }
      const bool is_absent = is_unknown_command(*reply);
      if (!is_absent && !is_denied(*reply, right)) continue;
      rights.missing.push_back(is_absent ? right + " (renamed or disabled)" : right);
      is_safe = right != "set";
      if (right != "del") continue;
      Command expire{"PEXPIRE", unused_key.key(), "1"};  // the alternative, if this is allowed
      (void)co_await (*server)->ask(std::move(expire), ReplyLimits{}, deadline());
    }
    co_return rights;
  }

  /// Whether we lack the right to ROLE, which shows that a server is a replica if INFO does not.
  asio::awaitable<bool> may_not_ask_for_role(Resource unused_key) {
    const Instant end = deadline();
    const auto server = co_await vote_.master_of(unused_key.key(), end);
    if (!server) co_return false;
    Command question{"ROLE"};
    const auto reply = co_await (*server)->ask(std::move(question), role_limits, end);
    if (!reply) co_return false;
    co_return is_denied(*reply, "role");
  }

  /// Adds the right to subscribe to the missing ones, if it is. Returns any other reason why
  /// waiters get no notifications; that is no failure, as they can poll.
  asio::awaitable<std::optional<Fault>> subscribe(Resource key, std::vector<std::string>& missing) {
    const std::function<void(Notification)> ignore = [](Notification) {};
    const auto fault = co_await vote_.subscribe(std::move(key), "doctor", ignore, deadline());
    vote_.unsubscribe();
    if (!fault || fault->kind != FaultKind::denied) co_return fault;
    const bool command = fault->text.find("'subscribe'") != std::string::npos;
    std::string right = "subscribe";
    if (!command)
      right.append(" (to the channels &").append(protocol::word::wake_prefix).append("*)");
    missing.push_back(std::move(right));
    co_return std::nullopt;
  }

  /// Deletes the key and its helper keys, even the fence counter, as no other client can have used
  /// them. Leaves out the last runs: there are none, and we may have no right to their key.
  asio::awaitable<std::optional<Fault>> erase(Resource key) {
    const Instant end = deadline();
    const auto server = co_await vote_.master_of(key.key(), end);
    if (!server) co_return server.error();
    std::vector<std::string> keys = HelperKeys(key).all();
    std::erase(keys, HelperKeys(key).last());
    keys.push_back(key.key());
    Command del{"DEL"};
    del.insert(del.end(), keys.begin(), keys.end());
    const auto reply = co_await (*server)->ask(std::move(del), ReplyLimits{}, end);
    if (!reply) co_return reply.error();
    if (reply->type != Reply::Type::error) co_return std::nullopt;
    for (const std::string& left : keys) {
      Command expire{"PEXPIRE", left, "1"};  // the alternative, if this is allowed
      (void)co_await (*server)->ask(std::move(expire), ReplyLimits{}, end);
    }
    co_return fault_of_error(reply->text);
  }

  RedisVote& vote_;
  asio::any_io_executor executor_;
  const Clock& clock_;
  Endpoint endpoint_;
  RedisServerOptions options_;
  const DiagnosisRequest& request_;
};

}  // namespace

asio::awaitable<Diagnosis> diagnose(asio::any_io_executor executor, const Clock& clock,
                                    Endpoint endpoint, RedisServerOptions options,
                                    DiagnosisRequest request) {
  const auto logged_in = std::make_shared<bool>(endpoint.current_password().has_value());
  options.needless_password =
      [logged_in, tell = std::move(options.needless_password)](const std::string& server) {
        *logged_in = false;
        if (tell) tell(server);
      };
  std::string authorities;
  if (endpoint.tls && options.tls) authorities = options.tls->context()->authorities();
  const std::unique_ptr<RedisVote> vote = make_server(executor, clock, endpoint, options);
  Probe probe(*vote, std::move(executor), clock, std::move(endpoint), std::move(options), request);
  Diagnosis diagnosis = co_await probe.run(*logged_in);
  if (!authorities.empty()) {
    diagnosis.facts.push_back({"trusted_cas", authorities});
    diagnosis.cells.push_back({"TRUSTS", std::move(authorities)});
  }
  co_await vote->close(clock.now() + request.server_timeout);
  co_return diagnosis;
}

}  // namespace redlock::redis
