#pragma once

#include <asio/any_io_executor.hpp>
#include <memory>

#include "store/redis/endpoint.hpp"
#include "store/redis/transport.hpp"
#include "support/clock.hpp"
#include "support/result.hpp"

namespace redlock::redis {

/// The sentinels that an endpoint of kind sentinel names. They know where the master is; whether it
/// is one, only ROLE there tells. Source of the procedure: "Guidelines for Redis clients with
/// support for Redis Sentinel".
class Sentinels {
 public:
  /// `clock` must outlive it; `context` is for sentinels with TLS.
  Sentinels(asio::any_io_executor executor, const Clock& clock, Endpoint endpoint,
            std::shared_ptr<const TlsContext> context);

  /// The master's endpoint, from the first sentinel that knows it; the one that answered last is
  /// asked first. Each gets a part of the time until `deadline`, so that some is left for the
  /// master.
  asio::awaitable<Result<Endpoint, Fault>> locate(Instant deadline);

 private:
  asio::awaitable<Result<Address, Fault>> ask(Address sentinel, Instant deadline);

  asio::any_io_executor executor_;
  const Clock& clock_;
  Endpoint endpoint_;
  std::shared_ptr<const TlsContext> context_;
};

/// A transport to the server that is the master when it opens.
std::unique_ptr<Transport> make_sentinel_transport(asio::any_io_executor executor,
                                                   const Clock& clock,
                                                   std::shared_ptr<Sentinels> sentinels,
                                                   std::shared_ptr<const TlsContext> context);

}  // namespace redlock::redis
