#pragma once

#include <algorithm>
#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "core/vote.hpp"
#include "store/redis/endpoint.hpp"
#include "support/clock.hpp"
#include "support/result.hpp"
#include "support/spawn.hpp"

namespace redlock::redis {

/// The servers that know the masters of a deployment: its sentinels, or the nodes of a cluster.
/// What one of them reports, its view, is used until it fails; then the next one is asked (PROTOCOL
/// R13). This class keeps the order in which to ask them.
class ViewSources {
 public:
  explicit ViewSources(std::vector<Address> configured);

  /// All sources. The source of the view in use comes first; sources that were passed over come
  /// last, the latest at the end.
  [[nodiscard]] std::vector<Address> in_order() const;

  /// The view of this source is in use: ask it first from now on.
  void prefer(const Address& source);

  /// The view of this source failed, or it gave none: ask it last from now on.
  void pass_over(const Address& source);

  /// The view in use names these servers: they become sources. Sources that are neither configured
  /// nor named are dropped.
  void learn(const std::vector<Address>& named);

 private:
  void remove(const Address& source);

  std::set<Address> configured_;
  std::vector<Address> sources_;
  std::vector<Address> passed_over_;
};

/// The deadline for the next step: what is left, divided by the steps that are still to come, with
/// this one.
constexpr Instant time_for_one(Instant now, Instant deadline, std::size_t steps) {
  return now + (deadline - now) / static_cast<Duration::rep>(steps);
}

/// The answers of sources in their order; nullopt: it has not answered, or was not asked.
template <class View>
using ViewAnswers = std::vector<std::optional<Result<View, Fault>>>;

/// Asks `count` sources one after the other, until one gives a view. A source that takes longer
/// than its part of the time may still answer while the next one is asked. Some time remains for
/// the server that the view names. `ask` is called, with the position of the source, only before
/// this ends. The coroutine that it returns may end later than this, and must own what it uses.
template <class View>
asio::awaitable<ViewAnswers<View>> ask_in_turn(
    asio::any_io_executor executor, const Clock& clock, std::size_t count,
    std::function<asio::awaitable<Result<View, Fault>>(std::size_t)> ask, Instant deadline) {
  struct Answers {
    ViewAnswers<View> of;
    std::unique_ptr<Event> came;
    std::size_t number = 0;

    [[nodiscard]] bool have_view() const {
      return std::ranges::any_of(of, [](const auto& answer) { return answer && *answer; });
    }
  };
  const auto answers = std::make_shared<Answers>();
  answers->of.resize(count);
  answers->came = clock.make_event();
  std::size_t asked = 0;
  while (asked < count && !answers->have_view()) {
    using Question = asio::awaitable<Result<View, Fault>>;
    const auto question = std::make_shared<Question>(ask(asked));
    const std::size_t before = answers->number;
    spawn(executor, [answers, question, i = asked]() -> asio::awaitable<void> {
      answers->of[i] = co_await std::move(*question);
      ++answers->number;
      answers->came->notify();
    });
    const Instant next = time_for_one(clock.now(), deadline, count - asked + 1);
    ++asked;
    while (answers->number == before && clock.now() < next)
      co_await answers->came->wait_until(next);
  }
  while (answers->number < asked && !answers->have_view())
    co_await answers->came->wait_until(Instant::max());
  co_return answers->of;
}

/// Adds the fault of one source to those of others (an empty text: there were none). If the kinds
/// differ, the result is `silent`, the most cautious kind.
void add_fault(Fault& faults, const Fault& fault);

}  // namespace redlock::redis
