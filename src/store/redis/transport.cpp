#include "store/redis/transport.hpp"

namespace redlock::redis {

std::unique_ptr<Transport> make_transport(asio::any_io_executor executor, const Clock& clock,
                                          const Endpoint& endpoint,
                                          const std::shared_ptr<TlsSource>& tls) {
  auto transport = make_plain_transport(std::move(executor), clock, endpoint);
  return endpoint.tls ? make_tls_transport(std::move(transport), tls, endpoint.host)
                      : std::move(transport);
}

}  // namespace redlock::redis
