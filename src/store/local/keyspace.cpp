#include "store/local/keyspace.hpp"

namespace redlock::local {

bool SortedSet::put(const std::string& member, double score) {
  const auto [at, is_new] = scores_.try_emplace(member, score);
  if (!is_new) {
    ranking_.erase({at->second, member});
    at->second = score;
  }
  ranking_.emplace(score, member);
  return is_new;
}

bool SortedSet::erase(const std::string& member) {
  const auto at = scores_.find(member);
  if (at == scores_.end()) return false;
  ranking_.erase({at->second, member});
  scores_.erase(at);
  return true;
}

std::optional<double> SortedSet::score(const std::string& member) const {
  const auto at = scores_.find(member);
  if (at == scores_.end()) return std::nullopt;
  return at->second;
}

Entry* Keyspace::find(std::string_view key) {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return nullptr;
  if (!is_over(at->second)) return &at->second;
  entries_.erase(at);
  return nullptr;
}

Entry& Keyspace::put(const std::string& key, Value value) {
  Entry& entry = entries_[key];
  entry = Entry{std::move(value), std::nullopt};
  return entry;
}

bool Keyspace::erase(std::string_view key) {
  if (find(key) == nullptr) return false;
  entries_.erase(entries_.find(key));
  return true;
}

const Keyspace::Entries& Keyspace::live() {
  std::erase_if(entries_, [this](const auto& item) { return is_over(item.second); });
  return entries_;
}

}  // namespace redlock::local
