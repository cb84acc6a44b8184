#pragma once

#include <asio/any_io_executor.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "store/redis/redis_server.hpp"
#include "store/redis/topology.hpp"
#include "store/redis/view_sources.hpp"

namespace redlock::redis {

/// Which server of a cluster is the master of a slot, as the nodes of the cluster report it.
///
/// One node's view of the cluster is used until it fails: it names no master of the slot, or that
/// master cannot be reached, refuses, is not a master, or is silent. Then the views of several
/// nodes are compared (PROTOCOL R13).
class SlotMasters {
 public:
  /// The server at this address.
  using NodeAt = std::function<std::shared_ptr<RedisServer>(const Address&)>;

  /// `configured`: the nodes that are asked first. `changed` is called whenever a slot may have got
  /// another master. `clock` must outlive this.
  SlotMasters(asio::any_io_executor executor, const Clock& clock, std::vector<Address> configured,
              NodeAt node_at, std::function<void()> changed);

  /// The servers that a view wrongly named as the master in one attempt, with their faults.
  using Refuted = std::map<Address, Fault>;

  /// The master of the slot that is not refuted, or why no view names one. Asks the nodes if the
  /// view in use does not name it. `refuted` must outlive the coroutine.
  asio::awaitable<Result<Address, Fault>> locate(std::uint16_t slot, const Refuted& refuted,
                                                 Instant deadline);

  /// The master of the slot in the view in use; nullptr: it names none.
  [[nodiscard]] const Address* known(std::uint16_t slot) const;

  /// The trustworthy views that have a master of every slot, the best first; at least one, or a
  /// fault. The best one is used from now on.
  asio::awaitable<Result<std::vector<ClusterView>, Fault>> complete_views(Instant deadline);

  /// Notes that this master failed for that slot. If the view in use names it, the view failed,
  /// too.
  void doubt(const Address& master, std::uint16_t slot);

  /// Notes that the master of this slot answered, and is no longer in doubt.
  void confirm(std::uint16_t slot);

  /// Notes a MOVED: the slot has this master now.
  void moved(std::uint16_t slot, const Address& master);

  /// Drops the view in use.
  void forget() { slots_.clear(); }

  /// The nodes that may be asked for a view, and the masters of the view in use.
  [[nodiscard]] std::set<Address> named() const;

 private:
  /// Finds a view with a master of the slot that is not refuted, and uses it. A view that names the
  /// master at which the last view failed is used only if there is no other.
  asio::awaitable<std::optional<Fault>> find_view(std::uint16_t slot, const Refuted& refuted,
                                                  Instant deadline);

  /// While no view has failed: the first one that a node gives.
  asio::awaitable<std::optional<Fault>> first_view(std::uint16_t slot, const Refuted& refuted,
                                                   Instant deadline);
  /// After a view failed: the best of several.
  asio::awaitable<std::optional<Fault>> best_view(std::uint16_t slot, const Refuted& refuted,
                                                  Instant deadline);

  /// The views of several nodes, and the faults of the nodes without one.
  struct Views {
    std::vector<ClusterView> views;
    Fault faults;
  };
  asio::awaitable<Views> ask_for_views(std::vector<Address> nodes, bool with_epoch,
                                       Instant deadline);

  void use(ClusterView view);

  /// The master at which a view failed, and for which slot.
  struct Doubt {
    Address master;
    std::uint16_t slot;
  };

  asio::any_io_executor executor_;
  const Clock& clock_;
  NodeAt node_at_;
  std::function<void()> changed_;
  ViewSources sources_;
  std::vector<SlotRange> slots_;  ///< of the view in use; the first range with a slot applies
  Address source_;                ///< the node that gave the view in use
  std::optional<Doubt> doubt_;    ///< until the slot has a master that answers
};

}  // namespace redlock::redis
