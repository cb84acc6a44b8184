#pragma once

#include <asio/any_io_executor.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "store/local/directory_clock.hpp"
#include "store/local/lock_directory.hpp"
#include "store/local/lock_file.hpp"
#include "store/local/lua_host.hpp"
#include "store/scripted_server.hpp"
#include "support/clock.hpp"

namespace redlock::local {

/// This host as a server. Each resource has a file, named by the SHA-256 of its key, on which the
/// lock scripts run under flock(2).
///
/// A question opens and locks the file, runs the script, and writes the changes before it answers,
/// without suspending in between, so that no coroutine and no forked child keeps a file locked.
/// While another process has the file locked, the question is retried until the deadline; then the
/// server counts as silent, since a process that is stopped with the file locked must not block all
/// others (E3).
///
/// The time of a lock is the kernel's since boot, plus an offset that its file keeps while it has
/// content (E1). Files outlive their locks, because of the fence counters in them. A reboot empties
/// all files.
class LocalServer final : public ScriptedServer {
 public:
  /// `clock` must outlive the server.
  LocalServer(asio::any_io_executor executor, const Clock& clock, Location location);
  ~LocalServer() override;
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  [[nodiscard]] const std::string& name() const override { return name_; }
  asio::awaitable<Result<LockList, Fault>> list(ListRequest request) override;
  asio::awaitable<std::optional<Fault>> subscribe(Resource resource, std::string waiter,
                                                  std::function<void(Notification)> notified,
                                                  Instant deadline) override;
  void unsubscribe() override;
  /// A reboot empties all files.
  asio::awaitable<std::optional<bool>> persists_nothing(Instant /*deadline*/) override {
    co_return true;
  }
  [[nodiscard]] bool was_reached() const override { return true; }
  asio::awaitable<void> close(Instant deadline) override;

 protected:
  asio::awaitable<ScriptReply> call(ScriptCall call, Instant deadline) override;
  void post(const ScriptCall& call, const NotUndone& not_undone) override;
  /// Does nothing: a question that was not answered in time had no effect here.
  void post_to_late(const ScriptCall&, bool, const NotUndone&) override {}

 private:
  /// The state of an acquire or a heal that may have to be undone.
  enum class AttemptState { under_way, revoked, done };

  /// nullopt while another process has the file locked.
  using Tried = std::optional<ScriptReply>;

  class Subscriber;

  void run_later(ScriptCall call, NotUndone not_undone);
  asio::awaitable<ScriptReply> ask(ScriptCall call, Instant deadline);
  Tried try_now(const ScriptCall& call);
  Reply run_on(Keyspace& keyspace, const ScriptCall& call, std::chrono::microseconds now);
  ScriptReply run_in(const Directory& directory, const LockFile& file, const ScriptCall& call,
                     std::chrono::microseconds new_offset);
  /// nullopt while another process has the file locked.
  std::optional<Result<std::vector<Resource>, Fault>> try_read(const Directory& directory,
                                                               const std::string& file_name,
                                                               Listed listed);
  [[nodiscard]] bool is_revoked(const ScriptCall& call) const;

  asio::any_io_executor executor_;
  const Clock& clock_;
  Location location_;
  std::string name_;
  std::optional<KernelTime> time_;
  LuaHost lua_;
  std::map<std::string, AttemptState> attempts_;  ///< by token
  std::size_t posts_under_way_ = 0;
  std::unique_ptr<Event> posted_;
  std::shared_ptr<Subscriber> subscriber_;
};

}  // namespace redlock::local
