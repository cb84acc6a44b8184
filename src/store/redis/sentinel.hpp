#pragma once

#include <asio/any_io_executor.hpp>
#include <cstdint>
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

  /// The master's endpoint. It is the one that the first sentinel names which answers; that which
  /// was right last is asked first. After a master was disowned, all sentinels are compared: the
  /// largest config-epoch decides, then the number of those that name it, and only between equals
  /// that one is disowned. So a disowned master may be given again; then none counts as disowned
  /// any more. The sentinels get a part of the time until `deadline`, so that some is left for the
  /// master.
  asio::awaitable<Result<Endpoint, Fault>> locate(Instant deadline);

  /// Whether the sentinels name a master that is not disowned: then locate() gives that one next,
  /// until `deadline`.
  asio::awaitable<bool> finds_another(Instant deadline);

  /// This server cannot be reached, is silent, or is no master.
  void disown(const Address& master);

  /// The server that was located last has turned out to be a master.
  void confirm();

 private:
  /// What one sentinel says.
  struct View {
    Address master;
    std::optional<std::uint64_t> epoch;  ///< of the fail-over to it; nothing: it does not tell
  };
  /// The master to believe, or why there is none.
  asio::awaitable<Result<Address, Fault>> search(Instant deadline);
  asio::awaitable<Result<Address, Fault>> first_named(Instant deadline);
  asio::awaitable<Result<Address, Fault>> best_named(Instant deadline);
  asio::awaitable<Result<View, Fault>> ask(Address sentinel, bool with_epoch, Instant deadline);

  asio::any_io_executor executor_;
  const Clock& clock_;
  Endpoint endpoint_;
  std::shared_ptr<TlsSource> tls_;
  ViewSources sources_;
  std::set<Address> disowned_;
  std::optional<Address> found_;  ///< what locate() gives next, without asking
  Instant found_until_;           ///< it is of use until then
};

/// A transport to the server that is the master when it opens. A master that cannot be reached is
/// disowned, and the one that another sentinel names is tried in the same attempt.
std::unique_ptr<Transport> make_sentinel_transport(asio::any_io_executor executor,
                                                   const Clock& clock,
                                                   std::shared_ptr<Sentinels> sentinels,
                                                   std::shared_ptr<TlsSource> tls);

}  // namespace redlock::redis
