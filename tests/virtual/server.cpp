#include "server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "store/local/commands.hpp"
#include "store/script.hpp"

namespace redlock::sim {
namespace {

/// A week before the schedule began.
constexpr std::chrono::seconds long_ago{7 * 24 * 3600};

/// How much a server reads from a connection at a time: 16 KiB in Redis 7, up to 20 KiB in Redis 8;
/// others may differ.
constexpr std::int64_t min_read = 4 * 1024;
constexpr std::int64_t max_read = 20 * 1024;

/// Removes one command from the front of `bytes`, if it is complete. Its words lie in them.
std::optional<std::vector<std::string_view>> take_command(std::string_view& bytes) {
  std::string_view rest = bytes;
  const auto number = [&rest]() -> std::optional<std::size_t> {
    const std::size_t end = rest.find("\r\n");
    if (end == std::string_view::npos) return std::nullopt;
    std::size_t value = 0;
    std::from_chars(rest.data() + 1, rest.data() + end, value);
    rest.remove_prefix(end + 2);
    return value;
  };
  const auto words = number();
  if (!words) return std::nullopt;
  std::vector<std::string_view> command;
  command.reserve(*words);
  for (std::size_t i = 0; i < *words; ++i) {
    const auto length = number();
    if (!length || rest.size() < *length + 2) return std::nullopt;
    // The scripts' text is long and is sent on each connection: its digest replaces it here.
    const std::string_view word = rest.substr(0, *length);
    command.push_back(word == scripts::text ? scripts::sha1 : word);
    rest.remove_prefix(*length + 2);
  }
  bytes = rest;
  return command;
}

void append_line(std::string& bytes, char type, std::string_view text) {
  bytes += type;
  bytes.append(text).append("\r\n");
}

void encode_to(std::string& bytes, const Reply& reply) {
  switch (reply.type) {
    case Reply::Type::nil:
      bytes += "$-1\r\n";
      return;
    case Reply::Type::integer:
      append_line(bytes, ':', std::to_string(reply.integer));
      return;
    case Reply::Type::text:
      append_line(bytes, '$', std::to_string(reply.text.size()));
      bytes.append(reply.text).append("\r\n");
      return;
    case Reply::Type::status:
      append_line(bytes, '+', reply.text);
      return;
    case Reply::Type::error:
      append_line(bytes, '-', reply.text);
      return;
    case Reply::Type::array:
      append_line(bytes, '*', std::to_string(reply.elements.size()));
      for (const Reply& element : reply.elements) encode_to(bytes, element);
      return;
  }
}

/// The error with which the writes of scripts are refused.
std::string_view error_in_script(Refusal refusal) {
  switch (refusal) {
    case Refusal::read_only:
      return "READONLY You can't write against a read only replica.";
    case Refusal::misconf:
      return "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to "
             "persist to disk.";
    case Refusal::oom:
      return "OOM command not allowed when used memory > 'maxmemory'.";
    case Refusal::none:
    case Refusal::loading:
    case Refusal::busy:
    case Refusal::no_rights:
      break;
  }
  return {};
}

/// Replaces `redis` for the next script by a table that refuses commands as the server does. ARGV:
/// the error for writes, or ''; 'oom' if only commands that need memory get it; the commands that
/// are refused for lack of a right, or ''.
constexpr std::string_view refuse_in_scripts = R"lua(
local refusal, is_oom, denied, also_denied = ARGV[1], ARGV[2] == 'oom', ARGV[3], ARGV[4]
local write = {SET = 2, HSET = 2, ZADD = 2, DEL = 1, PEXPIRE = 1, HDEL = 1, ZREM = 1,
  ZREMRANGEBYSCORE = 1}
local wrote = false
unrestricted = redis
local real = redis
local function refused(name)
  if name == denied or name == also_denied then
    return "ERR The user executing the script can't run this command or subcommand"
  end
  if refusal ~= '' and write[name] and not is_oom then return refusal end
  if refusal ~= '' and write[name] == 2 and not wrote then return refusal end
  wrote = wrote or write[name]
end
redis = {
  sha1hex = real.sha1hex, error_reply = real.error_reply,
  call = function(name, ...)
    local e = refused(name)
    if e then error({err = e}) end
    return real.call(name, ...)
  end,
  pcall = function(name, ...)
    local e = refused(name)
    if e then return {err = e} end
    return real.pcall(name, ...)
  end
})lua";
constexpr std::string_view refuse_no_more = "redis = unrestricted";

/// The first two of the three elements of a message to a subscriber.
std::string push(std::string_view kind, std::string_view channel) {
  return fmt::format("*3\r\n${}\r\n{}\r\n${}\r\n{}\r\n", kind.size(), kind, channel.size(),
                     channel);
}

}  // namespace

