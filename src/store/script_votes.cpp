#include "store/script_votes.hpp"

#include <algorithm>

#include "core/helper_keys.hpp"
#include "store/owner_record.hpp"
#include "support/number.hpp"
#include "support/text.hpp"

namespace redlock {
namespace {

using Type = Reply::Type;

std::vector<std::string> keys_of(const Resource& resource) {
  std::vector<std::string> keys = HelperKeys(resource).all();
  keys.insert(keys.begin(), resource.key());
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

/// The lock's key, or one made of it, is in an attempt and its undo twenty times; servers read 16 KiB at a time.
constexpr std::size_t longest_key_for_one_read = 512;

/// Where an acquire has the waiter's id.
constexpr std::size_t acquire_waiter = 7;

std::string letter(bool shared) {
  return shared ? "s" : "x";
}

/// -1 stands for none.
std::string number(const std::optional<std::size_t>& seat) {
  return seat ? std::to_string(*seat) : "-1";
}

/// Id, ticket, polls, life.
void append_entry(std::vector<std::string>& arguments, const std::optional<LineEntry>& entry) {
  if (!entry) {
    arguments.insert(arguments.end(), {"", "0", "0", "0"});
    return;
  }
  arguments.insert(arguments.end(), {entry->id, std::to_string(entry->ticket), flag(entry->polls), decimal(entry->life)});
}

ScriptCall call_of(const Script& script, const Resource& resource, std::vector<std::string> arguments) {
  arguments.emplace_back(script.name);
  return {&script, keys_of(resource), std::move(arguments)};
}

Fault garbage() {
  return {FaultKind::garbage, "an answer that no lock script gives"};
}

/// A span that a server tells. Kept to a length that cannot overflow, whatever the server's clock or a foreign client's expiry says.
Duration from_wire(std::int64_t milliseconds) {
  constexpr Milliseconds longest = std::chrono::hours(24 * 365 * 100);
  return std::clamp(Milliseconds(milliseconds), Milliseconds(0), longest);
}

/// The word that every script's reply begins with; empty when the reply has another form.
std::string_view word_of(const ScriptReply& reply) {
  if (!reply || reply->type != Type::array || reply->elements.empty() || reply->elements[0].type != Type::text) return {};
  return reply->elements[0].text;
}

/// What to say when the reply is none of those expected.
Fault fault_of(const ScriptReply& reply) {
  return reply ? garbage() : reply.error();
}

bool has_form(const std::vector<Reply>& elements, std::initializer_list<Type> form) {
  if (elements.size() != form.size()) return false;
  std::size_t i = 0;
  for (const Type type : form) {
    if (elements[i++].type != type) return false;
  }
  return true;
}

bool begins_with(const std::vector<Reply>& elements, std::initializer_list<Type> form) {
  return elements.size() >= form.size() && has_form({elements.begin(), elements.begin() + static_cast<std::ptrdiff_t>(form.size())}, form);
}

/// What stands behind a holder in a reply.
constexpr std::size_t behind_holder = 9;

/// As the scripts name all shares of a lock together.
constexpr std::string_view all_shares = "shared";

/// {word, id, type, ms left, ours, fence, age, supervised, record, …}: see describe() in prelude.lua.
std::optional<Holder> holder_of(const std::vector<Reply>& part) {
  if (!begins_with(
          part, {Type::text, Type::text, Type::text, Type::integer, Type::integer, Type::text, Type::integer, Type::integer, Type::text})) {
    return std::nullopt;
  }
  Holder holder;
  holder.id = LeaseId{part[1].text};
  holder.type = part[2].text;
  if (part[3].integer >= 0) holder.remaining = from_wire(part[3].integer);
  holder.foreign = part[4].integer == 0;
  holder.shared = !holder.foreign && holder.id.text == all_shares;
  if (!holder.foreign) {
    holder.fence = Fence::from_text(part[5].text);
    if (part[6].integer >= 0) holder.age = from_wire(part[6].integer);
    holder.owner = decode_owner(part[8].text);
    if (holder.owner) holder.owner->supervised = part[7].integer == 1;
  }
  return holder;
}

std::optional<Holder> holder_of(const ScriptReply& reply) {
  return holder_of(reply->elements);
}

/// A seat's number; -1: none.
std::optional<std::size_t> seat_of(const Reply& reply) {
  if (reply.integer < 0 || reply.integer >= static_cast<std::int64_t>(Mode::most_seats)) return std::nullopt;
  return static_cast<std::size_t>(reply.integer);
}

/// {time, largest ticket or '', ahead, in line, ms until something may change, free seats, offered (2: to a newer version), mute}: see
/// acquire.lua.
std::optional<LineWord> line_of(const Reply& reply) {
  const auto& part = reply.elements;
  if (reply.type != Type::array || !has_form(part, {Type::text, Type::text, Type::integer, Type::integer, Type::integer, Type::text, Type::integer, Type::integer})) {
    return std::nullopt;
  }
  const auto time = whole_number(part[0].text);
  if (!time || *time < 0 || *time > static_cast<std::int64_t>(Fence::max) || part[2].integer < 0) return std::nullopt;
  LineWord line;
  line.time = Milliseconds(*time);
  if (const auto largest = whole_number(part[1].text); largest && *largest >= 0) line.largest_ticket = static_cast<Ticket>(*largest);
  line.ahead = static_cast<std::size_t>(part[2].integer);
  line.in_line = part[3].integer > 0;
  line.was_in_line = part[3].integer > 1;
  if (part[4].integer >= 0) line.may_change = from_wire(part[4].integer);
  line.free_seats = part[5].text.substr(0, Mode::most_seats);
  line.offered = part[6].integer == 1;
  line.newer = part[6].integer == 2;
  line.mute = part[7].integer > 0;
  return line;
}

/// A count that a server tells; garbage counts as nothing.
std::size_t count_of(const Reply& reply) {
  return static_cast<std::size_t>(std::max<std::int64_t>(reply.integer, 0));
}

/// {waiters, first ones, shares, first ones}: see inspect.lua.
std::optional<Company> company_of(const Reply& reply) {
  const auto& part = reply.elements;
  if (reply.type != Type::array || !has_form(part, {Type::integer, Type::array, Type::integer, Type::array})) return std::nullopt;
  Company company;
  company.waiters = count_of(part[0]);
  for (const Reply& waiter : part[1].elements) {
    if (!has_form(waiter.elements, {Type::text, Type::integer, Type::text})) return std::nullopt;
    company.first_waiters.push_back(
        {waiter.elements[0].text != "x", from_wire(waiter.elements[1].integer), decode_owner(waiter.elements[2].text)});
  }
  company.shares = count_of(part[2]);
  for (const Reply& share : part[3].elements) {
    auto holder = holder_of(share.elements);
    if (!holder || share.elements.size() <= behind_holder) return std::nullopt;
    company.first_shares.push_back({std::move(*holder), seat_of(share.elements[behind_holder])});
  }
  return company;
}

AcquireVote held_vote(const ScriptReply& reply) {
  auto holder = holder_of(reply);
  if (!holder || reply->elements.size() <= behind_holder) return garbage();
  auto line = line_of(reply->elements[behind_holder]);
  if (!line) return garbage();
  return Held{std::move(*holder), std::move(*line)};
}

/// What stands behind the number in a reply that the lease is gone.
constexpr std::size_t behind_gone = 2;

/// The owner record of whoever broke the lease, where the reply has one.
std::optional<Owner> breaker_in(const std::vector<Reply>& elements, std::size_t index) {
  if (elements.size() <= index || elements[index].type != Type::text) return std::nullopt;
  return decode_owner(elements[index].text).value_or(Owner());
}

/// For the replies of somebody whose lease is not there.
template <class Vote>
Vote not_ours_or_fault(const ScriptReply& reply) {
  const std::string_view word = word_of(reply);
  if (word == "gone" && begins_with(reply->elements, {Type::text, Type::integer})) {
    const auto why = reply->elements[1].integer == 1 ? NotOurs::Why::released : NotOurs::Why::gone;
    return NotOurs{why, std::nullopt, breaker_in(reply->elements, behind_gone)};
  }
  if (word == "held") {
    if (auto holder = holder_of(reply)) return NotOurs{NotOurs::Why::held, std::move(holder), breaker_in(reply->elements, behind_holder)};
  }
  return fault_of(reply);
}

}  // namespace

Leavings leavings_of(const ScriptCall& call) {
  if (call.script == &scripts::acquire) return {call.arguments.front(), call.arguments[acquire_waiter]};
  if (call.script == &scripts::heal) return {call.arguments.front(), {}};
  return {};
}

const std::string& taken_back_by(const ScriptCall& call) {
  return call.arguments.front();
}

bool fits_into_one_read(const Resource& resource) {
  return resource.key().size() <= longest_key_for_one_read;
}

bool fits_into_one_read(const ScriptCall& call) {
  return call.keys.front().size() <= longest_key_for_one_read;
}

bool left_no_lease(const Reply& reply) {
  if (reply.type != Type::array || reply.elements.empty()) return false;
  return reply.elements[0].text == "held" || reply.elements[0].text == "queued";
}

std::optional<Call> call_from(std::string_view word) {
  if (word == "go") return Call::enter;
  if (word == "second") return Call::second;
  if (word == "third") return Call::third;
  if (word == "stand_down") return Call::stand_down;
  if (word == "look") return Call::look;
  return std::nullopt;
}

ScriptCall acquire_call(const AcquireRequest& request) {
  std::vector<std::string> arguments{request.token.secret(),
                                     decimal(request.ttl),
                                     flag(request.owner.supervised),
                                     encode_owner(request.owner),
                                     letter(request.mode.shared),
                                     std::to_string(request.mode.seats),
                                     number(request.seat)};
  append_entry(arguments, request.entry);
  return call_of(scripts::acquire, request.resource, std::move(arguments));
}

ScriptCall raise_fence_call(const RaiseRequest& request) {
  return call_of(scripts::raise_fence, request.resource, {request.token.secret(), request.fence.text(), decimal(request.ttl)});
}

ScriptCall extend_call(const ExtendRequest& request) {
  return call_of(scripts::extend, request.resource, {request.token.secret(), decimal(request.ttl), number(request.seat), request.fence.text()});
}

ScriptCall heal_call(const HealRequest& request) {
  const Provenance& from = request.provenance;
  return call_of(
      scripts::heal, request.resource,
      {request.token.secret(), decimal(request.ttl), request.fence.text(), decimal(std::chrono::duration_cast<Milliseconds>(from.age)),
       flag(from.supervised), from.record, letter(request.hold.shared), number(request.hold.seat)});
}

bool keeps_the_key(const ScriptCall& call) {
  constexpr std::size_t keep = 2;  // see release_call()
  return call.script == &scripts::release && call.arguments.at(keep) != "0";
}

ScriptCall release_call(const ReleaseRequest& request) {
  std::vector<std::string> arguments{request.token.secret(), flag(request.by_hand), decimal(std::chrono::ceil<Milliseconds>(request.keep))};
  const auto& requeue = request.requeue;
  append_entry(arguments, requeue ? std::optional(requeue->entry) : std::nullopt);
  arguments.push_back(requeue && requeue->mode.seats > 0 ? "n" : letter(requeue && requeue->mode.shared));
  const Owner* const owner = requeue ? &requeue->owner : request.finished ? &*request.finished : nullptr;
  arguments.push_back(owner != nullptr ? encode_owner(*owner) : std::string());
  return call_of(scripts::release, request.resource, std::move(arguments));
}

ScriptCall break_call(const BreakRequest& request) {
  return call_of(scripts::break_lock, request.resource,
                 {request.only_if ? request.only_if->text() : std::string(), encode_owner(request.breaker)});
}

ScriptCall inspect_call(const Resource& resource, const std::optional<LeaseId>& share) {
  return call_of(scripts::inspect, resource, {share ? share->text : std::string()});
}

ScriptCall leave_call(const Resource& resource, const std::string& waiter) {
  return call_of(scripts::leave, resource, {waiter});
}

AcquireVote acquire_vote(const ScriptReply& reply) {
  const std::string_view word = word_of(reply);
  if (word == "granted" && has_form(reply->elements, {Type::text, Type::text, Type::text, Type::integer, Type::array})) {
    const auto fence = Fence::from_text(reply->elements[1].text);
    auto line = line_of(reply->elements[4]);
    if (fence && line) {
      Granted granted{*fence, LeaseId{reply->elements[2].text}};
      granted.seat = seat_of(reply->elements[3]);
      granted.line = std::move(*line);
      return granted;
    }
  }
  if (word == "queued" && has_form(reply->elements, {Type::text, Type::array})) {
    if (auto line = line_of(reply->elements[1])) return Queued{std::move(*line)};
  }
  if (word == "duplicate") return Duplicate{};
  if (word == "held") return held_vote(reply);
  return fault_of(reply);
}

RaiseVote raise_vote(const ScriptReply& reply) {
  const std::string_view word = word_of(reply);
  if (word == "raised") return Raised{};
  if (word == "gone" || word == "held") return NotRaised{};
  return fault_of(reply);
}

ExtendVote extend_vote(const ScriptReply& reply) {
  if (word_of(reply) != "extended") return not_ours_or_fault<ExtendVote>(reply);
  const auto holder = holder_of(reply);
  if (!holder) return garbage();
  const auto& part = reply->elements;
  return Extended{holder->fence.value_or(Fence()), Provenance{holder->age.value_or(Duration::zero()), part[7].integer == 1, part[8].text}};
}

HealVote heal_vote(const ScriptReply& reply) {
  if (word_of(reply) == "healed") return Healed{};
  return not_ours_or_fault<HealVote>(reply);
}

ReleaseVote release_vote(const ScriptReply& reply) {
  const std::string_view word = word_of(reply);
  if (word == "released") return Released{};
  if (word == "supervised") {
    if (auto holder = holder_of(reply)) return Supervised{std::move(*holder)};
  }
  return not_ours_or_fault<ReleaseVote>(reply);
}

BreakVote break_vote(const ScriptReply& reply) {
  const std::string_view word = word_of(reply);
  if (word == "free") return NothingToBreak{};
  if (word == "broken" || word == "other") {
    if (auto holder = holder_of(reply)) {
      if (word == "broken") return Broken{std::move(*holder)};
      return OtherFence{std::move(*holder)};
    }
  }
  return fault_of(reply);
}

InspectVote inspect_vote(const ScriptReply& reply) {
  const std::string_view word = word_of(reply);
  if (word != "free" && word != "held") return fault_of(reply);
  auto company = company_of(reply->elements.back());
  if (!company) return garbage();
  if (word == "free") return Free{std::move(*company)};
  auto holder = holder_of(reply);
  if (!holder) return garbage();
  return Taken{std::move(*holder), std::move(*company)};
}

}  // namespace redlock
