#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/helper_keys.hpp"
#include "real_redis.hpp"
#include "store/local/commands.hpp"
#include "store/local/lua_host.hpp"
#include "store/redis/redis_server.hpp"
#include "store/scripted_server.hpp"

namespace redlock::testing {

using Words = std::vector<std::string>;

/// Where the scripts run, with two clients and whoever else writes to the keys.
class ScriptStore {
 public:
  virtual ~ScriptStore() = default;
  /// May do everything.
  virtual LockServer& client() = 0;
  /// May do what the other may, but for one command.
  virtual LockServer& limited() = 0;
  /// The command that the limited client may not run from now on, in capitals.
  virtual void deny(const std::string& command) = 0;
  /// Any other program's command.
  virtual Reply run(const Words& words) = 0;
  virtual void clear() = 0;
};

/// The engine of `local:`, on a keyspace in memory whose time stands still.
class EmbeddedStore final : public ScriptStore {
 public:
  explicit EmbeddedStore(Drive&) {
    using namespace std::chrono_literals;
    keyspace_.set_time(1'700'000'000s);
  }
  LockServer& client() override { return client_; }
  LockServer& limited() override { return limited_; }
  void deny(const std::string& command) override { limited_.denied = command; }
  Reply run(const Words& words) override {
    return local::execute(keyspace_, local::views_of(words));
  }
  void clear() override { keyspace_.load({}); }

 private:
  class Client final : public ScriptedServer {
   public:
    Client(local::LuaHost& lua, local::Keyspace& keyspace) : lua_(lua), keyspace_(keyspace) {}
    [[nodiscard]] const std::string& name() const override { return name_; }
    [[nodiscard]] bool was_reached() const override { return true; }
    asio::awaitable<Result<LockList, Fault>> list(ListRequest) override { co_return LockList(); }
    asio::awaitable<void> close(Instant) override { co_return; }

    std::string denied;

   protected:
    asio::awaitable<ScriptReply> call(ScriptCall call, Instant) override {
      const std::array<std::string_view, 1> command{denied};
      lua_.run(keyspace_, refuse, {}, command);
      Reply reply = lua_.run(keyspace_, scripts::text, local::views_of(call.keys),
                             local::views_of(call.arguments));
      lua_.run(keyspace_, refuse_no_more, {}, {});
      if (reply.type == Reply::Type::error)
        co_return unexpected(Fault{FaultKind::denied, reply.text});
      co_return reply;
    }
    void post(const ScriptCall&, const NotUndone&) override {}
    void post_to_late(const ScriptCall&, bool, const NotUndone&) override {}

   private:
    static constexpr std::string_view refuse = R"lua(
      local denied = ARGV[1]
      unrestricted = redis
      local real = redis
      local text = "ERR The user executing the script can't run this command or subcommand"
      redis = {
        sha1hex = real.sha1hex, error_reply = real.error_reply,
        call = function(name, ...)
          if name == denied then error({err = text}) end
          return real.call(name, ...)
        end,
        pcall = function(name, ...)
          if name == denied then return {err = text} end
          return real.pcall(name, ...)
        end
      })lua";
    static constexpr std::string_view refuse_no_more = "redis = unrestricted";

    local::LuaHost& lua_;
    local::Keyspace& keyspace_;
    std::string name_ = "embedded";
  };

  local::LuaHost lua_;
  local::Keyspace keyspace_;
  Client client_{lua_, keyspace_};
  Client limited_{lua_, keyspace_};
};

/// A real Redis, with a user of its own for the limited client.
class RedisStore final : public ScriptStore {
 public:
  explicit RedisStore(Drive& drive) : drive_(drive) { deny("FLUSHALL"); }
  LockServer& client() override { return client_; }
  LockServer& limited() override { return limited_; }
  void deny(const std::string& command) override {
    std::string name;
    for (const char letter : command) name += static_cast<char>(letter - 'A' + 'a');
    redis_({"ACL", "SETUSER", "limited", "on", ">pw", "~*", "&*", "+@all", "-" + name});
  }
  Reply run(const Words& words) override { return redis_(words); }
  void clear() override { redis_({"FLUSHALL"}); }

 private:
  redis::Endpoint as_limited() const {
    redis::Endpoint endpoint = redis_.endpoint();
    endpoint.user = "limited";
    endpoint.password = "pw";
    return endpoint;
  }

  Drive& drive_;
  RealRedis redis_{drive_};
  redis::RedisServer client_{drive_.executor(), drive_.clock(), redis_.endpoint()};
  redis::RedisServer limited_{drive_.executor(), drive_.clock(), as_limited()};
};

template <class Vote, class... Votes>
bool answers(const std::variant<Votes...>& vote) {
  return std::holds_alternative<Vote>(vote);
}

struct ScriptStoreKind {
  std::string name;
  std::unique_ptr<ScriptStore> (*make)(Drive& drive);
};

template <class Kind>
std::unique_ptr<ScriptStore> make_script_store(Drive& drive) {
  return std::make_unique<Kind>(drive);
}

inline void PrintTo(const ScriptStoreKind& kind, std::ostream* out) {
  *out << kind.name;
}

inline const std::array<ScriptStoreKind, 2> script_stores{
    {{"Embedded", make_script_store<EmbeddedStore>}, {"Redis", make_script_store<RedisStore>}}};

}  // namespace redlock::testing
