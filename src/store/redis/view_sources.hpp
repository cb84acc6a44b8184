#pragma once

#include <set>
#include <vector>

#include "core/vote.hpp"
#include "store/redis/endpoint.hpp"

namespace redlock::redis {

/// The servers that know the masters of a deployment: its sentinels, or the nodes of a cluster.
/// What one of them reports, its view, is used until it fails; then the next one is asked (PROTOCOL
/// R13). This class keeps the order in which to ask them.
class ViewSources {
 public:
  explicit ViewSources(std::vector<Address> configured);

  /// All sources. The source of the view in use comes first; sources that were passed over come
  /// last, the latest at the end.
  [[nodiscard]] std::vector<Address> in_order() const;

  /// The view of this source is in use: ask it first from now on.
  void prefer(const Address& source);

  /// The view of this source failed, or it gave none: ask it last from now on.
  void pass_over(const Address& source);

  /// The view in use names these servers: they become sources. Sources that are neither configured
  /// nor named are dropped.
  void learn(const std::vector<Address>& named);

 private:
  void remove(const Address& source);

  std::set<Address> configured_;
  std::vector<Address> sources_;
  std::vector<Address> passed_over_;
};

/// Adds the fault of one source to those of others (an empty text: there were none). If the kinds
/// differ, the result is `silent`, the most cautious kind.
void add_fault(Fault& faults, const Fault& fault);

}  // namespace redlock::redis