Server::Server(Timeline& timeline, local::LuaHost& lua, std::size_t number, Oscillator clock,
               Milliseconds wall_offset, Random random)
    : timeline_(timeline),
      lua_(lua),
      number_(number),
      vote_(number),
      clock_(clock),
      wall_offset_(wall_offset),
      random_(random),
      keyspace_([this](std::string_view channel,
                       std::string_view message) { return publish(channel, message); },
                [this](std::string_view channel) { return subscribers(channel); }) {
  restart();
  started_ -= long_ago;
}

void Server::join(Peers& peers, std::size_t vote) {
  peers_ = &peers;
  vote_ = vote;
}

Milliseconds Server::wall() const {
  return epoch + wall_offset_ +
         std::chrono::duration_cast<Milliseconds>(clock_.at(timeline_.now()) -
                                                  clock_.at(Duration::zero()));
}

Duration Server::true_time(Milliseconds wall) const {
  return clock_.when(clock_.at(Duration::zero()) + (wall - epoch - wall_offset_));
}

local::Keyspace& Server::keyspace() {
  keyspace_.set_time(wall());
  return keyspace_;
}

void Server::accept(const std::shared_ptr<Wire>& wire) {
  wires_.push_back(wire);
}

void Server::receive(const std::shared_ptr<Wire>& wire, std::string_view bytes) {
  if (!frozen_) {
    serve(*wire, bytes);
    return;
  }
  if (wire->unread.empty()) backlog_.emplace_back([this, wire] { wake_to(wire); });
  wire->unread += bytes;
}

void Server::wake_to(const std::shared_ptr<Wire>& wire) {
  const std::string unread = std::exchange(wire->unread, {});
  std::string_view rest = unread;
  while (!rest.empty()) {
    const auto length =
        std::min(rest.size(), static_cast<std::size_t>(random_.between(min_read, max_read)));
    const bool answered = serve(*wire, rest.substr(0, length));
    rest.remove_prefix(length);
    if (rest.empty() || !answered || wire->has_reader()) continue;
    wire->drop();
    forget(wire);
    if (watcher != nullptr) watcher->saw_end(*this, wire->process(), /*read_all=*/false);
    return;
  }
}

void Server::see_end(const std::shared_ptr<Wire>& wire) {
  if (frozen_) {
    backlog_.emplace_back([this, wire] { see_end(wire); });
    return;
  }
  if (wire->fate_of) {
    const auto last_read = wire->last_read();
    if (!last_read) return;
    if (*last_read > timeline_.now()) {
      timeline_.at(*last_read, [this, wire] { see_end(wire); });
      return;
    }
  }
  wire->finish();
  forget(wire);
  if (watcher != nullptr) watcher->saw_end(*this, wire->process(), /*read_all=*/true);
}

void Server::forget(const std::shared_ptr<Wire>& wire) {
  std::erase(wires_, wire);
}

void Server::crash(bool loses_everything) {
  up_ = false;
  frozen_ = false;
  backlog_.clear();
  knows_scripts_ = false;
  for (const auto& wire : std::exchange(wires_, {})) {
    if (watcher != nullptr) watcher->broke(*this, wire->process());
    wire->cut(/*delivers=*/false);
  }
  if (loses_everything) keyspace_.load({});
}

void Server::restart() {
  up_ = true;
  run_id_ = fmt::format("{:016x}", random_.bits());
  started_ = std::chrono::floor<std::chrono::seconds>(wall());
}

void Server::thaw() {
  frozen_ = false;
  for (const auto& step : std::exchange(backlog_, {})) step();
}

