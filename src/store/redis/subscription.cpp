#include "store/redis/subscription.hpp"

#include <utility>

#include "store/redis/error_reply.hpp"
#include "store/script_votes.hpp"

namespace redlock::redis {

asio::awaitable<std::optional<Fault>> Subscription::start(
    std::string channel, std::function<void(Notification)> notified, Instant deadline) {
  stop();
  const auto connection = connector_.open(deadline, std::nullopt, connector_.password());
  connection_ = connection;
  connection->on_message([notified = std::move(notified), channel](const Reply* message) {
    if (message == nullptr) return notified(Notification::disconnected);
    const auto& part = message->elements;
    if (part.size() != 3 || part[0].text != "message" || part[1].text != channel) return;
    if (const auto call = notification_from(part[2].text)) notified(*call);
  });

  Command subscribe{"SUBSCRIBE", channel};
  const auto reply = co_await connection->request(subscribe, ReplyLimits{}, deadline);
  std::optional<Fault> fault;
  if (!reply) {
    fault = reply.error();
  } else if (reply->type == Reply::Type::error) {
    fault = fault_of_error(reply->text);
  } else if (reply->type != Reply::Type::array) {
    fault = Fault{FaultKind::garbage, "malformed SUBSCRIBE reply"};
  } else if (connection_ != connection || !connection->usable()) {
    fault = Fault{FaultKind::silent, "the connection was closed at once"};
  }
  if (fault && connection_ == connection) stop();
  co_return fault;
}

void Subscription::disconnect() {
  if (connection_) std::exchange(connection_, nullptr)->abort();
}

void Subscription::stop() {
  if (!connection_) return;
  connection_->on_message(nullptr);
  std::exchange(connection_, nullptr)->abort();
}

}  // namespace redlock::redis
