#pragma once

#include <set>
#include <vector>

#include "core/vote.hpp"
#include "store/redis/endpoint.hpp"

namespace redlock::redis {

/// The servers that know where the masters of a deployment are: its sentinels, or the nodes of a
/// cluster. What one of them says, its view, is used until it fails; then the next is asked
/// (PROTOCOL R13). This keeps the order in which they are to be asked.
class ViewSources {
 public:
  explicit ViewSources(std::vector<Address> configured);

  /// The one whose view is in use first; those that were passed over last, the latest at the end.
  [[nodiscard]] std::vector<Address> in_order() const;

  /// Its view is used: it is asked first from now on.
  void prefer(const Address& source);

  /// Its view failed, or it gave none: it is asked last from now on.
  void pass_over(const Address& source);

  /// The servers that the view in use names: they are sources, too, and what is neither configured
  /// nor named is none any more.
  void learn(const std::vector<Address>& named);

 private:
  void remove(const Address& source);

  std::set<Address> configured_;
  std::vector<Address> sources_;
  std::vector<Address> passed_over_;
};

/// Adds the fault of one source to those of others (an empty text: of none so far). Silence hides
/// more than any answer does.
void add_fault(Fault& faults, const Fault& fault);

}  // namespace redlock::redis
