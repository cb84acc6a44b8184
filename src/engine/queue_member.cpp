#include "engine/queue_member.hpp"

#include <algorithm>
#include <utility>

#include "core/backoff.hpp"
#include "core/decision.hpp"
#include "core/protocol.hpp"
#include "support/digest.hpp"
#include "support/spawn.hpp"

namespace redlock {
namespace {

/// How long a notified waiter may take to poll, with a reserve for the clocks.
constexpr Milliseconds standby_delay = protocol::notify_timeout + Milliseconds(10);

/// The same for waiters further back, in case the second waiter has died, too.
constexpr Milliseconds later_standby_delay = protocol::notify_timeout + Milliseconds(250);

/// Digits of the host's fingerprint in a waiter's id: enough to distinguish the hosts that wait for
/// one lock.
constexpr std::size_t host_digits = 8;

/// A subscription that lasted this long counts as stable, so the delays start again.
constexpr std::chrono::seconds stable_subscription{5};

/// The delay between two attempts to subscribe at a server. It grows, as a missing right is hardly
/// ever granted during a wait.
constexpr Milliseconds min_resubscribe_delay{100};
constexpr Milliseconds max_resubscribe_delay{10'000};
constexpr std::chrono::minutes denied_resubscribe_delay{1};

}  // namespace

struct QueueMember::Subscriptions {
  struct Subscription {
    bool active = false;
    bool answered = false;  ///< the first attempt to subscribe has ended, with or without a fault
    bool notified = false;  ///< since our last poll
    bool taken = false;     ///< the lock was taken there after our last poll
    std::optional<Fault> fault;
    std::unique_ptr<Event> renew;  ///< notified to subscribe again, and at the end
  };

  ServerSet& server_set;
  Resource resource;
  std::string id;
  std::vector<Subscription> subscriptions;
  std::unique_ptr<Event> event;  ///< for the waiter
  std::optional<Instant> first_notification;
  std::optional<Instant> stand_by_until;
  bool over = false;

  void receive(std::size_t server, Notification notification) {
    Subscription& subscription = subscriptions[server];
    switch (notification) {
      case Notification::granted:
      case Notification::recheck:
        subscription.notified = true;
        if (!first_notification) first_notification = server_set.clock().now();
        break;
      case Notification::standby:
        stand_by(subscription, standby_delay);
        break;
      case Notification::standby_later:
        stand_by(subscription, later_standby_delay);
        break;
      case Notification::taken:
        subscription.taken = true;
        if (number_where(&Subscription::taken) >= quorum_of(subscriptions.size()))
          stand_by_until.reset();
        break;
      case Notification::disconnected:
        subscription.active = false;
        subscription.renew->notify();
        break;
    }
    event->notify();
  }

  void stand_by(Subscription& subscription, Duration delay) {
    subscription.taken = false;
    if (!stand_by_until) stand_by_until = server_set.clock().now() + delay;
  }

  [[nodiscard]] std::size_t number_where(bool Subscription::*flag) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        subscriptions, [flag](const Subscription& subscription) { return subscription.*flag; }));
  }
};

std::string QueueMember::new_id(ServerSet& server_set, std::string_view host) {
  return fingerprint(host).substr(0, host_digits) + std::string(protocol::word::after_host) +
         std::to_string(server_set.random());
}

QueueMember::QueueMember(ServerSet& server_set, Resource resource, Ticket ticket, std::string id)
    : server_set_(server_set), resource_(std::move(resource)), ticket_(ticket) {
  subscriptions_ = std::make_shared<Subscriptions>(
      Subscriptions{server_set, resource_, std::move(id), {}, nullptr, {}, {}});
  subscriptions_->event = server_set.clock().make_event();
  subscriptions_->subscriptions.resize(server_set.size());
  for (Subscriptions::Subscription& subscription : subscriptions_->subscriptions)
    subscription.renew = server_set.clock().make_event();
}

QueueMember::~QueueMember() {
  if (queued_) leave();
  unsubscribe();
}

asio::awaitable<void> QueueMember::subscribe(Interrupt& interrupt) {
  if (std::exchange(subscribed_, true)) co_return;
  const Interrupt::Listener listener(interrupt, *subscriptions_->event);
  const Clock& clock = server_set_.clock();
  const Instant t0 = clock.now();
  for (std::size_t i = 0; i < server_set_.size(); ++i) {
    spawn(server_set_.executor(),
          [subscriptions = subscriptions_, i] { return keep_subscribed(subscriptions, i); });
  }
  Instant end = t0 + server_set_.server_timeout();
  while (subscriptions_->number_where(&Subscriptions::Subscription::answered) <
             server_set_.size() &&
         clock.now() < end && !interrupt.raised()) {
    // Give slower servers as long again as the quorum took.
    if (is_subscribed())
      end = std::min(end, clock.now() + std::max<Duration>(clock.now() - t0, Milliseconds(1)));
    co_await subscriptions_->event->wait_until(end);
  }
}

