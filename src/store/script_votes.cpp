#include "store/script_votes.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "core/protocol.hpp"
#include "core/queue.hpp"
#include "core/types.hpp"
#include "store/owner_record.hpp"
#include "store/run_record.hpp"
#include "support/digest.hpp"
#include "support/number.hpp"
#include "support/text.hpp"

namespace redlock {
namespace {

namespace reply_at = protocol::reply;
namespace word = protocol::word;

using Type = Reply::Type;

Fault garbage() {
  return {FaultKind::garbage, "malformed reply to a lock script"};
}

/// The first word of a script's reply; empty if the reply has another form.
std::string_view word_of(const ScriptReply& reply) {
  if (!reply || reply->type != Type::array || reply->elements.empty() ||
      reply->elements[0].type != Type::text)
    return {};
  return reply->elements[0].text;
}

/// The fault for a malformed reply.
Fault fault_of(const ScriptReply& reply) {
  return reply ? garbage() : reply.error();
}

bool has_form(std::span<const Reply> elements, std::initializer_list<Type> form) {
  return std::ranges::equal(elements, form, {}, &Reply::type);
}

bool begins_with(std::span<const Reply> elements, std::initializer_list<Type> form) {
  return elements.size() >= form.size() && has_form(elements.first(form.size()), form);
}

bool is(const Reply& reply, std::uint64_t number) {
  return std::cmp_equal(reply.integer, number);
}

/// See describe() in lock.lua.
std::optional<Holder> holder_without_owner(const std::vector<Reply>& part) {
  namespace at = reply_at::holder;
  if (!begins_with(part, {Type::text, Type::text, Type::text, Type::integer, Type::integer,
                          Type::text, Type::integer, Type::integer, Type::text})) {
    return std::nullopt;
  }
  Holder holder;
  holder.id = LeaseId{part[at::id].text};
  holder.type = part[at::type].text;
  if (part[at::remaining_ms].integer >= 0)
    holder.remaining = from_wire(part[at::remaining_ms].integer);
  holder.foreign = part[at::ours].integer == 0;
  holder.shared = !holder.foreign && holder.id.text == word::all_shares;
  if (!holder.foreign) {
    holder.fence = Fence::from_text(part[at::fence].text);
    if (part[at::age].integer >= 0) holder.age = from_wire(part[at::age].integer);
  }
  return holder;
}

std::optional<Holder> holder_of(const std::vector<Reply>& part) {
  namespace at = reply_at::holder;
  auto holder = holder_without_owner(part);
  if (!holder || holder->foreign) return holder;
  holder->owner = decode_owner(part[at::record].text);
  if (!holder->owner) return holder;
  holder->owner->supervised = part[at::supervised].integer == 1;
  if (!holder->owner->hold_for || holder->shared) return holder;
  const bool has_value = part.size() > at::value && part[at::value].type == Type::text;
  const auto token =
      has_value ? Token::from_text(part[at::value].text) : hold_token_in(part[at::record].text);
  const bool is_proven = token && sha1_hex(token->secret()) == holder->id.text;
  if (is_proven) holder->hold = HoldCopy{*token, part[at::record].text};
  return holder;
}

/// See describe_users() in users.lua; nullopt if the reply has another form.
std::optional<std::vector<ShownUser>> users_of(const Reply& reply) {
  if (reply.type != Type::array) return std::nullopt;
  std::vector<ShownUser> users;
  for (const Reply& user : reply.elements) {
    if (!has_form(user.elements, {Type::integer, Type::text})) return std::nullopt;
    namespace at = reply_at::user;
    users.push_back(
        {from_wire(user.elements[at::age].integer), decode_owner(user.elements[at::record].text)});
  }
  return users;
}

/// A slot number; -1: none.
std::optional<std::size_t> slot_of(const Reply& reply) {
  if (reply.type != Type::integer) return std::nullopt;
  if (reply.integer < 0 || reply.integer >= static_cast<std::int64_t>(Mode::max_slots))
    return std::nullopt;
  return static_cast<std::size_t>(reply.integer);
}

/// Slots such as `1,4`; nullopt for any other text.
std::optional<Slots> slots_of(std::string_view text) {
  Slots slots;
  while (!text.empty()) {
    const auto slot = whole_number<std::size_t>(next_word(text, ','));
    if (!slot || *slot >= Mode::max_slots || (!slots.empty() && *slot <= slots.back()))
      return std::nullopt;
    slots.push_back(*slot);
  }
  return slots;
}

/// nullopt: none.
std::optional<Ticket> ticket_of(const Reply& reply) {
  const auto ticket = whole_number(reply.text);
  return ticket && *ticket >= 0 ? std::optional(static_cast<Ticket>(*ticket)) : std::nullopt;
}

/// A server's clock; nullopt: it cannot be one.
std::optional<Milliseconds> time_of(const Reply& reply) {
  const auto time = whole_number(reply.text);
  if (!time || *time < 0 || *time > static_cast<std::int64_t>(Fence::max)) return std::nullopt;
  return Milliseconds(*time);
}

/// See acquire.lua.
std::optional<QueueStatus> queue_status_of(const Reply& reply) {
  namespace at = reply_at::queue;
  const auto& part = reply.elements;
  if (reply.type != Type::array ||
      !has_form(part, {Type::text, Type::text, Type::integer, Type::integer, Type::integer,
                       Type::text, Type::integer, Type::integer, Type::text, Type::text,
                       Type::integer, Type::text, Type::text})) {
    return std::nullopt;
  }
  const auto time = time_of(part[at::time]);
  if (!time || part[at::ahead].integer < 0) return std::nullopt;
  QueueStatus queue;
  queue.time = *time;
  queue.max_ticket = ticket_of(part[at::max_ticket]);
  queue.ahead = static_cast<std::size_t>(part[at::ahead].integer);
  queue.queued = part[at::queued].integer > 0;
  queue.was_queued = is(part[at::queued], protocol::queued_before);
  if (part[at::may_change].integer >= 0) queue.may_change = from_wire(part[at::may_change].integer);
  queue.free_slots = part[at::free_slots].text.substr(0, Mode::max_slots);
  queue.offered = is(part[at::offered], protocol::offered);
  queue.newer = is(part[at::offered], protocol::offered_to_newer);
  queue.watches = is(part[at::offered], protocol::watches);
  queue.cannot_publish = part[at::cannot_publish].integer > 0;
  queue.superseder = part[at::superseder].text;
  if (!queue.superseder.empty())
    queue.superseded_by = decode_owner(part[at::superseder_record].text);
  if (part[at::others].integer >= 0)
    queue.others = static_cast<std::size_t>(part[at::others].integer);
  if (!part[at::collector].text.empty()) queue.collector = decode_owner(part[at::collector].text);
  if (!part[at::dismissal].text.empty())
    queue.dismissal = decode_stop_request(part[at::dismissal].text).value_or(StopRequest());
  return queue;
}

/// A count from a server; a malformed one counts as zero.
std::size_t count_of(const Reply& reply) {
  return static_cast<std::size_t>(std::max<std::int64_t>(reply.integer, 0));
}

/// A share with its slot; nullopt if the reply has another form.
std::optional<Share> share_of(const Reply& reply) {
  auto holder = holder_of(reply.elements);
  if (!holder || reply.elements.size() <= reply_at::holder::extra) return std::nullopt;
  holder->id.text = holder->id.text.substr(0, holder->id.text.find(word::part_sign));
  const Reply& slot = reply.elements[reply_at::holder::extra];
  const bool has_name = slot.type == Type::text && is_slot_name(slot.text);
  Share share{std::move(*holder), has_name ? std::nullopt : slot_of(slot),
              has_name ? slot.text : ""};
  if (auto& hold = share.holder.hold) {
    hold->how.shared = true;
    if (share.slot) hold->how.slots = {*share.slot};
    if (has_name) hold->how.slot_names = {share.slot_name};
  }
  return share;
}

/// The shares of the slots on hold, in the reply that describes the holder.
std::vector<Share> holds_of(const std::vector<Reply>& part) {
  std::vector<Share> holds;
  if (part.size() <= reply_at::holder::holds) return holds;
  for (const Reply& hold : part[reply_at::holder::holds].elements) {
    if (auto share = share_of(hold)) holds.push_back(std::move(*share));
  }
  return holds;
}

/// See inspect.lua.
std::optional<LockParties> parties_of(const Reply& reply) {
  namespace at = reply_at::parties;
  const auto& part = reply.elements;
  if (reply.type != Type::array ||
      !has_form(part, {Type::integer, Type::array, Type::integer, Type::array, Type::text,
                       Type::text, Type::text, Type::array}) ||
      !whole_number(part[at::time].text))
    return std::nullopt;
  LockParties parties;
  parties.waiters = count_of(part[at::waiters]);
  for (const Reply& waiter : part[at::first_waiters].elements) {
    if (!has_form(waiter.elements, {Type::text, Type::integer, Type::text})) return std::nullopt;
    const auto& fields = waiter.elements;
    parties.first_waiters.push_back({fields[reply_at::waiting::mode].text != word::alone,
                                     from_wire(fields[reply_at::waiting::waited].integer),
                                     decode_owner(fields[reply_at::waiting::record].text)});
  }
  parties.shares = count_of(part[at::shares]);
  for (const Reply& share : part[at::first_shares].elements) {
    auto known = share_of(share);
    if (!known) return std::nullopt;
    parties.first_shares.push_back(std::move(*known));
  }
  parties.free_slots = part[at::free_slots].text;
  return parties;
}

AcquireVote held_vote(const ScriptReply& reply) {
  auto holder = holder_of(reply->elements);
  if (!holder || reply->elements.size() <= reply_at::holder::extra) return garbage();
  auto queue = queue_status_of(reply->elements[reply_at::holder::extra]);
  if (!queue) return garbage();
  return Held{std::move(*holder), std::move(*queue), holds_of(reply->elements)};
}

/// The owner record of the breaker, if the reply has one.
std::optional<Owner> breaker_in(const std::vector<Reply>& elements, std::size_t index) {
  if (elements.size() <= index || elements[index].type != Type::text) return std::nullopt;
  return decode_owner(elements[index].text).value_or(Owner());
}

/// The vote for a reply to a client whose lease is not on the server.
template <class Vote>
Vote not_ours_or_fault(const ScriptReply& reply) {
  const std::string_view first_word = word_of(reply);
  if (first_word == word::gone && begins_with(reply->elements, {Type::text, Type::integer})) {
    const auto why = is(reply->elements[reply_at::gone::why], protocol::gone_released)
                         ? NotOurs::Why::released
                         : NotOurs::Why::gone;
    return NotOurs{why, std::nullopt, breaker_in(reply->elements, reply_at::gone::breaker)};
  }
  if (first_word == word::held) {
    if (auto holder = holder_of(reply->elements))
      return NotOurs{NotOurs::Why::held, std::move(holder),
                     breaker_in(reply->elements, reply_at::holder::extra)};
  }
  return fault_of(reply);
}

Released released_vote(const std::vector<Reply>& elements) {
  namespace at = reply_at::released;
  const auto number = [&elements](std::size_t index) {
    const bool is_there = elements.size() > index && elements[index].type == Type::integer;
    return is_there ? elements[index].integer : 0;
  };
  return {number(at::recorded) == 1, number(at::left) == protocol::left_to_users,
          from_wire(number(at::rest))};
}

}  // namespace

bool left_no_lease(const Reply& reply) {
  if (reply.type != Type::array || reply.elements.empty()) return false;
  return reply.elements[0].text == word::held || reply.elements[0].text == word::queued;
}

std::optional<Notification> notification_from(std::string_view text) {
  if (text == word::granted) return Notification::granted;
  if (text == word::standby) return Notification::standby;
  if (text == word::standby_later) return Notification::standby_later;
  if (text == word::taken) return Notification::taken;
  if (text == word::recheck) return Notification::recheck;
  return std::nullopt;
}

AcquireVote acquire_vote(const ScriptReply& reply) {
  const std::string_view first_word = word_of(reply);
  if (first_word == word::granted &&
      has_form(reply->elements,
               {Type::text, Type::text, Type::text, Type::text, Type::array, Type::text})) {
    namespace at = reply_at::granted;
    const auto fence = Fence::from_text(reply->elements[at::fence].text);
    auto slots = slots_of(reply->elements[at::slots].text);
    auto queue = queue_status_of(reply->elements[at::queue]);
    if (fence && slots && queue) {
      Granted granted{*fence, LeaseId{reply->elements[at::id].text}};
      granted.slots = std::move(*slots);
      granted.runs = decode_runs(reply->elements[at::runs].text, queue->time.count());
      granted.queue = std::move(*queue);
      return granted;
    }
  }
  if (first_word == word::queued && has_form(reply->elements, {Type::text, Type::array})) {
    if (auto queue = queue_status_of(reply->elements[reply_at::queued::queue]))
      return Queued{std::move(*queue)};
  }
  if (first_word == word::duplicate) return Duplicate{};
  if (first_word == word::held) return held_vote(reply);
  return fault_of(reply);
}

RaiseVote raise_vote(const ScriptReply& reply) {
  const std::string_view first_word = word_of(reply);
  if (first_word == word::raised) return Raised{};
  if (first_word == word::gone || first_word == word::held) return NotRaised{};
  return fault_of(reply);
}

ExtendVote extend_vote(const ScriptReply& reply) {
  if (word_of(reply) != word::extended) return not_ours_or_fault<ExtendVote>(reply);
  const auto& part = reply->elements;
  const auto holder = holder_without_owner(part);
  if (!holder) return garbage();
  Extended extended{holder->fence.value_or(Fence()),
                    Provenance{holder->age.value_or(Duration::zero()),
                               part[reply_at::holder::supervised].integer == 1,
                               part[reply_at::holder::record].text}};
  extended.stop_request = stop_request_in(extended.provenance.record);
  extended.remaining = holder->remaining.value_or(Duration::zero());
  return extended;
}

HealVote heal_vote(const ScriptReply& reply) {
  if (word_of(reply) == word::healed) return Healed{};
  return not_ours_or_fault<HealVote>(reply);
}

ReleaseVote release_vote(const ScriptReply& reply) {
  const std::string_view first_word = word_of(reply);
  if (first_word == word::released && begins_with(reply->elements, {Type::text, Type::integer}))
    return released_vote(reply->elements);
  if (first_word == word::supervised) {
    if (auto holder = holder_of(reply->elements)) return Supervised{std::move(*holder)};
  }
  return not_ours_or_fault<ReleaseVote>(reply);
}

BreakVote break_vote(const ScriptReply& reply) {
  const std::string_view first_word = word_of(reply);
  if (first_word == word::free) return NothingToBreak{};
  if (first_word == word::broken || first_word == word::other) {
    if (auto holder = holder_of(reply->elements)) {
      if (first_word == word::broken) return Broken{std::move(*holder)};
      return OtherFence{std::move(*holder)};
    }
  }
  if (first_word == word::foreign) {
    auto holder = holder_of(reply->elements);
    if (!holder || reply->elements.size() <= reply_at::holder::extra) return garbage();
    const std::int64_t size = reply->elements[reply_at::holder::extra].integer;
    return ForeignKey{std::move(*holder),
                      size < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(size))};
  }
  return fault_of(reply);
}

