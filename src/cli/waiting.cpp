#include "cli/waiting.hpp"

#include <fmt/format.h>

#include "output/describe.hpp"

namespace redlock::cli {
namespace {

constexpr std::chrono::minutes reminder_interval{1};

/// Decides which of the many attempts of a wait are worth a line.
class Reporter {
 public:
  Reporter(const Session& session, const Resource& resource, std::size_t servers)
      : session_(session), key_(output::key_text(resource)), servers_(servers) {}

  void show(const AttemptFailure& failure) {
    const std::string text = fmt::format("{}: {}", key_, output::failure_text(failure, servers_));
    session_.console().debug(text);
    if (failure.why == AttemptFailure::Why::split || failure.why == AttemptFailure::Why::maybe_busy) return;  // sorts itself out
    const Instant now = session_.clock().now();
    if (last_why_ == failure.why && now - last_ < reminder_interval) return;
    last_why_ = failure.why;
    last_ = now;
    session_.console().notice("waiting for " + text);
  }

 private:
  const Session& session_;
  std::string key_;
  std::size_t servers_;
  std::optional<AttemptFailure::Why> last_why_;
  Instant last_;
};

}  // namespace

asio::awaitable<Result<Lease, AttemptFailure>> wait_for_lock(Session& session, AcquireOrder order, WaitPolicy policy) {
  Reporter reporter(session, order.resource, session.electorate().size());
  Waiter waiter(session.electorate(), std::move(order), policy, session.interrupt());
  for (;;) {
    auto step = co_await waiter.next();
    if (auto* lease = std::get_if<Lease>(&step)) co_return std::move(*lease);
    if (auto* gave_up = std::get_if<GaveUp>(&step)) co_return unexpected<AttemptFailure>(std::move(gave_up->failure));
    reporter.show(std::get<StillWaiting>(step).failure);
  }
}

}  // namespace redlock::cli
