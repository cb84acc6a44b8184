#pragma once

#include <algorithm>
#include <map>

#include "store/owner_record.hpp"
#include "store/registry.hpp"
#include "support/digest.hpp"

/// `toy:NAME`, a store in memory: about the least that a store must do. It refuses to share locks.
namespace redlock::toy {
struct Lock {
  std::optional<Token> token;  ///< nothing: it is free
  Owner owner;
  Instant since, until;
  std::uint64_t fence = 0;
  std::map<std::pair<Ticket, std::string>, Instant> queue;  ///< until when each waits
  std::map<std::string, std::optional<Owner>> ended;        ///< tokens; who broke them
};
using Locks = std::map<Resource, Lock>;
template <class Vote>
using Answer = asio::awaitable<Vote>;
struct Server final : LockServer {
  Server(std::string url, Locks& all, const Clock& clock) : url_(url), all_(all), clock_(clock) {}
  const std::string& name() const override { return url_; }
  Answer<AcquireVote> acquire(AcquireRequest ask, Instant) override {
    Lock& lock = at(ask.resource);
    if (ask.mode.shared) co_return Fault{FaultKind::misconfigured, "it does not share locks"};
    if (lock.token == ask.token) co_return Duplicate{};
    const std::string waiter = ask.entry ? ask.entry->id : "";
    if (ask.entry) enqueue(lock, *ask.entry);
    const QueueStatus line{clock_.wall(), {}, lock.queue.size(), ask.entry.has_value()};
    if (lock.token) co_return Held{shown(lock), line};
    if (!lock.queue.empty() && lock.queue.begin()->first.second != waiter) co_return Queued{line};
    drop(lock, waiter);
    lock.fence = std::max(lock.fence + 1, static_cast<std::uint64_t>(clock_.wall().count()));
    hold(lock, ask.token, *decode_owner(ask.owner.text()), {}, ask.ttl);
    co_return Granted{Fence(lock.fence), shown(lock).id, {}, {}, line};
  }
  Answer<RaiseVote> raise_fence(RaiseRequest ask, Instant) override {
    Lock& lock = at(ask.resource);
    if (lock.token != ask.token) co_return NotRaised{};
    lock.fence = std::max(lock.fence, ask.fence.value());
    co_return Raised{};
  }
  Answer<ExtendVote> extend(ExtendRequest ask, Instant) override {
    Lock& lock = at(ask.resource);
    if (lock.token != ask.token) co_return not_ours(lock, ask.token);
    lock.until = std::max(lock.until, clock_.now() + ask.ttl.length());
    const Duration age = clock_.now() - lock.since;
    co_return Extended{Fence(lock.fence),
                       {age, lock.owner.supervised, encode_owner(lock.owner)},
                       {},
                       lock.owner.stop_request};
  }
  Answer<HealVote> heal(HealRequest ask, Instant) override {
    Lock& lock = at(ask.resource);
    if (lock.token || lock.ended.contains(ask.token.secret())) co_return not_ours(lock, ask.token);
    lock.fence = std::max(lock.fence, ask.fence.value());
    hold(lock, ask.token, *decode_owner(ask.provenance.record), ask.provenance.age, ask.ttl);
    co_return Healed{};
  }
  Answer<ReleaseVote> release(ReleaseRequest ask, Instant) override { co_return end(ask); }
  Answer<BreakVote> break_lock(BreakRequest ask, Instant) override {
    Lock& lock = at(ask.resource);
    if (!lock.token) co_return NothingToBreak{};
    if (ask.only_if && ask.only_if->value() != lock.fence) co_return OtherFence{shown(lock)};
    lock.ended[lock.token->secret()] = ask.breaker;
    lock.until = clock_.now();
    co_return Broken{shown(lock)};
  }
  Answer<InspectVote> inspect(Resource resource, std::optional<LeaseId>, Instant,
                              InspectScope) override {
    const Lock& lock = at(resource);
    if (lock.token) co_return Taken{shown(lock), {lock.queue.size()}};
    co_return Free{{lock.queue.size()}};
  }
  Answer<InspectVote> ask_holder(AskRequest ask, Instant) override {
    Lock& lock = at(ask.resource);
    if (!lock.token) co_return Free{};
    if (ask.lease == shown(lock).id && !lock.owner.stop_request)
      lock.owner.stop_request = ask.request;
    co_return Taken{shown(lock)};
  }
  Answer<Result<LockList, Fault>> list(ListRequest) override {
    LockList list;
    for (const auto& one : all_) {
      if (at(one.first).token) list.resources.push_back(one.first);
    }
    co_return list;
  }
  void undo(const Resource& resource, const Token& token, std::optional<Requeue> line,
            NotUndone) override {
    end({resource, token, /*by_hand=*/false, {}, std::move(line)});
  }
  void leave(const Resource& resource, const std::string& id) override { drop(at(resource), id); }
  void leave_late(const Resource& /*resource*/, const std::string& /*id*/) override {}
  [[nodiscard]] bool was_reached() const override { return true; }
  Answer<void> close(Instant) override { co_return; }