SkipVote skip_vote(const ScriptReply& reply) {
  if (word_of(reply) == word::counted) return Counted{};
  return fault_of(reply);
}

DismissVote dismiss_vote(const ScriptReply& reply) {
  namespace at = reply_at::dismissed;
  if (word_of(reply) != word::dismissed) return fault_of(reply);
  const auto& part = reply->elements;
  if (!has_form(part, {Type::text, Type::text, Type::text, Type::integer, Type::array}))
    return garbage();
  const auto time = time_of(part[at::time]);
  if (!time) return garbage();
  Dismissed dismissed{*time, ticket_of(part[at::max_ticket]), count_of(part[at::queued])};
  for (const Reply& record : part[at::first_queued].elements) {
    if (auto owner = decode_owner(record.text)) dismissed.first_queued.push_back(std::move(*owner));
  }
  return dismissed;
}

InspectVote ask_vote(const ScriptReply& reply) {
  const std::string_view first_word = word_of(reply);
  if (first_word == word::free && has_form(reply->elements, {Type::text, Type::integer})) {
    Free free;
    free.ended = is(reply->elements[reply_at::free_asked::ended], 1);
    return free;
  }
  if (first_word != word::held) return fault_of(reply);
  auto holder = holder_of(reply->elements);
  if (!holder || reply->elements.size() <= reply_at::holder::ended) return garbage();
  auto users = users_of(reply->elements[reply_at::holder::extra]);
  if (!users) return garbage();
  holder->users = std::move(*users);
  Taken taken{std::move(*holder)};
  taken.ended = is(reply->elements[reply_at::holder::ended], 1);
  return taken;
}

