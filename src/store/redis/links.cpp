#include "store/redis/links.hpp"

#include <algorithm>
#include <utility>

#include "store/redis/command.hpp"
#include "store/redis/error_reply.hpp"

namespace redlock::redis {
namespace {

/// Our connections to a silent server must not accumulate. The kernel already has what the oldest
/// one had to send.
constexpr std::size_t max_late = 4;

/// How long a connection that only carries an undo may take to open, after the connection that
/// should have carried it broke.
constexpr Milliseconds reconnect_timeout{1000};

}  // namespace

bool Link::may_have_received(const std::string& what) const {
  const auto found = maybe_applied.find(what);
  return found != maybe_applied.end() &&
         (found->second.inherited || !connection->broken() || connection->broke_off());
}

bool Link::failed_to_open() const {
  return connection->broken() && !connection->was_open();
}

void Link::inherit(Link& from) {
  std::erase_if(from.maybe_applied,
                [&](const auto& entry) { return !from.may_have_received(entry.first); });
  for (auto& [what, sent] : from.maybe_applied) sent.inherited = true;
  carried_undoable = carried_undoable || from.carried_undoable;
  maybe_applied.merge(from.maybe_applied);
}

void UndoableCall::note_sent() {
  link_.carried_undoable =
      link_.carried_undoable || !target_.token.empty() || !target_.waiter.empty();
  if (!target_.token.empty()) link_.maybe_applied[target_.token] = Sent{};
  if (!target_.waiter.empty()) link_.maybe_applied[target_.waiter] = Sent{/*answered=*/true};
}

std::shared_ptr<Link> Links::usable_link(Instant deadline) {
  if (current_ && current_->connection->was_denied() && connector_.password_may_change())
    current_->connection->retire();
  retire_unusable();
  reached_ = was_reached();
  if (!current_) {
    reconnected_ = reached_;
    current_ = connect(deadline);
  }
  std::erase_if(late_, [this](const auto& link) {
    if (link->connection->broken()) current_->inherit(*link);
    return link->connection->broken();
  });
  if (late_.size() > max_late) {
    current_->inherit(*late_.front());
    late_.front()->connection->abort();
    late_.pop_front();
  }
  return current_;
}

bool Links::has_to_undo(const std::string& what) const {
  const auto has_it = [&](const auto& link) { return link && link->maybe_applied.contains(what); };
  return what.empty() || has_it(current_) || std::ranges::any_of(late_, has_it);
}

bool Links::carried_undoable() const {
  const auto carried = [](const auto& link) { return link && link->carried_undoable; };
  return carried(current_) || std::ranges::any_of(late_, carried);
}

bool Links::retire_outdated(const Link& link) const {
  if (!link.connection->was_denied() || link.password == connector_.password()) return false;
  link.connection->retire();
  return !link.connection->acted_without_login();
}

void Links::retire_unusable() {
  if (current_ && !current_->connection->usable())
    late_.push_back(std::exchange(current_, nullptr));
}

std::shared_ptr<Link> Links::connect(Instant deadline) const {
  auto link = std::make_shared<Link>();
  std::optional<Command> greeting;
  if (connector_.options().identifies_itself) greeting = Command{"INFO", "server"};
  link->password = connector_.password();
  link->connection = connector_.open(deadline, greeting, link->password);
  link->connection->on_disconnect(disconnected_);
  return link;
}

void Links::post(const ScriptCall& call, const NotUndone& not_undone) {
  retire_unusable();
  const auto has_lost = [&](const auto& link) {
    return link->connection->broken() && link->may_have_received(undone_by(call));
  };
  // The server may still act on what it received, so send the undo over another connection.
  if (std::any_of(late_.begin(), late_.end(), has_lost)) {
    usable_link(connector_.clock().now() + reconnect_timeout);
  }
  if (current_) post_on(*current_, call, not_undone);
}

void Links::post_to_late(const ScriptCall& call, bool only_unanswered,
                         const NotUndone& not_undone) {
  retire_unusable();
  for (const auto& link : late_) {
    const auto sent = link->maybe_applied.find(undone_by(call));
    if (sent == link->maybe_applied.end() || (only_unanswered && sent->second.answered)) continue;
    if (!link->connection->broken()) post_on(*link, call, not_undone);
  }
}

void Links::post_on(Link& link, const ScriptCall& call, const NotUndone& not_undone) const {
  // Only undo what this connection carried: a silent server must not get one more copy with every
  // attempt.
  const auto sent = link.maybe_applied.extract(undone_by(call));
  if (sent.empty()) return;
  if (call.script != &scripts::release) return link.connection->post(script_command(call));

  // After other undos, this one may begin in one read of the server and end in the next.
  const bool fits = fits_into_one_read(call) && *link.unread_undos == 0;
  ++*link.unread_undos;
  const auto judge = [not_undone, unread_undos = link.unread_undos, what = sent.mapped(), fits,
                      connection =
                          std::weak_ptr(link.connection)](const Result<Reply, Fault>& reply) {
    --*unread_undos;
    if (!not_undone || (reply && reply->type != Reply::Type::error)) return;
    // The server has received the request and the undo in this order, and reads small ones in one
    // go, so a missing answer is no failure. A connection that never opened carried neither.
    const auto ended = connection.lock();
    const bool cut_off = ended && ended->broke_off() && (!fits || !ended->aborted());
    if (reply || what.answered || what.inherited || cut_off) not_undone();
  };
  // While a slot moves, the server refuses a script if it has only some of the keys (PROTOCOL D1).
  // An undo with only the lock's key leaves a share in place, so its success proves nothing.
  const bool alone = connector_.options().slots_move;
  // The server may have forgotten the scripts meanwhile (SCRIPT FLUSH). The undo deletes the key at
  // once, so it must not follow a release that keeps the key, or leaves it to users (U3).
  const bool is_followed = !may_keep_the_key(call);
  const auto forgotten = std::make_shared<bool>(false);
  link.connection->post(script_command(call), [judge, forgotten, counts = is_followed && !alone](
                                                  const Result<Reply, Fault>& reply) {
    *forgotten = counts && reply && reply->type == Reply::Type::error && is_noscript(reply->text);
    if (!*forgotten) judge(reply);
  });
  if (!is_followed) return;
  const auto judge_undo = [judge, forgotten](const Result<Reply, Fault>& reply) {
    if (*forgotten) judge(reply);
  };
  link.connection->post(undo_command(call, alone), judge_undo);
}

bool Links::was_reached() const {
  const auto was_open = [](const auto& link) { return link && link->connection->was_open(); };
  return reached_ || was_open(current_) || std::ranges::any_of(late_, was_open);
}

asio::awaitable<void> Links::close(Instant deadline) {
  disconnected_ = nullptr;
  if (current_) {
    current_->connection->on_disconnect(nullptr);
    late_.push_back(std::exchange(current_, nullptr));
  }
  while (!late_.empty()) {
    const std::shared_ptr<Link> link = std::move(late_.front());
    late_.pop_front();
    const Instant end = link->waits ? std::max(deadline, link->waits_until) : deadline;
    co_await link->connection->close(end, /*answered=*/link->waits);
  }
}

void Links::abort() {
  if (current_) late_.push_back(std::exchange(current_, nullptr));
  for (const auto& link : std::exchange(late_, {})) link->connection->abort();
}

}  // namespace redlock::redis
