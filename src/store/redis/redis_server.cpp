#include "store/redis/redis_server.hpp"

#include <algorithm>
#include <ratio>

#include "core/helper_keys.hpp"
#include "store/redis/error_reply.hpp"
#include "store/redis/login.hpp"
#include "store/redis/rights.hpp"
#include "store/redis/sentinel.hpp"
#include "store/redis/server_info.hpp"
#include "support/number.hpp"

namespace redlock::redis {
namespace {

/// A server that stays silent must not collect connections of ours without end; what the oldest had to deliver lies with the kernel by
/// then.
constexpr std::size_t most_late_connections = 4;

/// How long a connection that only takes something back may take to open, when the one that should have carried it broke.
constexpr Milliseconds reconnect_time{1000};

/// Kept to a length that cannot overflow, whatever the server says.
constexpr std::int64_t longest_uptime = std::int64_t{100} * 365 * 24 * 3600;

/// Where a call has the key of the readers: see prelude.lua.
constexpr std::size_t readers_key = 4;

/// SCAN promises no exact number of keys a page; these are generous and still bounded.
constexpr ReplyLimits scan_limits{4, 16 * 1024, 64 * 1024, 16 * 1024 * 1024};
constexpr std::string_view scan_page = "512";

/// Memory for what a listing finds: some hundred thousand locks. A cursor that never ends must not
/// take all there is.
constexpr std::size_t most_listed = 32 * 1024 * 1024;

Command script_command(const ScriptCall& call) {
  Command command{"EVALSHA", std::string(scripts::sha1), std::to_string(call.keys.size())};
  command.insert(command.end(), call.keys.begin(), call.keys.end());
  command.insert(command.end(), call.arguments.begin(), call.arguments.end());
  return command;
}

/// Has the server learn the text, and nothing else. With the lock's key, so that whoever stands between us and
/// the servers leads it to the same one; by EVAL, which takes no more rights than EVALSHA.
Command teaching_command(const ScriptCall& call) {
  return {"EVAL", std::string(scripts::text), "1", call.keys.front(), std::string(scripts::none)};
}

/// What a server said when the connection opened, at this time.
ServerFacts facts_from(const std::optional<Connection::Greeting>& greeting, Instant now) {
  ServerFacts facts;
  if (!greeting || greeting->reply.type != Reply::Type::text) return facts;  // not asked, or no right to ask
  const ServerInfo info(greeting->reply.text);
  facts.run_id = info.field("run_id").value_or("");
  if (const auto up = info.number("uptime_in_seconds"))
    facts.up = std::chrono::seconds(std::clamp(*up, -longest_uptime, longest_uptime)) + (now - greeting->at);
  return facts;
}

bool is_noscript_reply(const Reply& reply) {
  return reply.type == Reply::Type::error && is_noscript(reply.text);
}

bool is_read_only_reply(const Reply& reply) {
  return reply.type == Reply::Type::error && is_read_only(reply.text);
}

/// Whether the call changed what replicas must have before it counts.
bool needs_replicas(const ScriptCall& call, const Reply& reply) {
  if (reply.type != Reply::Type::array || reply.elements.empty()) return false;
  const std::string& word = reply.elements[0].text;
  return (call.script == &scripts::acquire && word == "granted") || (call.script == &scripts::extend && word == "extended");
}

/// What CONFIG GET found; nothing when there is no such parameter, or no right to ask.
std::optional<std::string> configured(const Reply& reply) {
  if (reply.type != Reply::Type::array || reply.elements.size() != 2) return std::nullopt;
  return reply.elements[1].text;
}

/// What TIME tells: seconds and microseconds.
std::optional<Duration> time_from(const Reply& reply) {
  if (reply.type != Reply::Type::array || reply.elements.size() != 2) return std::nullopt;
  const auto seconds = whole_number(reply.elements[0].text);
  const auto microseconds = whole_number(reply.elements[1].text);
  if (!seconds || *seconds < 0 || *seconds > 2 * longest_uptime) return std::nullopt;
  if (!microseconds || *microseconds < 0 || *microseconds >= std::micro::den) return std::nullopt;
  return std::chrono::seconds(*seconds) + std::chrono::microseconds(*microseconds);
}

bool is_page(const Reply& reply) {
  return reply.type == Reply::Type::array && reply.elements.size() == 2 && reply.elements[0].type == Reply::Type::text &&
         reply.elements[1].type == Reply::Type::array;
}

}  // namespace

RedisServer::RedisServer(asio::any_io_executor executor, const Clock& clock, Endpoint endpoint, RedisServerOptions options)
    : executor_(std::move(executor)), clock_(clock), endpoint_(std::move(endpoint)), options_(std::move(options)), name_(endpoint_.name()) {
  if (endpoint_.kind == Endpoint::Kind::sentinel) sentinels_ = std::make_shared<Sentinels>(executor_, clock_, endpoint_, options_.tls);
}

asio::awaitable<ScriptReply> RedisServer::call(ScriptCall call, Instant deadline) {
  auto reply = co_await ask(std::move(call), /*asking=*/false, deadline);
  if (!reply) co_return unexpected(reply.error());
  if (reply->type == Reply::Type::error) co_return unexpected(fault_of_error(reply->text));
  co_return std::move(*reply);
}

asio::awaitable<Result<Reply, Fault>> RedisServer::ask(ScriptCall call, bool asking, Instant deadline) {
  const bool was_connected = current_ && current_->connection->usable();
  auto reply = co_await ask_once(call, asking, deadline);
  // Who was a master when we connected may be one no more; then nothing was done, and another may be the master by now.
  if (was_connected && reply && is_read_only_reply(*reply)) reply = co_await ask_once(call, asking, deadline);
  co_return reply;
}

asio::awaitable<Result<Reply, Fault>> RedisServer::ask(Command command, ReplyLimits limits, Instant deadline) {
  const std::shared_ptr<Connection> connection = usable_link(deadline)->connection;
  co_return co_await connection->request(std::move(command), limits, deadline);
}

asio::awaitable<Result<Reply, Fault>> RedisServer::run_script(std::shared_ptr<Link> link, const ScriptCall& call, bool asking,
                                                              Instant deadline) {
  Connection& connection = *link->connection;
  const Leavings leavings = leavings_of(call);
  const auto was_undone = [&](const std::string& what) { return !what.empty() && !link->left.contains(what); };
  const Command asking_command{"ASKING"};  // for one command

  if (asking) connection.post(asking_command);
  auto reply = co_await connection.request(script_command(call), ReplyLimits{}, deadline);
  if (!reply || !is_noscript_reply(*reply)) co_return reply;

  if (asking) connection.post(asking_command);
  auto taught = co_await connection.request(teaching_command(call), ReplyLimits{}, deadline);
  if (!taught || taught->type == Reply::Type::error) co_return taught;
  // What was undone or released meanwhile must not arrive behind the compare-and-delete.
  if (was_undone(leavings.token) || was_undone(leavings.waiter)) {
    co_return unexpected(Fault{FaultKind::silent, "taken back before it was done"});
  }
  if (asking) connection.post(asking_command);
  co_return co_await connection.request(script_command(call), ReplyLimits{}, deadline);
}

asio::awaitable<Result<Reply, Fault>> RedisServer::ask_once(ScriptCall call, bool asking, Instant deadline) {
  const std::shared_ptr<Link> link = usable_link(deadline);
  Connection& connection = *link->connection;
  const Leavings leavings = leavings_of(call);
  if (!leavings.token.empty()) link->left[leavings.token] = Carried{};
  if (!leavings.waiter.empty()) link->left[leavings.waiter] = Carried{/*answered=*/true};
  if (call.script == &scripts::release) link->left.erase(taken_back_by(call));
  auto reply = co_await run_script(link, call, asking, deadline);
  if (!reply) co_return unexpected(reply.error());
  if (reply->type == Reply::Type::error) {
    if (is_read_only_reply(*reply)) {
      connection.retire();
      go_deaf();
    }
    // Nothing was done here, so there is nothing to take back: what is done elsewhere is taken back there.
    const bool leads_on = is_read_only_reply(*reply) || is_redirect(reply->text);
    if (leads_on && !leavings.token.empty() && link->left.erase(leavings.token) == 0) {
      co_return unexpected(Fault{FaultKind::silent, "taken back before it was done"});
    }
    if (fault_of_error(reply->text).refused) link->left.erase(leavings.token);
    co_return std::move(*reply);
  }
  if (left_no_lease(*reply)) {
    link->left.erase(leavings.token);  // a waiter asks for hours
  } else if (!leavings.token.empty()) {
    link->left[leavings.token] = Carried{/*answered=*/true};
    // A grant counts only from a server whose uptime is known (R7). One that was busy for a moment tells it now.
    if (connection.greeting_was_refused()) {
      if (auto fault = co_await connection.greet_again(deadline)) {
        fault->refused = false;  // the script was not
        co_return unexpected(std::move(*fault));
      }
    }
  }
  facts_ = facts_from(connection.greeting(), clock_.now());
  if (options_.replicas > 0 && needs_replicas(call, *reply)) {
    if (auto fault = co_await missing_replicas(link, deadline)) co_return unexpected(std::move(*fault));
  }
  co_return std::move(*reply);
}

asio::awaitable<std::optional<Fault>> RedisServer::missing_replicas(std::shared_ptr<Link> link, Instant deadline) {
  const Duration left = deadline - clock_.now();
  // The rest is for its answer to come back: that too few confirmed is another matter than silence. 0 would wait for ever.
  const auto timeout = std::max(Milliseconds(1), std::chrono::duration_cast<Milliseconds>(left / 4 * 3));
  Command wait{"WAIT", std::to_string(options_.replicas), std::to_string(timeout.count())};
  link->waits = true;
  link->waits_until = deadline;
  const auto reply = co_await link->connection->request(std::move(wait), ReplyLimits{}, deadline);
  if (!reply) co_return reply.error();
  link->waits = false;
  if (reply->type == Reply::Type::error) co_return fault_of_error(reply->text);
  if (reply->type != Reply::Type::integer) co_return Fault{FaultKind::garbage, "an answer that no WAIT gives"};
  if (reply->integer >= static_cast<std::int64_t>(options_.replicas)) co_return std::nullopt;
  const std::string confirmed = std::to_string(std::max<std::int64_t>(reply->integer, 0));
  co_return Fault{FaultKind::unavailable, "only " + confirmed + " of the " + std::to_string(options_.replicas) +
                                              " replicas that --replicas wants have confirmed it in time"};
}

void RedisServer::post(ScriptCall call, NotUndone not_undone) {
  retire_unusable();
  const auto has_lost = [&](const auto& link) { return link->connection->broken() && link->carried(taken_back_by(call)); };
  // The server may still act on what it received; another connection is better than none.
  if (std::any_of(late_.begin(), late_.end(), has_lost)) usable_link(clock_.now() + reconnect_time);
  if (current_) post_on(*current_, call, not_undone);
}

void RedisServer::post_to_late(ScriptCall call, bool only_unanswered, NotUndone not_undone) {
  retire_unusable();
  for (const auto& link : late_) {
    const auto carried = link->left.find(taken_back_by(call));
    if (carried == link->left.end() || (only_unanswered && carried->second.answered)) continue;
    if (!link->connection->broken()) post_on(*link, call, not_undone);
  }
}

void RedisServer::post_on(Link& link, const ScriptCall& call, const NotUndone& not_undone) {
  // Only where it can matter: a server that stays silent must not be sent one more copy with every attempt.
  const auto carried = link.left.extract(taken_back_by(call));
  if (carried.empty()) return;
  if (call.script != &scripts::release) return link.connection->post(script_command(call));

  // Behind others it may begin in one read and end in the next.
  const bool fits = fits_into_one_read(call) && *link.unread_undos == 0;
  ++*link.unread_undos;
  const auto judge = [not_undone, unread_undos = link.unread_undos, what = carried.mapped(), fits, connection = std::weak_ptr(link.connection)](const Result<Reply, Fault>& reply) {
    --*unread_undos;
    if (!not_undone || (reply && reply->type != Reply::Type::error)) return;
    // Unanswered, both lie with the server in this order, and it reads them at once if they are small. What never opened carried nothing
    // of its own.
    const auto ended = connection.lock();
    const bool cut_off = ended && ended->broke_off() && (!fits || !ended->aborted());
    if (reply || what.answered || what.inherited || cut_off) not_undone();
  };
  const auto forgotten = std::make_shared<bool>(false);
  link.connection->post(script_command(call), [judge, forgotten](const Result<Reply, Fault>& reply) {
    *forgotten = reply && is_noscript_reply(*reply);
    if (!*forgotten) judge(reply);
  });

  // For a server that forgot the scripts in between (SCRIPT FLUSH). It knows no minimum hold.
  if (keeps_the_key(call)) return;
  const bool alone = options_.slots_move;  // a slot that is on its way refuses a script for keys of which only some are left (PROTOCOL D1)
  Command undo{"EVAL", std::string(scripts::undo), alone ? "1" : "2", call.keys.front()};
  if (!alone) undo.push_back(call.keys[readers_key]);
  undo.push_back(taken_back_by(call));
  link.connection->post(undo, [judge, forgotten](const Result<Reply, Fault>& reply) {
    if (*forgotten) judge(reply);
  });
}

asio::awaitable<Result<LockList, Fault>> RedisServer::list(Instant deadline) {
  const std::shared_ptr<Connection> connection = usable_link(deadline)->connection;
  std::vector<Resource> resources;
  std::string cursor = "0";
  std::size_t listed = 0;
  do {
    Command scan{"SCAN", cursor, "MATCH", std::string(HelperKeys::every_owner), "COUNT", std::string(scan_page)};
    auto reply = co_await connection->request(std::move(scan), scan_limits, deadline);
    if (!reply) co_return unexpected(reply.error());
    if (reply->type == Reply::Type::error) co_return unexpected(fault_of_error(reply->text));
    if (!is_page(*reply)) co_return unexpected(Fault{FaultKind::garbage, "an answer that no SCAN gives"});
    for (const Reply& key : reply->elements[1].elements) {
      auto resource = HelperKeys::resource_of_owner(key.text);
      if (!resource) continue;
      listed += sizeof(Resource) + resource->key().size();
      resources.push_back(std::move(*resource));
    }
    if (listed > most_listed) {
      connection->abort();
      co_return unexpected(Fault{FaultKind::garbage, "it lists more locks than any server has"});
    }
    cursor = reply->elements[0].text;
  } while (cursor != "0");
  // SCAN may show a key more than once.
  std::sort(resources.begin(), resources.end());
  resources.erase(std::unique(resources.begin(), resources.end()), resources.end());
  co_return LockList{std::move(resources), {}};
}

asio::awaitable<Result<ServerReport, Fault>> RedisServer::examine(Instant deadline) {
  const std::shared_ptr<Connection> connection = usable_link(deadline)->connection;
  // The first question opens the connection; the second shows how long an answer takes.
  Command info_command{"INFO"};
  const auto info = co_await connection->request(std::move(info_command), ReplyLimits{}, deadline);
  if (!info) co_return unexpected(info.error());
  const Milliseconds asked_at = clock_.wall();
  const Instant asked = clock_.now();
  Command time_command{"TIME"};
  const auto time = co_await connection->request(std::move(time_command), ReplyLimits{}, deadline);
  if (!time) co_return unexpected(time.error());
  const Duration latency = clock_.now() - asked;
  Command fsync_command{"CONFIG", "GET", "appendfsync"};
  const auto fsync = co_await connection->request(std::move(fsync_command), ReplyLimits{}, deadline);
  if (!fsync) co_return unexpected(fsync.error());
  Command save_command{"CONFIG", "GET", "save"};
  const auto save = co_await connection->request(std::move(save_command), ReplyLimits{}, deadline);
  if (!save) co_return unexpected(save.error());
  // A server that knows our scripts already runs them without this right, until it is restarted.
  Command eval_command{"EVAL", "return 1", "0"};
  const auto eval = co_await connection->request(std::move(eval_command), ReplyLimits{}, deadline);
  if (!eval) co_return unexpected(eval.error());

  ServerReport report;
  if (info->type == Reply::Type::text) {
    report = report_from(info->text);
    report.facts = facts_from(Connection::Greeting{*info, asked}, clock_.now());
  }
  report.latency = latency;
  if (const auto server_time = time_from(*time)) report.clock_offset = *server_time - asked_at - latency / 2;
  report.append_fsync = configured(*fsync).value_or("");
  report.save = configured(*save);
  if (eval->type == Reply::Type::error) report.refuses_scripts = fault_of_error(eval->text);
  report.fails_over = sentinels_ != nullptr;
  co_return report;
}

asio::awaitable<std::vector<std::string>> RedisServer::missing_rights(Resource unused_key, Instant deadline) {
  const std::shared_ptr<Connection> connection = usable_link(deadline)->connection;
  std::vector<std::string> missing;
  for (Command& trial : right_trials(unused_key.key())) {
    const std::string name = trial.front();
    const auto reply = co_await connection->request(std::move(trial), ReplyLimits{}, deadline);
    if (!reply) break;
    if (!is_command_denied(*reply, name)) continue;
    missing.push_back(name);
    if (name == "set") break;  // without the string under the key the others would leave something behind
  }
  co_return missing;
}

asio::awaitable<std::optional<Fault>> RedisServer::erase(Resource resource, Instant deadline) {
  const std::shared_ptr<Connection> connection = usable_link(deadline)->connection;
  std::vector<std::string> keys = HelperKeys(resource).all();
  keys.push_back(resource.key());
  Command del{"DEL"};
  del.insert(del.end(), keys.begin(), keys.end());
  const auto reply = co_await connection->request(std::move(del), ReplyLimits{}, deadline);
  if (!reply) co_return reply.error();
  if (reply->type != Reply::Type::error) co_return std::nullopt;
  for (const std::string& key : keys) {
    Command end{"PEXPIRE", key, "1"};  // nearly as good, where it is allowed
    connection->post(end);
  }
  co_return fault_of_error(reply->text);
}

asio::awaitable<std::optional<Fault>> RedisServer::listen(Resource resource, std::string waiter, std::function<void(Call)> heard,
                                                          Instant deadline) {
  stop_listening();
  const auto connection = open_connection(deadline, std::nullopt);
  ear_ = connection;
  const std::string channel = HelperKeys(resource).wake(waiter);
  connection->on_message([heard = std::move(heard), channel](const Reply* message) {
    if (message == nullptr) return heard(Call::deaf);
    if (message->elements.size() != 3 || message->elements[0].text != "message" || message->elements[1].text != channel) return;
    if (const auto call = call_from(message->elements[2].text)) heard(*call);
  });
  Command subscribe{"SUBSCRIBE", channel};
  const auto reply = co_await connection->request(std::move(subscribe), ReplyLimits{}, deadline);
  std::optional<Fault> fault;
  if (!reply) {
    fault = reply.error();
  } else if (reply->type == Reply::Type::error) {
    fault = fault_of_error(reply->text);
  } else if (reply->type != Reply::Type::array) {
    fault = Fault{FaultKind::garbage, "an answer that no SUBSCRIBE gives"};
  } else if (ear_ != connection || !connection->usable()) {
    fault = Fault{FaultKind::silent, "the connection ended at once"};
  }
  if (fault && ear_ == connection) stop_listening();
  co_return fault;
}

void RedisServer::go_deaf() {
  if (ear_) std::exchange(ear_, nullptr)->abort();
}

void RedisServer::stop_listening() {
  if (!ear_) return;
  ear_->on_message(nullptr);
  std::exchange(ear_, nullptr)->abort();
}

asio::awaitable<void> RedisServer::close(Instant deadline) {
  stop_listening();
  if (current_) late_.push_back(std::exchange(current_, nullptr));
  while (!late_.empty()) {
    const std::shared_ptr<Link> link = std::move(late_.front());
    late_.pop_front();
    const Instant end = link->waits ? std::max(deadline, link->waits_until) : deadline;
    co_await link->connection->close(end, /*answered=*/link->waits);
  }
}

bool RedisServer::Link::carried(const std::string& what) const {
  const auto found = left.find(what);
  return found != left.end() && (found->second.inherited || !connection->broken() || connection->broke_off());
}

void RedisServer::Link::inherit(Link& from) {
  std::erase_if(from.left, [&](const auto& entry) { return !from.carried(entry.first); });
  for (auto& [what, carried] : from.left) carried.inherited = true;
  left.merge(from.left);
}

std::shared_ptr<RedisServer::Link> RedisServer::usable_link(Instant deadline) {
  retire_unusable();
  if (!current_) current_ = connect(deadline);
  std::erase_if(late_, [this](const auto& link) {
    if (link->connection->broken()) current_->inherit(*link);
    return link->connection->broken();
  });
  if (late_.size() > most_late_connections) {
    current_->inherit(*late_.front());
    late_.front()->connection->abort();
    late_.pop_front();
  }
  return current_;
}

void RedisServer::retire_unusable() {
  if (current_ && !current_->connection->usable()) late_.push_back(std::exchange(current_, nullptr));
}

std::shared_ptr<RedisServer::Link> RedisServer::connect(Instant deadline) {
  auto link = std::make_shared<Link>();
  std::optional<Command> greeting;
  if (options_.introduces_itself) greeting = Command{"INFO", "server"};
  link->connection = open_connection(deadline, greeting);
  return link;
}

std::shared_ptr<Connection> RedisServer::open_connection(Instant deadline, const std::optional<Command>& greeting) {
  auto transport = sentinels_ ? make_sentinel_transport(executor_, clock_, sentinels_, options_.tls)
                              : make_transport(executor_, clock_, endpoint_, options_.tls);
  auto connection = std::make_shared<Connection>(executor_, clock_, std::move(transport), login_commands(endpoint_), greeting,
                                                 /*demands_master=*/sentinels_ != nullptr);
  if (endpoint_.password_is_general && options_.needless_password) {
    connection->allow_needless_password([told = options_.needless_password, name = name()] { told(name); });
  }
  connection->start(deadline);
  return connection;
}

}  // namespace redlock::redis