InspectVote inspect_vote(const ScriptReply& reply) {
  const std::string_view first_word = word_of(reply);
  if (first_word != word::free && first_word != word::held) return fault_of(reply);
  const std::size_t at =
      first_word == word::free ? reply_at::free::parties : reply_at::holder::extra;
  if (reply->elements.size() <= at) return garbage();
  auto parties = parties_of(reply->elements[at]);
  if (!parties) return garbage();
  const auto& fields = reply->elements[at].elements;
  const std::int64_t time = *whole_number(fields[reply_at::parties::time].text);
  LastRuns runs = decode_runs(fields[reply_at::parties::runs].text, time);
  if (first_word == word::free) return Free{std::move(*parties), {}, std::move(runs)};
  auto holder = holder_of(reply->elements);
  auto users = users_of(fields[reply_at::parties::users]);
  if (!holder || !users) return garbage();
  holder->users = std::move(*users);
  std::vector<Share>& shares = parties->first_shares;
  for (Share& hold : holds_of(reply->elements)) {
    const LeaseId& id = hold.holder.id;
    if (std::ranges::find(shares, id, [](const Share& one) { return one.holder.id; }) ==
        shares.end())
      shares.push_back(std::move(hold));
  }
  return Taken{std::move(*holder), std::move(*parties), {}, std::move(runs)};
}

}  // namespace redlock