asio::awaitable<void> QueueMember::keep_subscribed(std::shared_ptr<Subscriptions> subscriptions,
                                                   std::size_t server) {
  ServerSet& server_set = subscriptions->server_set;
  const Clock& clock = server_set.clock();
  Duration delay = min_resubscribe_delay;
  bool again = false;
  while (!subscriptions->over) {
    Subscriptions::Subscription& subscription = subscriptions->subscriptions[server];
    const std::weak_ptr<Subscriptions> weak = subscriptions;
    const std::function<void(Notification)> receive = [weak, server](Notification notification) {
      if (const auto all = weak.lock(); all && !all->over) all->receive(server, notification);
    };
    const Instant deadline = clock.now() + server_set.server_timeout();
    const std::optional<Fault> fault = co_await server_set.server(server).subscribe(
        subscriptions->resource, subscriptions->id, receive, deadline);
    if (subscriptions->over) co_return;
    subscription.answered = true;
    subscription.fault = fault;
    subscription.active = !fault.has_value();
    // Notifications sent during the gap were lost, so poll.
    if (subscription.active && again) subscriptions->receive(server, Notification::recheck);
    again = true;
    subscriptions->event->notify();
    bool cut_off = !subscription.active;
    if (subscription.active) {
      const Instant began = clock.now();
      while (subscription.active && !subscriptions->over)
        co_await subscription.renew->wait_until(Instant::max());
      cut_off = clock.now() - began < stable_subscription;
    }
    if (!cut_off) delay = min_resubscribe_delay;
    const bool denied = fault && fault->kind == FaultKind::denied;
    const Duration pause =
        denied ? Duration(denied_resubscribe_delay) : jittered(delay, server_set.random());
    if (cut_off) delay = std::min<Duration>(2 * delay, max_resubscribe_delay);
    // Wait until the pause has passed: the end of a failed connection notifies this event, too.
    const Instant next = cut_off ? clock.now() + pause : clock.now();
    while (!subscriptions->over && clock.now() < next)
      co_await subscription.renew->wait_until(next);
  }
}

void QueueMember::unsubscribe() {
  subscriptions_->over = true;
  for (std::size_t i = 0; i < server_set_.size(); ++i) {
    server_set_.server(i).unsubscribe();
    subscriptions_->subscriptions[i].renew->notify();
  }
}

QueueEntry QueueMember::entry(std::size_t server) const {
  const bool polls = !subscriptions_->subscriptions[server].active;
  return {subscriptions_->id, ticket_, polls, polls ? polling_entry_ttl : entry_ttl};
}

void QueueMember::leave() {
  for (std::size_t i = 0; i < server_set_.size(); ++i)
    server_set_.server(i).leave(resource_, subscriptions_->id);
  queued_ = false;
}

std::function<void(std::size_t)> QueueMember::resubscriber() const {
  return [weak = std::weak_ptr(subscriptions_)](std::size_t server) {
    const auto all = weak.lock();
    if (!all || all->over || !all->subscriptions[server].active) return;
    all->server_set.server(server).unsubscribe();
    all->receive(server, Notification::disconnected);
  };
}

bool QueueMember::is_subscribed() const {
  return subscriptions_->number_where(&Subscriptions::Subscription::active) >=
         quorum_of(server_set_.size());
}

std::vector<ServerFault> QueueMember::unsubscribed() const {
  std::vector<ServerFault> faults;
  for (std::size_t i = 0; i < server_set_.size(); ++i) {
    const Subscriptions::Subscription& subscription = subscriptions_->subscriptions[i];
    if (!subscription.active && subscription.fault)
      faults.push_back({server_set_.server(i).name(), *subscription.fault});
  }
  return faults;
}

void QueueMember::begin_attempt() {
  queued_ = true;
  for (Subscriptions::Subscription& subscription : subscriptions_->subscriptions)
    subscription.notified = subscription.taken = false;
  subscriptions_->first_notification.reset();
  subscriptions_->stand_by_until.reset();
}

asio::awaitable<bool> QueueMember::wait(Instant when, Duration gathering, Interrupt& interrupt) {
  const Clock& clock = server_set_.clock();
  const Interrupt::Listener listener(interrupt, *subscriptions_->event);
  std::optional<Instant> unsubscribed_since;
  while (!interrupt.raised()) {
    if (subscriptions_->number_where(&Subscriptions::Subscription::notified) >=
        quorum_of(server_set_.size()))
      co_return false;
    Instant end = std::min(when, subscriptions_->stand_by_until.value_or(when));
    // Without a quorum of subscriptions, only an attempt shows whether the servers are still there.
    // A connection that broke is usually replaced before that.
    if (is_subscribed()) {
      unsubscribed_since.reset();
    } else {
      if (!unsubscribed_since) unsubscribed_since = clock.now();
      end = std::min(end, *unsubscribed_since + max_unnotified_poll_interval);
    }
    const std::optional<Instant> first = subscriptions_->first_notification;
    if (first) end = std::min(end, *first + gathering);
    if (clock.now() >= end) co_return first.has_value() && end == *first + gathering;
    co_await subscriptions_->event->wait_until(end);
  }
  co_return false;
}

}  // namespace redlock
