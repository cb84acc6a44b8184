#pragma once

#include <asio/any_io_executor.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>

#include "store/redis/connector.hpp"
#include "store/redis/endpoint.hpp"
#include "store/redis/transport.hpp"
#include "store/redis/view_sources.hpp"
#include "support/clock.hpp"
#include "support/result.hpp"

namespace redlock::redis {

/// The sentinels of an endpoint of kind sentinel. They know the address of the master, but only
/// ROLE on that server shows whether it is a master, and it is believed rather than any single
/// sentinel (PROTOCOL R13). Source of the procedure: "Guidelines for Redis clients with support for
/// Redis Sentinel".
class Sentinels : public std::enable_shared_from_this<Sentinels> {
 public:
  /// `clock` must outlive it.
  Sentinels(asio::any_io_executor executor, const Clock& clock, Endpoint endpoint,
            RedisServerOptions options);

  /// The master's endpoint, as named by the first sentinel that answers. The sentinel that was
  /// right last is asked first; one that is slow may still answer while the next is asked.
  ///
  /// After a master was disowned, all sentinels are compared: the largest config-epoch decides,
  /// then the number of sentinels that name the master; a disowned master loses only against an
  /// equal one. So a disowned master may be returned again; then no master counts as disowned.
  ///
  /// The sentinels get only a part of the time until `deadline`, so that some remains for the
  /// master.
  asio::awaitable<Result<Endpoint, Fault>> locate(Instant deadline);

  /// Whether the sentinels name a master that is not disowned. If so, locate() returns that one
  /// next, until `deadline`.
  asio::awaitable<bool> finds_another(Instant deadline);

  /// Notes that this server cannot be reached, is silent, or is not a master.
  void disown(const Address& master);

  /// Notes that the server that was located last is a master.
  void confirm();

 private:
  /// What one sentinel reports.
  struct View {
    Address master;
    std::optional<std::uint64_t> epoch;  ///< the config-epoch; nullopt: not reported
  };
  /// The most credible master, or why there is none.
  asio::awaitable<Result<Address, Fault>> search(Instant deadline);
  asio::awaitable<Result<Address, Fault>> first_named(Instant deadline);
  asio::awaitable<Result<Address, Fault>> best_named(Instant deadline);
  /// Keeps this alive until it ends.
  asio::awaitable<Result<View, Fault>> ask(Address sentinel, bool with_epoch, Instant deadline);

  asio::any_io_executor executor_;
  const Clock& clock_;
  Endpoint endpoint_;
  RedisServerOptions options_;
  ViewSources sources_;
  std::set<Address> disowned_;
  std::optional<Address> found_;  ///< what locate() returns next, without asking
  Instant found_until_;           ///< `found_` is valid until then
};

/// A transport to the server that is the master at the time of open(). A master that cannot be
/// reached is disowned, and the same open() tries the one that another sentinel names.
std::unique_ptr<Transport> make_sentinel_transport(asio::any_io_executor executor,
                                                   const Clock& clock,
                                                   std::shared_ptr<Sentinels> sentinels,
                                                   std::shared_ptr<TlsSource> tls);

}  // namespace redlock::redis
