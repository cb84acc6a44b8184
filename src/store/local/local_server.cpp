#include "store/local/local_server.hpp"

#include <algorithm>

#include "core/helper_keys.hpp"
#include "core/protocol.hpp"
#include "store/local/sweep.hpp"
#include "store/local/wake.hpp"
#include "support/boot_clock.hpp"
#include "support/digest.hpp"
#include "support/readable.hpp"
#include "support/spawn.hpp"
#include "support/text.hpp"

namespace redlock::local {
namespace {

/// The pause between two attempts to lock a file. A process keeps it locked for some hundred
/// microseconds; the second number limits the cost of a wait.
constexpr Milliseconds first_pause{1};
constexpr Milliseconds max_pause{8};

/// How long a posted undo may take.
constexpr Milliseconds post_time{1000};

Fault out_of_turn() {
  return {FaultKind::silent, "another process has the lock file locked"};
}

Fault taken_back() {
  return {FaultKind::silent, "cancelled"};
}

Fault no_kernel_time() {
  return {FaultKind::misconfigured,
          "/proc/self/ns cannot be read, and without it a time namespace is not noticed"};
}

Fault fault_of_error(const std::string& text) {
  const std::string words = escape_for_terminal(text.substr(0, text.find(" script: ")));
  if (text.starts_with(protocol::word::fence_error))
    return {FaultKind::misconfigured,
            "the fence counter of this key cannot be used (" + words + ")"};
  if (text.starts_with(protocol::word::named_slots_error))
    return {FaultKind::misconfigured, std::string(named_slots_text)};
  if (text.starts_with(protocol::word::numbered_slots_error))
    return {FaultKind::misconfigured, std::string(numbered_slots_text)};
  if (text.starts_with(protocol::word::unknown_slot_error))
    return {FaultKind::unavailable, std::string(unknown_slot_text)};
  return {FaultKind::garbage, "the lock script failed: " + words};
}

ScriptReply answer(Reply reply) {
  if (reply.type == Reply::Type::error) return unexpected(fault_of_error(reply.text));
  return reply;
}

/// The room that is kept for grants and, within it, for what gives a lock up: the holder must be
/// able to release when many waiters have filled the file.
constexpr std::size_t reserve = std::size_t{32} * 1024;

/// How large the content of a lock file may get by a call with this reply.
std::size_t max_body_after(const ScriptCall& call, const Reply& reply) {
  if (call.script != &scripts::acquire) return format::max_body;
  return format::max_body - (left_no_lease(reply) ? reserve : reserve / 2);
}

/// Whether the content may be replaced: an acquire must leave room if it enlarges it.
Result<void, Fault> check_room(const ScriptCall& call, const Reply& reply,
                               const std::string& before, const std::string& after) {
  const std::size_t max = max_body_after(call, reply);
  if (after.size() <= max || (after.size() <= before.size() && after.size() <= format::max_body))
    return {};
  const std::string limit = std::to_string(max) + " bytes";
  const std::size_t needed = after.size() - std::min(before.size(), after.size());
  if (needed > max) {
    return unexpected(Fault{FaultKind::misconfigured,
                            "a lock file has room for " + limit + ", and this lease needs " +
                                std::to_string(needed) + "; take fewer slots, or use a server"});
  }
  return unexpected(
      Fault{FaultKind::unavailable, "the lock file has no room for more (" + limit + ")"});
}

Milliseconds next_pause(Milliseconds pause) {
  return std::min(2 * pause, max_pause);
}

}  // namespace

/// A subscription and its subscriber.
class LocalServer::Subscriber : public std::enable_shared_from_this<Subscriber> {
 public:
  Subscriber(const asio::any_io_executor& executor, Subscription subscription,
             std::function<void(Notification)> notified)
      : subscription_(std::move(subscription)),
        readable_(executor, subscription_->fd()),
        notified_(std::move(notified)) {}

  asio::awaitable<void> subscribe() {
    const auto self = shared_from_this();
    while (notified_) {
      co_await readable_.wait();
      if (!subscription_) break;
      for (const std::string& message : subscription_->messages()) {
        if (const auto call = notification_from(message); call && notified_) notified_(*call);
      }
    }
  }

  void end() {
    notified_ = nullptr;
    subscription_.reset();  // remove its name now, before the coroutine ends
    readable_.cancel();
  }