void Server::cut_one(bool delivers) {
  if (wires_.empty()) return;
  const std::shared_ptr<Wire> wire = wires_[random_.below(wires_.size())];
  if (watcher != nullptr) watcher->broke(*this, wire->process());
  wire->cut(delivers);
  forget(wire);
}

void Server::cut_all() {
  for (const auto& wire : std::exchange(wires_, {})) {
    if (watcher != nullptr) watcher->broke(*this, wire->process());
    wire->cut(/*delivers=*/false);
  }
}

bool Server::serve(Wire& wire, std::string_view bytes) {
  // Usually whole, long commands arrive, and nothing is left of earlier ones.
  std::string_view rest = bytes;
  if (!wire.received.empty()) rest = wire.received += bytes;
  std::string replies;
  while (const auto command = take_command(rest)) {
    if (wire.fate_of) {
      answer_by_fate(wire, *command);
    } else {
      replies += answer(wire, *command);
    }
  }
  wire.received = std::string(rest);
  const bool answers = !replies.empty();
  if (answers) wire.reply(std::move(replies));
  return answers;
}

void Server::cut_subscriptions(const Host& host) {
  for (const auto& wire : std::vector(wires_)) {
    if (wire->channel.empty() || &wire->process().host() != &host) continue;
    wire->cut(/*delivers=*/false);
    forget(wire);
  }
}

void Server::forget_subscriptions(const Host& host) {
  for (const auto& wire : wires_) {
    if (&wire->process().host() == &host) wire->channel.clear();
  }
}

void Server::lose_power() {
  for (const auto& wire : std::exchange(wires_, {})) {
    if (watcher != nullptr) watcher->broke(*this, wire->process());
    wire->vanish();
  }
  crash(/*loses_everything=*/false);
  restart();
}

std::optional<Reply> Server::refused(local::Arguments command) const {
  const bool is_script = command[0] == "EVAL" || command[0] == "EVALSHA";
  if (refusal_ == Refusal::busy) {
    return error_reply("BUSY Redis is busy running a script. You can only call SCRIPT KILL.");
  }
  if (refusal_ == Refusal::loading && is_script) {
    return error_reply("LOADING Redis is loading the dataset in memory");
  }
  if (refusal_ == Refusal::no_rights && is_script) {
    return error_reply("NOPERM this user has no permissions to run the 'eval' command");
  }
  return std::nullopt;
}

std::string Server::answer(Wire& wire, local::Arguments command) {
  std::string bytes;
  const auto redirect = peers_ != nullptr ? peers_->redirect(*this, wire, command) : std::nullopt;
  if (redirect) {
    if (watcher != nullptr) watcher->redirected(*this, wire.process(), *redirect);
    encode_to(bytes, *redirect);
  } else if (const auto refusal = refused(command)) {
    if (watcher != nullptr) watcher->broke(*this, wire.process());
    encode_to(bytes, *refusal);
  } else if (command[0] == "SUBSCRIBE" && !wire.process().host().may_subscribe) {
    encode_to(bytes,
              error_reply("NOPERM this user has no permissions to access one of the channels"));
  } else if (command[0] == "SUBSCRIBE") {
    wire.channel = std::string(command[1]);
    bytes = push("subscribe", command[1]);
    encode_to(bytes, integer_reply(1));
  } else {
    encode_to(bytes, run(wire, command));
  }
  return bytes;
}

void Server::answer_by_fate(Wire& wire, local::Arguments command) {
  const bool is_undo = command[0] == "EVAL" && command[1] == scripts::undo;
  const bool is_script = command[0] == "EVAL" || command[0] == "EVALSHA";
  const Fate fate = wire.fate_of(is_undo ? "undo" : is_script ? command.back() : command[0]);
  const auto when = wire.read_at(fate);
  if (!when) return;
  const std::vector<std::string> kept(command.begin(), command.end());
  timeline_.at(*when, [this, wire = wire.shared_from_this(), kept, fate] {
    const auto step = [this, wire, kept, fate] {
      std::string bytes;
      if (fate.answer) {
        encode_to(bytes, *fate.answer);
      } else {
        bytes = answer(*wire, local::views_of(kept));
      }
      if (fate.reply_lost) wire->lose_replies();
      wire->reply(std::move(bytes), fate.reply);
    };
    if (frozen_) {
      backlog_.emplace_back(step);
    } else if (std::ranges::find(wires_, wire) != wires_.end()) {
      step();
    }
  });
}

