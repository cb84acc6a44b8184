#include "cli/waiting.hpp"

#include <fmt/format.h>

#include "cli/wait_line.hpp"
#include "output/describe.hpp"

namespace redlock::cli {
namespace {

constexpr std::chrono::minutes reminder_interval{1};

/// Decides which of the many attempts of a wait are worth a line.
class Reporter {
 public:
  Reporter(const Session& session, std::size_t servers, pid_t job_group) : session_(session), servers_(servers) {
    const Console& console = session.console();
    if (!console.is_quiet() && !console.is_verbose() && !session.json()) line_.emplace(job_group);
  }

  void show(const Resource& resource, const AttemptFailure& failure) {
    std::string text = fmt::format("{}: {}", output::key_text(resource), output::failure_text(resource, failure, servers_));
    if (failure.line.in_line) text += fmt::format("; {} in line before us", failure.line.ahead);
    session_.console().debug(text);
    if (!failure.deaf_to.empty() && !std::exchange(told_deaf_, true)) {
      session_.console().detail(fmt::format("{}: cannot be called when it is our turn, so we look again and again: {}",
                                            output::key_text(resource), output::faults_text(failure.deaf_to)));
    }
    if (failure.why == AttemptFailure::Why::split || failure.why == AttemptFailure::Why::maybe_busy) return;  // sorts itself out
    const Instant now = session_.clock().now();
    const bool drawn = line_ && line_->draw(now, "redlock-cli: waiting for " + text);
    if (!drawn && last_resource_ == resource && last_why_ == failure.why && now - last_ < reminder_interval) return;
    last_resource_ = resource;
    last_why_ = failure.why;
    last_ = now;
    if (drawn) return;
    session_.console().notice("waiting for " + text);
  }

 private:
  const Session& session_;
  std::size_t servers_;
  std::optional<WaitLine> line_;
  std::optional<Resource> last_resource_;
  std::optional<AttemptFailure::Why> last_why_;
  Instant last_;
  bool told_deaf_ = false;
};

}  // namespace

asio::awaitable<Result<std::shared_ptr<HeldSet>, SetFailure>> wait_for_locks(Session& session, std::vector<AcquireOrder> orders,
                                                                             WaitPolicy policy, pid_t job_group) {
  Reporter reporter(session, session.electorate().size(), job_group);
  SetWaiter waiter(session.electorate(), std::move(orders), policy, session.interrupt());
  for (;;) {
    auto step = co_await waiter.next();
    if (auto* set = std::get_if<std::shared_ptr<HeldSet>>(&step)) co_return std::move(*set);
    SetFailure& failure = std::get<SetFailure>(step);
    if (failure.final) co_return unexpected<SetFailure>(std::move(failure));
    reporter.show(failure.resource, failure.failure);
  }
}

}  // namespace redlock::cli