 private:
  std::optional<Subscription> subscription_;
  Readable readable_;
  std::function<void(Notification)> notified_;
};

LocalServer::LocalServer(asio::any_io_executor executor, const Clock& clock, Location location)
    : executor_(std::move(executor)),
      clock_(clock),
      location_(std::move(location)),
      name_(location_.name()),
      time_(KernelTime::find(clock)) {}

LocalServer::~LocalServer() {
  unsubscribe();
}

asio::awaitable<ScriptReply> LocalServer::call(ScriptCall call, Instant deadline) {
  const std::string token = undo_target_of(call).token;
  if (token.empty()) co_return co_await ask(std::move(call), deadline);
  attempts_[token] = AttemptState::under_way;
  ScriptReply reply = co_await ask(std::move(call), deadline);
  if (!reply || left_no_lease(*reply)) {
    attempts_.erase(token);
  } else {
    attempts_[token] = AttemptState::done;
  }
  co_return reply;
}

asio::awaitable<ScriptReply> LocalServer::ask(ScriptCall call, Instant deadline) {
  Milliseconds pause = first_pause;
  for (;;) {
    if (is_revoked(call)) co_return unexpected(taken_back());
    Tried reply = try_now(call);
    if (reply) co_return std::move(*reply);
    const Instant now = clock_.now();
    if (now >= deadline) co_return unexpected(out_of_turn());
    co_await sleep_until(clock_, std::min(deadline, now + pause));
    pause = next_pause(pause);
  }
}

bool LocalServer::is_revoked(const ScriptCall& call) const {
  const auto attempt = attempts_.find(undo_target_of(call).token);
  return attempt != attempts_.end() && attempt->second == AttemptState::revoked;
}

LocalServer::Tried LocalServer::try_now(const ScriptCall& call) {
  if (!time_) return unexpected(no_kernel_time());
  const auto directory = open_directory(location_);
  if (!directory) return unexpected(directory.error());
  const std::string file_name = sha256_hex(call.keys.front());
  auto opened = LockFile::try_open(*directory, file_name);
  const auto offset = directory_offset(*directory, *time_);
  if (!offset) return unexpected(offset.error());
  if (std::holds_alternative<LockFile::Missing>(opened)) {
    // A call that only reads must not create a file.
    Keyspace empty;
    Reply reply = run_on(empty, call, *offset + time_->since_boot());
    if (empty.live().empty()) return answer(std::move(reply));
    sweep(*directory, *time_, *offset);
    if (auto made = LockFile::make(*directory, file_name, time_->base(*offset)); !made)
      return unexpected(made.error());
    opened = LockFile::try_open(*directory, file_name);
  }
  if (const auto* fault = std::get_if<Fault>(&opened)) return unexpected(*fault);
  if (const auto* file = std::get_if<LockFile>(&opened))
    return run_in(*directory, *file, call, *offset);
  return std::nullopt;
}

Reply LocalServer::run_on(Keyspace& keyspace, const ScriptCall& call,
                          std::chrono::microseconds now) {
  keyspace.set_time(now);
  return lua_.run(keyspace, compiled_scripts, views_of(call.keys), views_of(call.arguments));
}

ScriptReply LocalServer::run_in(const Directory& directory, const LockFile& file,
                                const ScriptCall& call, std::chrono::microseconds new_offset) {
  const auto found = file.load(*time_);
  if (!found) return unexpected(found.error());
  const auto* stored = std::get_if<format::Stored>(&*found);
  const auto* empty = std::get_if<format::Empty>(&*found);
  auto offset = stored != nullptr ? stored->base.offset : new_offset;
  if (empty != nullptr && empty->saw_reboot) {
    const auto raised = directory_offset(directory, *time_, true);
    if (!raised) return unexpected(raised.error());
    offset = *raised;
  }
  // Publish at once: a subscriber that wakes up while the file is still locked waits for it.
  Keyspace keyspace([&](std::string_view channel,
                        std::string_view message) { return publish(directory, channel, message); },
                    [&](std::string_view channel) { return subscribers(directory, channel); });
  if (stored != nullptr) keyspace.load(stored->entries);
  const std::string before =
      format::encode(stored != nullptr ? stored->entries : Keyspace::Entries());
  Reply reply = run_on(keyspace, call, offset + time_->since_boot());
  const std::string after = format::encode(keyspace.live());
  if (after != before) {
    if (auto room = check_room(call, reply, before, after); !room) return unexpected(room.error());
    if (auto written = file.store(*found, time_->base(offset), after); !written)
      return unexpected(written.error());
    if (!file.is_named(directory))
      return unexpected(Fault{FaultKind::silent, "another process removed the lock file just now"});
  }
  return answer(std::move(reply));
}

void LocalServer::post(const ScriptCall& call, const NotUndone& not_undone) {
  if (call.script == &scripts::leave) return run_later(call, nullptr);
  const auto attempt = attempts_.find(undone_by(call));
  if (attempt == attempts_.end()) return;
  if (attempt->second != AttemptState::done) {
    attempt->second = AttemptState::revoked;
    return;
  }
  attempts_.erase(attempt);
  run_later(call, not_undone);
}

void LocalServer::run_later(ScriptCall call, NotUndone not_undone) {
  ++posts_under_way_;
  spawn(executor_,
        [this, call = std::move(call),
         not_undone = std::move(not_undone)]() -> asio::awaitable<void> {
          const ScriptReply reply = co_await ask(call, clock_.now() + post_time);
          if (!reply && not_undone) not_undone();
          --posts_under_way_;
          if (posted_) posted_->notify();
        });
}

asio::awaitable<std::optional<Fault>> LocalServer::subscribe(
    Resource resource, std::string waiter, std::function<void(Notification)> notified, Instant) {
  unsubscribe();
  if (!time_) co_return no_kernel_time();
  const auto directory = open_directory(location_);
  if (!directory) co_return directory.error();
  if (const auto offset = directory_offset(*directory, *time_)) sweep(*directory, *time_, *offset);
  auto subscription = Subscription::open(*directory, HelperKeys(resource).wake(waiter));
  if (!subscription) co_return subscription.error();
  subscriber_ =
      std::make_shared<Subscriber>(executor_, std::move(*subscription), std::move(notified));
  spawn(executor_, [subscriber = subscriber_] { return subscriber->subscribe(); });
  co_return std::nullopt;
}

void LocalServer::unsubscribe() {
  if (subscriber_) std::exchange(subscriber_, nullptr)->end();
}

asio::awaitable<Result<LockList, Fault>> LocalServer::list(ListRequest request) {
  const Instant deadline = std::min(request.until, clock_.now() + request.answer_timeout);
  if (!time_) co_return unexpected(no_kernel_time());
  const auto directory = open_directory(location_);
  if (!directory) co_return unexpected(directory.error());
  LockList list;
  const auto skip = [&](const std::string& name, const Fault& fault) {
    list.skipped.push_back({fault.kind, name + ": " + fault.text});
  };
  std::vector<std::string> left = lock_files_in(*directory);
  for (Milliseconds pause = first_pause; !left.empty(); pause = next_pause(pause)) {
    std::erase_if(left, [&](const std::string& name) {
      const auto read = try_read(*directory, name, request.listed);
      if (!read) return false;
      if (*read) {
        list.resources.insert(list.resources.end(), (*read)->begin(), (*read)->end());
      } else {
        skip(name, read->error());
      }
      return true;
    });
    if (left.empty() || clock_.now() >= deadline) break;
    co_await sleep_until(clock_, std::min(deadline, clock_.now() + pause));
  }
  for (const std::string& name : left) skip(name, out_of_turn());
  std::sort(list.resources.begin(), list.resources.end());
  co_return list;
}

std::optional<Result<std::vector<Resource>, Fault>> LocalServer::try_read(
    const Directory& directory, const std::string& file_name, Listed listed) {
  std::vector<Resource> resources;
  const auto opened = LockFile::try_open(directory, file_name);
  if (std::holds_alternative<LockFile::Busy>(opened)) return std::nullopt;
  if (const auto* fault = std::get_if<Fault>(&opened)) return unexpected(*fault);
  const auto* file = std::get_if<LockFile>(&opened);
  if (file == nullptr) return resources;
  const auto found = file->load(*time_);
  if (!found) return unexpected(found.error());
  const auto* stored = std::get_if<format::Stored>(&*found);
  if (stored == nullptr) return resources;
  Keyspace keyspace;
  keyspace.load(stored->entries);
  keyspace.set_time(stored->base.offset + time_->since_boot());
  for (const auto& [key, entry] : keyspace.live()) {
    auto resource = HelperKeys::resource_of_owner(key);
    if (!resource && listed == Listed::used) resource = HelperKeys::resource_of_last(key);
    if (resource) resources.push_back(std::move(*resource));
  }
  std::sort(resources.begin(), resources.end());
  resources.erase(std::unique(resources.begin(), resources.end()), resources.end());
  return resources;
}

asio::awaitable<void> LocalServer::close(Instant deadline) {
  unsubscribe();
  if (posts_under_way_ > 0) posted_ = clock_.make_event();
  while (posts_under_way_ > 0 && clock_.now() < deadline) co_await posted_->wait_until(deadline);
}

}  // namespace redlock::local
