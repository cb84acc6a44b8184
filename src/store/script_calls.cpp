#include "store/script_calls.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "core/helper_keys.hpp"
#include "core/protocol.hpp"
#include "store/owner_record.hpp"
#include "store/run_record.hpp"
#include "support/digest.hpp"

namespace redlock {
namespace {

namespace argument = protocol::argument;
namespace word = protocol::word;

using Arguments = std::vector<std::string>;

/// Whether the script reads or writes the last runs. Other scripts omit their key, as a server
/// refuses a script if the user may not access one of its keys.
enum class Runs { none, wanted };

std::vector<std::string> keys_of(const Resource& resource, Runs runs) {
  static_assert(protocol::key::last + 1 == protocol::key::names.size());
  std::vector<std::string> keys;
  keys.reserve(protocol::key::count);
  keys.push_back(resource.key());
  std::ranges::move(HelperKeys(resource).all(), std::back_inserter(keys));
  if (runs == Runs::none) keys.pop_back();
  return keys;
}

std::string decimal(Milliseconds span) {
  return std::to_string(span.count());
}
std::string decimal(Ttl ttl) {
  return decimal(ttl.length());
}
std::string flag(bool value) {
  return value ? "1" : "0";
}

/// An attempt and its undo contain the lock's key, or a key derived from it, up to twenty times.
/// Servers read 16 KiB at a time.
constexpr std::size_t max_key_for_one_read = 512;

std::string letter(bool shared) {
  return std::string(shared ? word::shared : word::alone);
}

std::string list(const std::vector<std::string>& slots) {
  std::string text;
  for (const std::string& slot : slots) text += (text.empty() ? "" : ",") + slot;
  return text;
}

/// `1,4`, or `phone1,phone2`.
std::string list(const Slots& slots, const std::vector<std::string>& names = {}) {
  std::vector<std::string> texts = names;
  for (const std::size_t slot : slots) texts.push_back(std::to_string(slot));
  return list(texts);
}

/// This many empty arguments, with room for the script's name.
Arguments empty_arguments(std::size_t count) {
  Arguments arguments;
  arguments.reserve(count + 1);
  arguments.resize(count);
  return arguments;
}

/// The positions of a waiter's entry in a call's arguments.
struct EntryAt {
  std::size_t waiter;
  std::size_t ticket;
  std::size_t polls;
  std::size_t life;
};

void put_entry(Arguments& arguments, const EntryAt& at, const QueueEntry* entry) {
  if (entry != nullptr) arguments[at.waiter] = entry->id;
  arguments[at.ticket] = std::to_string(entry != nullptr ? entry->ticket : 0);
  arguments[at.polls] = flag(entry != nullptr && entry->polls);
  arguments[at.life] = decimal(entry != nullptr ? entry->life : Milliseconds(0));
}

ScriptCall call_of(const Script& script, const Resource& resource, Arguments arguments,
                   Runs runs = Runs::none) {
  arguments.emplace_back(script.name);
  return {&script, keys_of(resource, runs), std::move(arguments)};
}

}  // namespace

ScriptCall acquire_call(const AcquireRequest& request) {
  namespace at = argument::acquire;
  Arguments arguments = empty_arguments(at::count);
  arguments[at::token] = request.token.secret();
  arguments[at::ttl] = decimal(request.ttl);
  arguments[at::supervised] = flag(request.owner.supervised());
  arguments[at::record] = with_slots(request.owner.text(), request.mode.only);
  arguments[at::mode] = letter(request.mode.shared);
  arguments[at::slots] = std::to_string(request.mode.slots);
  arguments[at::wanted] = list(request.slots);
  arguments[at::take] = std::to_string(request.mode.take);
  put_entry(arguments, {at::waiter, at::ticket, at::polls, at::life},
            request.entry ? &*request.entry : nullptr);
  arguments[at::supersedes] = flag(request.supersedes);
  arguments[at::wants_runs] = flag(request.wants_runs);
  arguments[at::max_waiting] = std::to_string(request.max_waiting.value_or(0));
  if (request.replacement) arguments[at::replacement] = encode_stop_request(*request.replacement);
  const Runs runs = request.wants_runs ? Runs::wanted : Runs::none;
  return call_of(scripts::acquire, request.resource, std::move(arguments), runs);
}

ScriptCall raise_fence_call(const RaiseRequest& request) {
  namespace at = argument::raise_fence;
  Arguments arguments = empty_arguments(at::count);
  arguments[at::token] = request.token.secret();
  arguments[at::fence] = request.fence.text();
  arguments[at::ttl] = decimal(request.ttl);
  return call_of(scripts::raise_fence, request.resource, std::move(arguments));
}

ScriptCall extend_call(const ExtendRequest& request) {
  namespace at = argument::extend;
  Arguments arguments = empty_arguments(at::count);
  arguments[at::token] = request.token.secret();
  arguments[at::ttl] = decimal(request.ttl);
  arguments[at::slots] = list(request.slots, request.slot_names);
  arguments[at::fence] = request.fence.text();
  if (request.user) {
    arguments[at::user] = request.user->id;
    arguments[at::user_record] = request.user->record;
  }
  arguments[at::is_new] = flag(request.is_new);
  return call_of(scripts::extend, request.resource, std::move(arguments));
}

ScriptCall heal_call(const HealRequest& request) {
  namespace at = argument::heal;
  const Provenance& from = request.provenance;
  Arguments arguments = empty_arguments(at::count);
  arguments[at::token] = request.token.secret();
  arguments[at::ttl] = decimal(request.ttl);
  arguments[at::fence] = request.fence.text();
  arguments[at::age] = decimal(std::chrono::duration_cast<Milliseconds>(from.age));
  arguments[at::supervised] = flag(from.supervised);
  arguments[at::record] = from.record;
  arguments[at::mode] = letter(request.hold.shared);
  arguments[at::slots] = list(request.hold.slots, request.hold.slot_names);
  if (request.user) {
    arguments[at::user] = request.user->id;
    arguments[at::user_record] = request.user->record;
  }
  return call_of(scripts::heal, request.resource, std::move(arguments));
}

ScriptCall release_call(const ReleaseRequest& request) {
  namespace at = argument::release;
  const auto& requeue = request.requeue;
  Arguments arguments = empty_arguments(at::count);
  arguments[at::token] = request.token.secret();
  arguments[at::by_hand] = flag(request.by_hand);
  arguments[at::expire_in] = decimal(std::chrono::ceil<Milliseconds>(request.expire_in));
  put_entry(arguments, {at::waiter, at::ticket, at::polls, at::life},
            requeue ? &requeue->entry : nullptr);
  const bool slotted = requeue && requeue->mode.slots > 0;
  arguments[at::mode] =
      slotted ? std::string(word::slotted) : letter(requeue && requeue->mode.shared);
  if (requeue) {
    arguments[at::record] = with_slots(requeue->owner.text(), requeue->mode.only);
  } else if (request.finished) {
    arguments[at::record] = encode_owner(*request.finished);
  }
  if (request.run) arguments[at::run] = encode_run(*request.run);
  arguments[at::user] = request.user;
  arguments[at::may_have_users] = flag(request.by_hand || request.may_have_users);
  if (request.stop_users) arguments[at::request] = encode_stop_request(*request.stop_users);
  arguments[at::tombstone_life] = decimal(std::chrono::ceil<Milliseconds>(request.tombstone_life));
  arguments[at::slots] = list(request.slots, request.slot_names);
  const Runs runs = request.run ? Runs::wanted : Runs::none;
  ScriptCall call = call_of(scripts::release, request.resource, std::move(arguments), runs);
  call.records_success = request.run && request.run->success && !request.run->passed_on &&
                         request.run->remember_for > Duration::zero();
  return call;
}

ScriptCall break_call(const BreakRequest& request) {
  namespace at = argument::break_lock;
  Arguments arguments = empty_arguments(at::count);
  if (request.only_if) arguments[at::fence] = request.only_if->text();
  arguments[at::breaker] = encode_owner(request.breaker);
  if (request.foreign) arguments[at::foreign] = request.foreign->text;
  if (request.hold) arguments[at::hold] = request.hold->text;
  arguments[at::tombstone_life] = decimal(std::chrono::ceil<Milliseconds>(request.tombstone_life));
  arguments[at::slot] = request.slot.value_or("");
  return call_of(scripts::break_lock, request.resource, std::move(arguments));
}

ScriptCall inspect_call(const Resource& resource, const std::optional<LeaseId>& share,
                        const InspectScope& scope) {
  namespace at = argument::inspect;
  Arguments arguments = empty_arguments(at::count);
  if (share) arguments[at::share] = share->text;
  arguments[at::kept] = flag(scope.runs == RunsTold::kept);
  arguments[at::slots] = list(scope.slot_names);
  return call_of(scripts::inspect, resource, std::move(arguments),
                 scope.runs == RunsTold::none ? Runs::none : Runs::wanted);
}

ScriptCall skip_call(const Resource& resource, std::string why) {
  Arguments arguments = empty_arguments(argument::count_skip::count);
  arguments[argument::count_skip::why] = std::move(why);
  return call_of(scripts::count_skip, resource, std::move(arguments), Runs::wanted);
}

ScriptCall ask_call(const AskRequest& request) {
  namespace at = argument::ask;
  Arguments arguments = empty_arguments(at::count);
  if (request.lease) {
    arguments[at::lease] = request.lease->text;
    arguments[at::request] = encode_stop_request(request.request);
  }
  arguments[at::slot] = request.slot.value_or("-1");
  arguments[at::exclusive] = flag(request.exclusive);
  return call_of(scripts::ask, request.resource, std::move(arguments));
}

ScriptCall dismiss_call(const DismissRequest& request) {
  namespace at = argument::dismiss;
  Arguments arguments = empty_arguments(at::count);
  if (request.up_to) {
    arguments[at::ticket] = std::to_string(*request.up_to);
    arguments[at::request] = encode_stop_request(request.request);
  }
  return call_of(scripts::dismiss, request.resource, std::move(arguments));
}

ScriptCall leave_call(const Resource& resource, const std::string& waiter) {
  Arguments arguments = empty_arguments(argument::leave::count);
  arguments[argument::leave::waiter] = waiter;
  return call_of(scripts::leave, resource, std::move(arguments));
}

bool may_lack_keys(const ScriptCall& call) {
  const bool is_whole = call.keys.size() > 1 && call.keys.size() < protocol::partial;
  const std::array able{&scripts::extend,  &scripts::release, &scripts::inspect,
                        &scripts::acquire, &scripts::ask,     &scripts::break_lock};
  return is_whole && std::ranges::find(able, call.script) != able.end();
}

bool may_lack_all_keys(const ScriptCall& call) {
  return call.script == &scripts::extend || call.script == &scripts::release ||
         (call.script == &scripts::ask && call.arguments[argument::ask::exclusive] == "1");
}

ScriptCall with_keys_that_are(const std::vector<bool>& here, ScriptCall call) {
  static_assert(protocol::partial == protocol::key::count + 1);
  const std::string lock = call.keys[protocol::key::lock];
  for (std::size_t i = 0; i < call.keys.size(); ++i) {
    if (!here[i]) call.keys[i] = lock;
  }
  call.keys.resize(protocol::partial, lock);
  return call;
}

std::optional<ScriptCall> rest_of(const ScriptCall& call, const Reply& reply) {
  namespace key = protocol::key;
  const auto resource = Resource::from(call.keys[key::lock]);
  if (!resource || reply.type != Reply::Type::array || reply.elements.empty()) return std::nullopt;
  // The key stands at all positions up to its own.
  const auto with_key = [&](const Script& script, std::size_t position, std::string helper,
                            Arguments arguments) {
    arguments.emplace_back(script.name);
    return ScriptCall{&script, std::vector(position + 1, std::move(helper)), std::move(arguments)};
  };
  const auto sign = [&](std::string lease, bool leaves) {
    return with_key(scripts::end_sign, key::released, HelperKeys(*resource).released(),
                    {std::move(lease), flag(leaves)});
  };
  const auto& part = reply.elements;
  const bool is_share = part.size() > protocol::reply::holder::extra;
  const std::size_t record = is_share ? key::shares : key::owner;
  const bool lacks_record = call.keys.size() <= record || call.keys[record] == call.keys[key::lock];
  if (call.script == &scripts::extend && lacks_record && part[0].text == word::extended &&
      call.arguments[argument::extend::user].empty()) {
    const HelperKeys helpers(*resource);
    return with_key(scripts::keep_record, record, is_share ? helpers.shares() : helpers.owner(),
                    {sha1_hex(call.arguments[argument::extend::token]),
                     call.arguments[argument::extend::ttl], flag(is_share)});
  }
  namespace released = protocol::reply::released;
  if (call.script == &scripts::release && part.size() > released::left &&
      std::cmp_equal(part[released::left].integer, protocol::sign_is_due)) {
    return sign(sha1_hex(call.arguments[argument::release::token]), /*leaves=*/true);
  }
  if (call.script == &scripts::ask && call.keys.size() == 1)
    return sign(call.arguments[argument::ask::lease], /*leaves=*/false);
  return std::nullopt;
}

UndoTarget undo_target_of(const ScriptCall& call) {
  if (call.script == &scripts::acquire) {
    return {call.arguments[argument::acquire::token], call.arguments[argument::acquire::waiter]};
  }
  const bool heals = call.script == &scripts::heal;
  if (!heals && call.script != &scripts::extend) return {};
  const std::string& user = call.arguments[heals ? argument::heal::user : argument::extend::user];
  if (!user.empty()) return {user, {}};
  return {heals ? call.arguments[argument::heal::token] : std::string(), {}};
}

const std::string& undone_by(const ScriptCall& call) {
  if (call.script == &scripts::leave) return call.arguments[argument::leave::waiter];
  const std::string& user = call.arguments[argument::release::user];
  return user.empty() ? call.arguments[argument::release::token] : user;
}

bool fits_into_one_read(const Resource& resource) {
  return resource.key().size() <= max_key_for_one_read;
}

bool fits_into_one_read(const ScriptCall& call) {
  return call.keys[protocol::key::lock].size() <= max_key_for_one_read;
}

bool may_keep_the_key(const ScriptCall& call) {
  namespace at = argument::release;
  return call.script == &scripts::release &&
         (call.arguments.at(at::expire_in) != "0" || call.arguments.at(at::may_have_users) != "0" ||
          !call.arguments.at(at::user).empty() || !call.arguments.at(at::slots).empty());
}

}  // namespace redlock
