#include "store/local/keyspace.hpp"

namespace redlock::local {

bool SortedSet::put(std::string_view member, double score) {
  const auto at = scores_.find(member);
  const bool is_new = at == scores_.end();
  if (is_new) {
    scores_.emplace(member, score);
  } else {
    ranking_.erase({at->second, at->first});
    at->second = score;
  }
  ranking_.emplace(score, member);
  return is_new;
}

bool SortedSet::erase(std::string_view member) {
  const auto at = scores_.find(member);
  if (at == scores_.end()) return false;
  ranking_.erase({at->second, at->first});
  scores_.erase(at);
  return true;
}

std::optional<double> SortedSet::score(std::string_view member) const {
  const auto at = scores_.find(member);
  if (at == scores_.end()) return std::nullopt;
  return at->second;
}

Entry* Keyspace::find(std::string_view key) {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return nullptr;
  if (!has_expired(at->second)) return &at->second;
  entries_.erase(at);
  return nullptr;
}

Entry& Keyspace::put(std::string_view key, Value value) {
  auto at = entries_.find(key);
  if (at == entries_.end()) at = entries_.try_emplace(std::string(key)).first;
  at->second = Entry{std::move(value), std::nullopt};
  return at->second;
}

bool Keyspace::erase(std::string_view key) {
  if (find(key) == nullptr) return false;
  entries_.erase(entries_.find(key));
  return true;
}

const Keyspace::Entries& Keyspace::live() {
  std::erase_if(entries_, [this](const auto& item) { return has_expired(item.second); });
  return entries_;
}

}  // namespace redlock::local
