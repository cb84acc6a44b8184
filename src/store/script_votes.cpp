#include "store/script_votes.hpp"

#include <algorithm>

#include "core/helper_keys.hpp"
#include "store/owner_record.hpp"
#include "support/text.hpp"

namespace redlock {
namespace {

using Type = Reply::Type;

std::vector<std::string> keys_of(const Resource& resource) {
  const HelperKeys helper(resource);
  return {resource.key(), helper.fence(), helper.owner(), helper.released()};
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

/// {word, id, type, ms left, ours, fence, age, supervised, record}: see describe() in prelude.lua.
std::optional<Holder> holder_of(const ScriptReply& reply) {
  const auto& part = reply->elements;
  if (!has_form(part,
                {Type::text, Type::text, Type::text, Type::integer, Type::integer, Type::text, Type::integer, Type::integer, Type::text})) {
    return std::nullopt;
  }
  Holder holder;
  holder.id = LeaseId{part[1].text};
  holder.type = part[2].text;
  if (part[3].integer >= 0) holder.remaining = from_wire(part[3].integer);
  holder.foreign = part[4].integer == 0;
  if (!holder.foreign) {
    holder.fence = Fence::from_text(part[5].text);
    holder.age = from_wire(part[6].integer);
    holder.owner = decode_owner(part[8].text);
    if (holder.owner) holder.owner->supervised = part[7].integer == 1;
  }
  return holder;
}

template <class Vote>
Vote held_or_garbage(const ScriptReply& reply) {
  if (auto holder = holder_of(reply)) return Held{std::move(*holder)};
  return garbage();
}

/// For the replies of somebody whose lease is not there.
template <class Vote>
Vote not_ours_or_fault(const ScriptReply& reply) {
  const std::string_view word = word_of(reply);
  if (word == "gone" && has_form(reply->elements, {Type::text, Type::integer})) {
    return NotOurs{reply->elements[1].integer == 1 ? NotOurs::Why::released : NotOurs::Why::gone, std::nullopt};
  }
  if (word == "held") {
    if (auto holder = holder_of(reply)) return NotOurs{NotOurs::Why::held, std::move(holder)};
  }
  return fault_of(reply);
}

}  // namespace

ScriptCall acquire_call(const AcquireRequest& request) {
  return {
      &scripts::acquire,
      keys_of(request.resource),
      {request.token.secret(), decimal(request.ttl), decimal(request.wall), flag(request.owner.supervised), encode_owner(request.owner)}};
}

ScriptCall raise_fence_call(const RaiseRequest& request) {
  return {&scripts::raise_fence, keys_of(request.resource), {request.token.secret(), request.fence.text(), decimal(request.ttl)}};
}

ScriptCall extend_call(const ExtendRequest& request) {
  return {&scripts::extend, keys_of(request.resource), {request.token.secret(), decimal(request.ttl)}};
}

ScriptCall heal_call(const HealRequest& request) {
  const Provenance& from = request.provenance;
  return {&scripts::heal,
          keys_of(request.resource),
          {request.token.secret(), decimal(request.ttl), request.fence.text(), decimal(std::chrono::duration_cast<Milliseconds>(from.age)),
           flag(from.supervised), from.record}};
}

ScriptCall release_call(const ReleaseRequest& request) {
  return {&scripts::release,
          keys_of(request.resource),
          {request.token.secret(), flag(request.by_hand), decimal(std::chrono::ceil<Milliseconds>(request.keep))}};
}

ScriptCall break_call(const Resource& resource, std::optional<Fence> only_if) {
  return {&scripts::break_lock, keys_of(resource), {only_if ? only_if->text() : std::string()}};
}

ScriptCall inspect_call(const Resource& resource) {
  return {&scripts::inspect, keys_of(resource), {}};
}

bool may_grant(const ScriptCall& call) {
  return call.script == &scripts::acquire || call.script == &scripts::heal;
}

const std::string& token_of(const ScriptCall& call) {
  return call.arguments.front();
}

AcquireVote acquire_vote(const ScriptReply& reply) {
  const std::string_view word = word_of(reply);
  if (word == "granted" && has_form(reply->elements, {Type::text, Type::text, Type::text})) {
    if (const auto fence = Fence::from_text(reply->elements[1].text)) return Granted{*fence, LeaseId{reply->elements[2].text}};
  }
  if (word == "duplicate") return Duplicate{};
  if (word == "held") return held_or_garbage<AcquireVote>(reply);
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
  if (word == "free") return Free{};
  if (word == "held") return held_or_garbage<InspectVote>(reply);
  return fault_of(reply);
}

}  // namespace redlock