  Lock& at(const Resource& resource) {
    Lock& lock = all_[resource];
    if (lock.until <= clock_.now()) lock.token.reset();
    std::erase_if(lock.queue, [&](const auto& one) { return one.second <= clock_.now(); });
    return lock;
  }
  static void drop(Lock& lock, const std::string& waiter) {
    std::erase_if(lock.queue, [&](const auto& one) { return one.first.second == waiter; });
  }
  void enqueue(Lock& lock, const QueueEntry& entry) {
    lock.queue[{entry.ticket, entry.id}] = clock_.now() + entry.life;
  }
  void hold(Lock& lock, const Token& token, const Owner& owner, Duration age, Ttl ttl) {
    lock.token = token;
    lock.owner = owner;
    lock.since = clock_.now() - age;
    lock.until = clock_.now() + ttl.length();
  }
  Holder shown(const Lock& lock) const {
    const LeaseId id{sha1_hex(lock.token->secret())};
    const Duration age = clock_.now() - lock.since;
    const Duration left = lock.until - clock_.now();
    return {id, false, false, "string", left, age, Fence(lock.fence), lock.owner};
  }
  NotOurs not_ours(const Lock& lock, const Token& token) const {
    const auto ended = lock.ended.find(token.secret());
    if (ended != lock.ended.end() && !ended->second) return {NotOurs::Why::released, {}, {}, {}};
    const auto breaker = ended != lock.ended.end() ? ended->second : std::nullopt;
    if (!lock.token) return {NotOurs::Why::gone, {}, breaker, {}};
    return {NotOurs::Why::held, shown(lock), breaker, {}};
  }
  ReleaseVote end(const ReleaseRequest& ask) {
    Lock& lock = at(ask.resource);
    if (ask.requeue) enqueue(lock, ask.requeue->entry);
    if (lock.token != ask.token) return not_ours(lock, ask.token);
    if (ask.by_hand && lock.owner.supervised && !lock.owner.finished)
      return Supervised{shown(lock)};
    if (ask.by_hand) lock.ended[ask.token.secret()] = std::nullopt;
    lock.until = clock_.now() + ask.expire_in;
    if (ask.finished) lock.owner = *ask.finished;
    return Released{};
  }
  const std::string url_;
  Locks& all_;
  const Clock& clock_;
};

extern const Store store;
struct Address final : ServerAddress {
  explicit Address(std::string_view url) : url_(url) {}
  const Store& store() const override { return toy::store; }
  std::string name() const override { return url_; }
  std::unique_ptr<LockServer> connect(asio::any_io_executor, const Clock& clock,
                                      const LinkOptions&) const override {
    static std::map<std::string, Locks> all;
    return std::make_unique<Server>(url_, all[url_], clock);
  }
  const std::string url_;
};
inline AddressResult read(std::string_view url) {
  return std::make_unique<const Address>(url);
}
inline constexpr Scheme scheme{.prefix = "toy:"};
inline constexpr Store store{.schemes = {&scheme, 1}, .forms = "toy:NAME", .read = read};

}  // namespace redlock::toy
