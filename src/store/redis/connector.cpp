#include "store/redis/connector.hpp"

#include "store/redis/command.hpp"
#include "store/redis/sentinel.hpp"

namespace redlock::redis {

Connector::Connector(asio::any_io_executor executor, const Clock& clock, Endpoint endpoint,
                     RedisServerOptions options)
    : executor_(std::move(executor)),
      clock_(clock),
      endpoint_(std::move(endpoint)),
      options_(std::move(options)) {
  if (endpoint_.kind == Endpoint::Kind::sentinel) {
    sentinels_ = std::make_shared<Sentinels>(executor_, clock_, endpoint_, options_);
  }
}

std::optional<std::string> Connector::password() const {
  return endpoint_.current_password();
}

std::shared_ptr<Connection> Connector::open(Instant deadline,
                                            const std::optional<Command>& greeting,
                                            const std::optional<std::string>& password) const {
  auto transport = sentinels_ ? make_sentinel_transport(executor_, clock_, sentinels_, options_.tls)
                              : make_transport(executor_, clock_, endpoint_, options_.tls);
  auto connection = std::make_shared<Connection>(executor_, clock_, std::move(transport),
                                                 login_commands(endpoint_, password), greeting,
                                                 /*demands_master=*/sentinels_ != nullptr);
  connection->set_server_timeout(options_.server_timeout);
  if (endpoint_.password_is_general && options_.needless_password) {
    connection->allow_needless_password(
        [notify = options_.needless_password, name = endpoint_.name()] { notify(name); });
  }
  connection->start(deadline);
  return connection;
}

asio::awaitable<bool> Connector::finds_another_master(Instant deadline) const {
  if (!sentinels_) co_return false;
  co_return co_await sentinels_->finds_another(deadline);
}

}  // namespace redlock::redis
