#include "store/redis/redis_server.hpp"

#include <algorithm>
#include <utility>

#include "core/helper_keys.hpp"
#include "core/protocol.hpp"
#include "store/redis/command.hpp"
#include "store/redis/error_reply.hpp"
#include "store/redis/lock_scan.hpp"
#include "store/redis/server_info.hpp"

namespace redlock::redis {
namespace {

/// The facts that the server reported when the connection opened, as of `now`; empty if it was not
/// asked.
ServerFacts greeted_facts(const std::optional<Connection::Greeting>& greeting, Instant now) {
  return greeting ? facts_from(greeting->reply, greeting->at, now) : ServerFacts();
}

Fault cancelled() {
  return {FaultKind::silent, "cancelled"};
}

bool is_noscript_reply(const Reply& reply) {
  return reply.type == Reply::Type::error && is_noscript(reply.text);
}

bool is_read_only_reply(const Reply& reply) {
  return reply.type == Reply::Type::error && is_read_only(reply.text);
}

/// Asks for the role, which is read by role_from(). It comes behind questions that write nothing,
/// and so do not show whether the server is a master (PROTOCOL D4). The user may have only one of
/// these two rights, or none.
void add_role_questions(std::vector<Connection::Question>& questions) {
  // A proxy may close the connection instead of refusing them.
  questions.push_back({Command{"ROLE"}, role_limits, /*may_fail=*/true});
  questions.push_back({Command{"INFO", "replication"}, {}, /*may_fail=*/true});
}

/// Whether the call made a change that only counts once enough replicas have it.
bool needs_replicas(const ScriptCall& call, const Reply& reply) {
  if (reply.type != Reply::Type::array || reply.elements.empty()) return false;
  const std::string& word = reply.elements[0].text;
  return (call.script == &scripts::acquire && word == protocol::word::granted) ||
         (call.script == &scripts::extend && word == protocol::word::extended);
}

/// Whether the call recorded a success that others will rely on, which a fail-over must not lose.
bool has_recorded_success(const ScriptCall& call, const Reply& reply) {
  return call.records_success && reply.type == Reply::Type::array && reply.elements.size() >= 2 &&
         reply.elements[0].text == protocol::word::released &&
         reply.elements[protocol::reply::released::recorded].integer == 1;
}

/// How long to wait before a server that refused a WAIT is asked again.
constexpr Milliseconds wait_interval{50};

}  // namespace

RedisServer::RedisServer(asio::any_io_executor executor, const Clock& clock, Endpoint endpoint,
                         RedisServerOptions options)
    : clock_(clock),
      options_(options),
      name_(endpoint.name()),
      connector_(std::move(executor), clock, std::move(endpoint), std::move(options)),
      links_(connector_),
      subscription_(connector_) {}

asio::awaitable<ScriptReply> RedisServer::call(ScriptCall call, Instant deadline) {
  Answer answer = co_await answer_to(std::move(call), /*asking=*/false, StepTime(clock_, deadline));
  if (!answer.reply) co_return unexpected(answer.reply.error());
  if (answer.reply->type == Reply::Type::error)
    co_return unexpected(fault_of_error(answer.reply->text));
  co_return std::move(*answer.reply);
}

asio::awaitable<RedisServer::Answer> RedisServer::answer_to(ScriptCall call, bool asking,
                                                            StepTime time) {
  const bool was_connected = links_.is_connected();
  Answer answer = co_await ask_once(call, asking, time);
  // The server may have become a replica since we connected. Then it did nothing, and another
  // server may be the master by now.
  if (was_connected && answer.reply && is_read_only_reply(*answer.reply))
    answer = co_await ask_once(call, asking, time);
  const UndoTarget undo_target = undo_target_of(call);
  while (!answer.reply) {
    if (!co_await finds_better_connection(answer.link, time.next())) break;
    // An undo or a leave that was sent meanwhile would not follow the repeated call to another
    // master.
    if (!links_.has_to_undo(undo_target.token) || !links_.has_to_undo(undo_target.waiter)) break;
    answer = co_await ask_once(call, asking, time);
  }
  co_return answer;
}

asio::awaitable<bool> RedisServer::finds_better_connection(std::shared_ptr<const Link> link,
                                                           Instant deadline) {
  if (links_.retire_outdated(*link)) co_return true;
  if (!link->connection->found_no_master()) co_return false;
  co_return co_await connector_.finds_another_master(deadline);
}

asio::awaitable<RedisServer::Answer> RedisServer::answer_to(Command command, ReplyLimits limits,
                                                            Instant deadline) {
  const StepTime time(clock_, deadline);
  for (;;) {
    const std::shared_ptr<Link> link = links_.usable_link(time.next());
    auto reply = co_await link->connection->request(command, limits, time.next());
    if (reply) co_return Answer{std::move(reply), link};
    if (!co_await finds_better_connection(link, time.next()))
      co_return Answer{std::move(reply), link};
  }
}

asio::awaitable<Result<Reply, Fault>> RedisServer::ask(Command command, ReplyLimits limits,
                                                       Instant deadline) {
  Answer answer = co_await answer_to(std::move(command), limits, deadline);
  co_return std::move(answer.reply);
}

asio::awaitable<Result<RedisServer::Types, Fault>> RedisServer::types_of(
    std::vector<std::string> keys, bool asking, Instant deadline) {
  const std::shared_ptr<Link> link = links_.usable_link(deadline);
  std::vector<Connection::Question> questions;
  for (const std::string& key : keys) {
    if (asking) questions.push_back({Command{"ASKING"}});
    questions.push_back({Command{"TYPE", key}});
  }
  auto replies = co_await link->connection->request_all(std::move(questions), deadline);
  if (!replies) co_return unexpected(replies.error());
  if (asking) {
    std::vector<Reply> types;
    for (std::size_t i = 1; i < replies->size(); i += 2) types.push_back(std::move((*replies)[i]));
    co_return Types{std::move(types), link};
  }
  co_return Types{std::move(*replies), link};
}

Connection::Answered RedisServer::late_answer_to(const ScriptCall& call,
                                                 const std::shared_ptr<Link>& link) const {
  // A late answer says nothing of the replicas.
  if (!call.late || options_.replicas > 0) return nullptr;
  return [late = call.late, token = undo_target_of(call).token, known = std::weak_ptr(link),
          &clock = clock_](const Result<Reply, Fault>& reply) {
    const auto alive = known.lock();
    if (!alive || !reply || reply->type == Reply::Type::error) return;
    // What is under way there no more needs no undo there.
    if (const auto sent = alive->maybe_applied.find(token); sent != alive->maybe_applied.end())
      sent->second.answered = true;
    late(*reply, greeted_facts(alive->connection->greeting(), clock.now()));
  };
}

asio::awaitable<Result<Reply, Fault>> RedisServer::run_script(std::shared_ptr<Link> link,
                                                              const ScriptCall& call, bool asking,
                                                              StepTime time) {
  // In a cluster, a replica redirects to its master instead.
  const bool with_role = call.script == &scripts::inspect && !options_.slots_move;
  auto reply = co_await send(link, script_command(call), asking, with_role, time.next(),
                             late_answer_to(call, link));
  if (!reply || !is_noscript_reply(*reply)) co_return reply;

  auto loaded =
      co_await send(link, load_scripts_command(call), asking, /*with_role=*/false, time.next());
  if (!loaded || loaded->type == Reply::Type::error) co_return loaded;
  // If an undo or a release was sent meanwhile, this call would arrive after it and take effect.
  const UndoableCall undoable(*link, call);
  if (undoable.lease_is_undone() || undoable.waiter_has_left()) co_return unexpected(cancelled());
  co_return co_await send(link, script_command(call), asking, with_role, time.next());
}

asio::awaitable<Result<Reply, Fault>> RedisServer::send(std::shared_ptr<Link> link,
                                                        EncodedCommand command, bool asking,
                                                        bool with_role, Instant deadline,
                                                        Connection::Answered late) {
  std::vector<Connection::Question> questions;
  if (asking) questions.push_back({Command{"ASKING"}});
  const std::size_t at = questions.size();
  questions.push_back({std::move(command)});
  if (with_role) add_role_questions(questions);
  auto replies =
      co_await link->connection->request_all(std::move(questions), deadline, std::move(late));
  if (!replies) co_return unexpected(std::move(replies.error()));
  Reply& reply = (*replies)[at];
  if (with_role && reply.type != Reply::Type::error) {
    if (auto fault = objection_to_role((*replies)[at + 1], (*replies)[at + 2]))
      co_return unexpected(std::move(*fault));
  }
  co_return std::move(reply);
}

std::optional<Fault> RedisServer::objection_to_role(const Reply& role, const Reply& info) {
  const std::string name = role_from(role, info);
  if (name == "master") return std::nullopt;
  if (!name.empty()) return is_replica();
  if (role.type == Reply::Type::error) {
    Fault fault = fault_of_error(role.text);
    if (fault.refused) return fault;  // for a moment only
  }
  if (options_.unknown_role) options_.unknown_role(name_);
  return std::nullopt;
}

asio::awaitable<RedisServer::Answer> RedisServer::ask_once(const ScriptCall& call, bool asking,
                                                           StepTime time) {
  const std::shared_ptr<Link> link = links_.usable_link(time.next());
  auto reply = co_await ask_on(link, call, asking, time);
  co_return Answer{std::move(reply), link};
}

asio::awaitable<Result<Reply, Fault>> RedisServer::ask_on(std::shared_ptr<Link> link,
                                                          const ScriptCall& call, bool asking,
                                                          StepTime time) {
  UndoableCall undoable(*link, call);
  undoable.note_sent();
  if (call.script == &scripts::release) link->maybe_applied.erase(undone_by(call));
  auto reply = co_await run_script(link, call, asking, time);
  if (!reply) co_return unexpected(reply.error());
  if (reply->type == Reply::Type::error) co_return refused(*link, undoable, std::move(*reply));

  if (left_no_lease(*reply)) {
    undoable.note_no_lease();  // a waiter may go on polling for hours
  } else if (undoable.may_leave_lease()) {
    undoable.note_answered();
    // A grant counts only from a server whose uptime is known (R7). The server was busy when it was
    // asked for its uptime, so ask again.
    if (link->connection->greeting_was_refused()) {
      if (auto fault = co_await link->connection->greet_again(time.next())) {
        fault->refused = false;  // only INFO was refused, not the script
        co_return unexpected(std::move(*fault));
      }
    }
  }
  note_facts(*link);
  if (options_.replicas > 0 && needs_replicas(call, *reply)) {
    if (auto fault = co_await missing_replicas(link, time.next()))
      co_return unexpected(std::move(*fault));
  }
  if (options_.replicas > 0 && has_recorded_success(call, *reply)) {
    // The lease is released in any case.
    const bool is_safe = co_await replicas_have_record(link, time.first_end());
    if (!is_safe) reply->elements[protocol::reply::released::recorded].integer = 0;
  }
  co_return std::move(*reply);
}

asio::awaitable<bool> RedisServer::replicas_have_record(std::shared_ptr<Link> link,
                                                        Instant deadline) {
  // The rest of the time is for the answer to reach the round.
  const Instant end = clock_.now() + (deadline - clock_.now()) / 4 * 3;
  for (;;) {
    const auto fault = co_await missing_replicas(link, end);
    if (!fault) co_return true;
    const Instant next = clock_.now() + wait_interval;
    if (!fault->refused || next >= end) co_return false;
    co_await sleep_until(clock_, next);
  }
}

Result<Reply, Fault> RedisServer::refused(Link& link, UndoableCall& undoable, Reply error) {
  const Fault fault = fault_of_error(error.text);
  const bool is_replica = is_read_only(error.text);
  if (is_replica) {
    link.connection->retire();
    subscription_.disconnect();
  }
  if (is_replica || is_redirect(error.text)) {
    // The call may be repeated at another master, where it would take effect after its undo.
    if (undoable.lease_is_undone()) return unexpected(cancelled());
    undoable.note_no_lease();  // this server did nothing
  }
  if (is_replica && undoable.waiter_has_left()) return unexpected(fault);
  if (fault.refused) undoable.note_no_lease();
  return error;
}

void RedisServer::note_facts(const Link& link) {
  facts_ = greeted_facts(link.connection->greeting(), clock_.now());
  facts_.reconnected = links_.reconnected();
  if (first_run_id_.empty()) first_run_id_ = facts_.run_id;
  facts_.other_process = facts_.run_id != first_run_id_ && !facts_.run_id.empty();
}

asio::awaitable<std::optional<Fault>> RedisServer::missing_replicas(std::shared_ptr<Link> link,
                                                                    Instant deadline) {
  const Duration left = deadline - clock_.now();
  // Leave time for the answer, as too few confirmations are not the same as silence. A timeout of 0
  // would wait forever.
  const auto timeout =
      std::max(Milliseconds(1), std::chrono::duration_cast<Milliseconds>(left / 4 * 3));
  Command wait{"WAIT", std::to_string(options_.replicas), std::to_string(timeout.count())};
  link->waits = true;
  link->waits_until = deadline;
  const auto reply = co_await link->connection->request(wait, ReplyLimits{}, deadline);
  if (!reply) co_return reply.error();
  link->waits = false;
  if (reply->type == Reply::Type::error) co_return fault_of_error(reply->text);
  if (reply->type != Reply::Type::integer)
    co_return Fault{FaultKind::garbage, "malformed WAIT reply"};
  if (reply->integer >= static_cast<std::int64_t>(options_.replicas)) co_return std::nullopt;
  const std::string confirmed = std::to_string(std::max<std::int64_t>(reply->integer, 0));
  co_return Fault{FaultKind::unavailable,
                  "only " + confirmed + " of the " + std::to_string(options_.replicas) +
                      " replicas that --replicas needs have confirmed it in time"};
}

asio::awaitable<Result<LockList, Fault>> RedisServer::list(ListRequest request) {
  LockScan scan(request, clock_);
  std::shared_ptr<Link> link = links_.usable_link(scan.answer_by());
  while (!scan.has_ended()) {
    auto page = co_await scan.next_page(*link->connection);
    while (!page && scan.is_at_start()) {
      if (!co_await finds_better_connection(link, scan.answer_by())) break;
      link = links_.usable_link(scan.answer_by());
      page = co_await scan.next_page(*link->connection);
    }
    if (!page && scan.has_ended()) break;
    if (!page) co_return unexpected(scan.so_far(std::move(page.error())));
    if (auto fault = co_await scan.add(std::move(*page), *link->connection))
      co_return unexpected(std::move(*fault));
  }
  if (!options_.slots_move && clock_.now() < request.until) {
    std::vector<Connection::Question> questions;
    add_role_questions(questions);
    const auto role =
        co_await link->connection->request_all(std::move(questions), scan.answer_by());
    if (!role) co_return unexpected(role.error());
    if (auto fault = objection_to_role((*role)[0], (*role)[1]))
      co_return unexpected(std::move(*fault));
  }
  co_return std::move(scan).list();
}

asio::awaitable<std::optional<Fault>> RedisServer::subscribe(
    Resource resource, std::string waiter, std::function<void(Notification)> notified,
    Instant deadline) {
  return subscription_.start(HelperKeys(resource).wake(waiter), std::move(notified), deadline);
}

asio::awaitable<void> RedisServer::close(Instant deadline) {
  subscription_.stop();
  co_await links_.close(deadline);
}

void RedisServer::abort() {
  subscription_.stop();
  links_.abort();
}

asio::awaitable<Result<std::vector<RedisVote::Master>, Fault>> RedisServer::masters(
    Instant /*deadline*/) {
  std::vector<Master> all;
  all.push_back({[this] { return itself(); }, ""});
  co_return all;
}

asio::awaitable<Result<std::shared_ptr<RedisServer>, Fault>> RedisServer::master_of(
    std::string /*key*/, Instant /*deadline*/) {
  co_return itself();
}

std::shared_ptr<RedisServer> RedisServer::itself() {
  return {std::shared_ptr<void>(), this};
}

}  // namespace redlock::redis
