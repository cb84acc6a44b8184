#pragma once

#include <asio/any_io_executor.hpp>
#include <memory>
#include <optional>
#include <set>

#include "store/redis/endpoint.hpp"
#include "store/redis/transport.hpp"
#include "store/redis/view_sources.hpp"
#include "support/clock.hpp"
#include "support/result.hpp"

namespace redlock::redis {

/// The sentinels that an endpoint of kind sentinel names. They know where the master is; whether it
/// is one, only ROLE there tells. No single one is believed against the server that it names
/// (PROTOCOL R13). Source of the procedure: "Guidelines for Redis clients with support for Redis
/// Sentinel".
class Sentinels {
 public:
  /// `clock` must outlive it; `tls` is for sentinels with TLS.
  Sentinels(asio::any_io_executor executor, const Clock& clock, Endpoint endpoint,
            std::shared_ptr<TlsSource> tls);

  /// The master's endpoint, from the first sentinel that names one which is not disowned; where all
  /// name such a one, that is tried again, and no master counts as disowned any more. The sentinel
  /// that was right last is asked first. Each gets a part of the time until `deadline`, so that
  /// some is left for the master.
  asio::awaitable<Result<Endpoint, Fault>> locate(Instant deadline);

  /// Whether some sentinel names a master that is not disowned: then locate() gives that one next.
  asio::awaitable<bool> finds_another(Instant deadline);

  /// This server cannot be reached, is silent, or is no master.
  void disown(const Address& master);

  /// The server that was located last has turned out to be a master.
  void confirm() { disowned_.clear(); }

 private:
  /// What the sentinels name, in their order, up to one that is not disowned.
  struct Search {
    std::optional<Address> master;
    std::optional<Address> disowned;  ///< the first such that was named
    Fault faults;                     ///< of the sentinels that name none
  };
  asio::awaitable<Search> search(Instant deadline);
  asio::awaitable<Result<Address, Fault>> ask(Address sentinel, Instant deadline);

  asio::any_io_executor executor_;
  const Clock& clock_;
  Endpoint endpoint_;
  std::shared_ptr<TlsSource> tls_;
  ViewSources sources_;
  std::set<Address> disowned_;
  std::optional<Address> found_;  ///< what locate() gives next, without asking
};

/// A transport to the server that is the master when it opens. A master that cannot be reached is
/// disowned, and the one that another sentinel names is tried in the same attempt.
std::unique_ptr<Transport> make_sentinel_transport(asio::any_io_executor executor,
                                                   const Clock& clock,
                                                   std::shared_ptr<Sentinels> sentinels,
                                                   std::shared_ptr<TlsSource> tls);

}  // namespace redlock::redis
