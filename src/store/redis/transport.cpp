#include "store/redis/transport.hpp"

namespace redlock::redis {

std::unique_ptr<Transport> make_transport(asio::any_io_executor executor, const Clock& clock,
                                          const Endpoint& endpoint,
                                          std::shared_ptr<const TlsContext> context) {
  auto transport = make_plain_transport(std::move(executor), clock, endpoint);
  return endpoint.tls ? make_tls_transport(std::move(transport), std::move(context), endpoint.host)
                      : std::move(transport);
}

}  // namespace redlock::redis