Reply Server::run(Wire& wire, local::Arguments command) {
  if (command[0] == "EVAL" && command[1] == scripts::undo)
    return run_script(wire, command, scripts::undo, "undo");
  if (command[0] == "EVAL") {
    if (command[1] != scripts::sha1) return error_reply("ERR a script of another version");
    knows_scripts_ = true;
    return run_script(wire, command, scripts::text, command.back());
  }
  if (command[0] == "EVALSHA") {
    if (!knows_scripts_ || command[1] != scripts::sha1)
      return error_reply("NOSCRIPT No matching script. Please use EVAL.");
    return run_script(wire, command, scripts::text, command.back());
  }
  if (command[0] == "INFO") {
    const auto up = std::chrono::floor<std::chrono::seconds>(wall()) - started_;
    return text_reply(
        fmt::format("# Server\r\nrun_id:{}\r\nuptime_in_seconds:{}\r\n", run_id_, up.count()));
  }
  if (command[0] == "SCAN") return scan();
  if (peers_ != nullptr) {
    if (auto reply = peers_->answer(*this, wire, command)) return *std::move(reply);
  }
  return local::execute(keyspace(), command);
}

Reply Server::scan() {
  std::vector<Reply> keys;
  for (const auto& [key, entry] : keyspace().live()) keys.push_back(text_reply(key));
  std::ranges::reverse(keys);  // SCAN promises no order
  return array_reply({text_reply("0"), array_reply(std::move(keys))});
}

Reply Server::run_script(Wire& wire, local::Arguments command, std::string_view text,
                         std::string_view name) {
  std::size_t count = 0;
  std::from_chars(command[2].data(), command[2].data() + command[2].size(), count);
  const Run run{
      *this,           wire.process(), name, command.subspan(3, count), command.subspan(3 + count),
      wire.closed_at()};
  if (watcher != nullptr) watcher->before(run);
  const Refusal refusal = is_replica_ ? Refusal::read_only : refusal_;
  const std::string_view in_script = error_in_script(refusal);
  const bool may_publish = wire.process().host().may_publish;
  const bool refuses = !in_script.empty() || !may_publish || !denied_.empty();
  if (refuses) {
    const std::array<std::string_view, 4> how{in_script, refusal == Refusal::oom ? "oom" : "",
                                              may_publish ? "" : "PUBLISH", denied_};
    lua_.run(keyspace(), refuse_in_scripts, {}, how);
  }
  Reply reply = lua_.run(keyspace(), text, run.keys, run.arguments);
  if (refuses) lua_.run(keyspace(), refuse_no_more, {}, {});
  if (watcher != nullptr) watcher->after(run, reply);
  return reply;
}

std::int64_t Server::publish(std::string_view channel, std::string_view message) {
  if (peers_ != nullptr) peers_->published(*this, channel, message);
  return deliver(channel, message) + (monitored_ ? 1 : 0);
}

std::int64_t Server::subscribers(std::string_view channel) const {
  return std::ranges::count_if(wires_, [&](const auto& wire) { return wire->channel == channel; });
}

std::int64_t Server::deliver(std::string_view channel, std::string_view message) {
  std::int64_t notified = 0;
  for (const auto& wire : wires_) {
    if (wire->channel != channel) continue;
    publish_on(*wire, message);
    ++notified;
  }
  return notified;
}

void Server::publish_to_all(std::string_view message) {
  for (const auto& wire : wires_) {
    if (!wire->channel.empty()) publish_on(*wire, message);
  }
}

void Server::publish_on(Wire& wire, std::string_view message) {
  std::string bytes = push("message", wire.channel);
  encode_to(bytes, text_reply(std::string(message)));
  wire.reply(std::move(bytes), wire.fate_of ? wire.fate_of("message").reply : Duration::zero());
}

}  // namespace redlock::sim
