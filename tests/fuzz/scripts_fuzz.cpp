// The lock scripts against keys of wrong types and garbage in the helper keys. The first line of
// the input is what is done, a letter a step; each other line is `KEY TYPE VALUE`: the position of
// a key, then `s` (a string), `h` (field=value), `z` (score=member) or `e` (expires in so many ms).
// In a value `@` stands for our token, `#` for the id of our lease, `^` for that of another
// client's.
#include <algorithm>
#include <variant>

#include "fuzz.hpp"
#include "reply_text.hpp"
#include "store/local/lock_file_format.hpp"
#include "store/local/lua_host.hpp"
#include "store/script_calls.hpp"
#include "store/script_votes.hpp"
#include "support/digest.hpp"

using namespace redlock;
using namespace redlock::fuzz;
using namespace redlock::local;

namespace {

constexpr std::size_t max_steps = 8;
constexpr std::chrono::microseconds start{1'700'000'000'000'000};
constexpr std::string_view shared_marker = "redlock:shared";

const Resource key = *Resource::from("demo");
const Token ours = *Token::from_text("0123456789abcdef0123456789abcdef");
const Token others = *Token::from_text("fedcba9876543210fedcba9876543210");
const Ttl ttl = *Ttl::from(Milliseconds(10'000));
const std::vector<std::string> keys =
    acquire_call({.resource = key, .token = ours, .ttl = ttl, .owner = {}, .wants_runs = true})
        .keys;

std::string value_of(std::string_view text) {
  std::string value;
  for (const char c : text) {
    if (c == '@') {
      value += ours.secret();
    } else if (c == '#') {
      value += sha1_hex(ours.secret());
    } else if (c == '^') {
      value += sha1_hex(others.secret());
    } else {
      value += c == '\x01' ? '\n' : c;
    }
  }
  return value;
}

template <class Type>
Type& place(Keyspace& keyspace, const std::string& name) {
  Entry* entry = keyspace.find(name);
  if (entry == nullptr || !std::holds_alternative<Type>(entry->value))
    entry = &keyspace.put(name, Type());
  return std::get<Type>(entry->value);
}

void put(Keyspace& keyspace, std::string_view line) {
  if (line.size() < 4 || line[0] < '0' || line[0] > '9') return;
  const std::string& name = keys.at(static_cast<std::size_t>(line[0] - '0'));
  const char type = line[2];
  std::string_view rest = line.substr(4);
  if (type == 's') {
    keyspace.put(name, value_of(rest));
  } else if (type == 'h') {
    const std::string field = value_of(take(rest, '='));
    Hash& hash = place<Hash>(keyspace, name);
    std::erase_if(hash, [&](const auto& item) { return item.first == field; });
    hash.emplace_back(field, value_of(rest));
  } else if (type == 'z') {
    const std::string text(take(rest, '='));
    char* end = nullptr;
    const double score = std::strtod(text.c_str(), &end);
    if (score == score) place<SortedSet>(keyspace, name).put(value_of(rest), score);
  } else if (type == 'e') {
    const auto span = whole_number(rest);
    Entry* entry = keyspace.find(name);
    if (span && entry != nullptr && *span < (std::int64_t{1} << 50))
      entry->expires = keyspace.now() + Milliseconds(std::max<std::int64_t>(*span, 0));
  }
}

/// How the lock is held by others, by the keys themselves.
struct Obstacle {
  bool exclusive = false;  ///< by another's token, or by whatever that is
  bool shared = false;
};

Obstacle obstacle_in(Keyspace& keyspace, const Token& token) {
  const Entry* lock = keyspace.find(keys[protocol::key::lock]);
  const auto* text = lock != nullptr ? std::get_if<std::string>(&lock->value) : nullptr;
  if (lock != nullptr && (text == nullptr || (*text != token.secret() && *text != shared_marker)))
    return {true, false};
  const Entry* readers = keyspace.find(keys[protocol::key::readers]);
  const auto* set = readers != nullptr ? std::get_if<SortedSet>(&readers->value) : nullptr;
  const bool living =
      set != nullptr && std::ranges::any_of(set->ranking(), [&](const auto& reader) {
        return reader.first > static_cast<double>(keyspace.now().count());
      });
  return {false, living || (text != nullptr && *text == shared_marker)};
}

ScriptCall call_of(char step, const Token& token) {
  const Fence fence(1'700'000'000'001);
  AcquireRequest acquire{key, token, ttl, Owner()};
  ReleaseRequest release{key, token};
  const QueueEntry entry{"abcdef.1", 1'700'000'000'000, false, Milliseconds(5000)};
  switch (step) {
    case 'S':  // a share
      acquire.mode.shared = true;
      return acquire_call(acquire);
    case 'N':  // slots
      acquire.mode = {.shared = true, .slots = 3, .take = 2};
      return acquire_call(acquire);
    case 'w':
      acquire.entry = entry;
      return acquire_call(acquire);
    case 'u':
      acquire.entry = entry;
      acquire.supersedes = true;
      acquire.replacement = StopRequest{"web1", "alice", "why", Place{entry.ticket, entry.id}};
      acquire.wants_runs = true;
      return acquire_call(acquire);
    case 'f':
      return raise_fence_call({key, token, fence, ttl});
    case 'e':
      return extend_call({key, token, ttl, {}, fence});
    case 'E':
      return extend_call({key, token, ttl, {1}});
    case 'h':
      return heal_call({key, token, ttl, fence, {}, {}});
    case 'H':
      return heal_call({key, token, ttl, fence, {}, {true, {1}}});
    case 'r':
      release.run = RunRecord{{fence}, Instant(), true, Milliseconds(1000)};
      return release_call(release);
    case 'R':
      release.by_hand = true;
      return release_call(release);
    case 'k':
      release.expire_in = Milliseconds(2000);
      release.finished = Owner();
      return release_call(release);
    case 'q':
      release.requeue = Requeue{entry, {}, Owner()};
      return release_call(release);
    case 'b':
      return break_call({key});
    case 'B':
      return break_call({key, fence});
    case 'l':
      return leave_call(key, entry.id);
    case 'i':
      return inspect_call(key, LeaseId{sha1_hex(token.secret())}, RunsTold::kept);
    case 'a':
      return ask_call({key, LeaseId{sha1_hex(token.secret())}, {}, {"web1", "alice", "why"}});
    case 'p':
      return ask_call({key, {}, "0"});
    default:
      return acquire_call(acquire);
  }
}

template <class Vote>
void check_sense(const Vote& vote) {
  const auto* fault = std::get_if<Fault>(&vote);
  check(fault == nullptr || fault->kind != FaultKind::garbage);
}

/// Nothing succeeds on another's exclusive lock that only its holder may do.
template <class Success, class Vote>
void check_ownership(const Vote& vote, Obstacle obstacle) {
  check_sense(vote);
  check(!obstacle.exclusive || !std::holds_alternative<Success>(vote));
}

void check_reply(Keyspace& keyspace, const ScriptCall& call, const Token& token, Obstacle obstacle,
                 bool shares, const Reply& reply) {
  // An error is the script's own, or that of a command on a value that the command cannot use.
  if (reply.type == Reply::Type::error) {
    check(reply.text.find("user_script") == std::string::npos);
    return;
  }
  if (call.script == &scripts::acquire) {
    const AcquireVote vote = acquire_vote(reply);
    check_sense(vote);
    if (!std::holds_alternative<Granted>(vote)) return;
    check(!obstacle.exclusive && (shares || !obstacle.shared));
    const Entry* lock = keyspace.find(keys[protocol::key::lock]);
    const auto* text = lock != nullptr ? std::get_if<std::string>(&lock->value) : nullptr;
    check(text != nullptr && *text == (shares ? std::string(shared_marker) : token.secret()));
    check(lock->expires.has_value());
  } else if (call.script == &scripts::extend) {
    check_ownership<Extended>(extend_vote(reply), obstacle);
  } else if (call.script == &scripts::heal) {
    check_ownership<Healed>(heal_vote(reply), obstacle);
  } else if (call.script == &scripts::release) {
    check_ownership<Released>(release_vote(reply), obstacle);
  } else if (call.script == &scripts::raise_fence) {
    check_ownership<Raised>(raise_vote(reply), obstacle);
  } else if (call.script == &scripts::break_lock) {
    check_sense(break_vote(reply));
  } else if (call.script == &scripts::inspect) {
    check_sense(inspect_vote(reply));
  } else if (call.script == &scripts::ask) {
    check_sense(ask_vote(reply));
  }
}

/// Whatever is there can be written to a lock file and read again.
void check_stored(Keyspace& keyspace) {
  const std::string bytes = format::encode(keyspace.live());
  const auto again = format::decode(bytes);
  check(again && format::encode(*again) == bytes);
}

}  // namespace

/// Lua's garbage, which it collects in its own time, is no leak; the search for some after each
/// input takes longer than all the rest.
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0";
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text = text_of(data, size);
  std::string_view steps = take(text, '\n').substr(0, max_steps);
  Keyspace keyspace([](std::string_view channel, std::string_view) {
    return static_cast<std::int64_t>(channel.size() % 2);
  });
  keyspace.set_time(start);
  while (!text.empty()) put(keyspace, take(text, '\n'));

  static LuaHost host;
  const Token* token = &ours;
  for (const char step : steps) {
    if (step == '\'') {
      token = token == &ours ? &others : &ours;
    } else if (step == '+') {
      keyspace.set_time(keyspace.time() + std::chrono::seconds(3));
    } else {
      const ScriptCall call = call_of(step, *token);
      const Obstacle obstacle = obstacle_in(keyspace, *token);
      const auto* lock = keyspace.find(keys[protocol::key::lock]);
      const std::optional<Value> before =
          lock != nullptr ? std::optional(lock->value) : std::nullopt;
      const Reply reply =
          host.run(keyspace, compiled_scripts, views_of(call.keys), views_of(call.arguments));
      check_reply(keyspace, call, *token, obstacle, step == 'S' || step == 'N', reply);
      // Only a break takes a lock from another client.
      if (obstacle.exclusive && call.script != &scripts::break_lock) {
        lock = keyspace.find(keys[protocol::key::lock]);
        check(lock != nullptr && lock->value.index() == before->index());
        if (const auto* value = std::get_if<std::string>(&*before))
          check(std::get<std::string>(lock->value) == *value);
      }
      check_stored(keyspace);
    }
  }
  return 0;
}
