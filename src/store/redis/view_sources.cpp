#include "store/redis/view_sources.hpp"

#include <algorithm>
#include <utility>

namespace redlock::redis {

ViewSources::ViewSources(std::vector<Address> configured)
    : configured_(configured.begin(), configured.end()), sources_(std::move(configured)) {}

std::vector<Address> ViewSources::in_order() const {
  std::vector<Address> all = sources_;
  all.insert(all.end(), passed_over_.begin(), passed_over_.end());
  return all;
}

void ViewSources::prefer(const Address& source) {
  remove(source);
  sources_.insert(sources_.begin(), source);
}

void ViewSources::pass_over(const Address& source) {
  remove(source);
  passed_over_.push_back(source);
}

void ViewSources::learn(const std::vector<Address>& named) {
  std::set<Address> known(named.begin(), named.end());
  known.insert(configured_.begin(), configured_.end());
  const auto is_unknown = [&](const Address& source) { return !known.contains(source); };
  std::erase_if(sources_, is_unknown);
  std::erase_if(passed_over_, is_unknown);
  for (const Address& source : sources_) known.erase(source);
  for (const Address& source : passed_over_) known.erase(source);
  // The remaining sources are new. They keep the order of the view.
  for (const Address& source : named) {
    if (known.erase(source) > 0) sources_.push_back(source);
  }
}

void ViewSources::remove(const Address& source) {
  std::erase(sources_, source);
  std::erase(passed_over_, source);
}

void add_fault(Fault& faults, const Fault& fault) {
  const bool is_first = faults.text.empty();
  faults.kind = is_first || faults.kind == fault.kind ? fault.kind : FaultKind::silent;
  faults.text += (is_first ? "" : "; ") + fault.text;
}

}  // namespace redlock::redis
