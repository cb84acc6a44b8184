#include "store/redis/interview.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "store/redis/error_reply.hpp"

namespace redlock::redis {

asio::awaitable<Reply> Interview::ask(Command question, ReplyLimits limits) {
  std::string text;
  for (const std::string& word : question) text += (text.empty() ? "" : " ") + word;
  const Reply none = error_reply("");
  if (is_hopeless()) {
    report_.unanswered.push_back({std::move(text), last_fault_->text});
    co_return none;
  }
  const Instant asked = clock_.now();
  auto reply = co_await server_.ask(std::move(question), limits, asked + server_timeout_);
  if (!reply) {
    ++unanswered_;
    last_fault_ = std::move(reply.error());
    report_.unanswered.push_back({std::move(text), last_fault_->text});
    co_return none;
  }
  was_answered_ = true;
  // The smallest, as some include the time to connect.
  const Duration latency = clock_.now() - asked;
  report_.latency = std::min(report_.latency.value_or(latency), latency);
  if (reply->type == Reply::Type::error) {
    report_.unanswered.push_back(
        {std::move(text), fault_of_error(reply->text).text, /*refused=*/true});
  }
  co_return std::move(*reply);
}

bool Interview::is_hopeless() const {
  if (was_answered_ || !last_fault_) return false;
  const bool may_answer_others = last_fault_->kind == FaultKind::silent && server_.was_reached();
  return !may_answer_others || unanswered_ >= max_unanswered;
}

}  // namespace redlock::redis
