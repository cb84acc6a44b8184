#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "support/boot_clock.hpp"

namespace redlock::local {

/// A hash's fields in the order in which they were added, which is also the order of a small hash
/// in Redis.
using Hash = std::vector<std::pair<std::string, std::string>>;

/// A set whose members are ordered by score, then by bytes. Never holds a NaN.
class SortedSet {
 public:
  using Ranking = std::set<std::pair<double, std::string>>;

  /// Adds the member, or changes its score. Returns whether it is new.
  bool put(std::string_view member, double score);
  bool erase(std::string_view member);
  [[nodiscard]] std::optional<double> score(std::string_view member) const;
  [[nodiscard]] const Ranking& ranking() const noexcept { return ranking_; }
  [[nodiscard]] std::size_t size() const noexcept { return ranking_.size(); }

 private:
  std::map<std::string, double, std::less<>> scores_;
  Ranking ranking_;
};

using Value = std::variant<std::string, Hash, SortedSet>;

struct Entry {
  Value value;
  std::optional<Milliseconds>
      expires;  ///< on the keyspace's clock; the entry exists up to and including this instant
};

/// Orders keys by length first, which distinguishes most keys of a lock: their names have the same
/// beginning and end.
struct ShorterFirst {
  using is_transparent = void;
  bool operator()(std::string_view one, std::string_view other) const noexcept {
    return one.size() != other.size() ? one.size() < other.size() : one < other;
  }
};

/// Redis's data model as far as the lock scripts need it: strings, hashes and sorted sets with
/// expiries, in memory. Entirely passive: the time is the one given to set_time(), and an expired
/// key is deleted at the next access. See commands.hpp for the commands.
class Keyspace {
 public:
  using Entries = std::map<std::string, Entry, ShorterFirst>;

  /// Publishes a message to the subscribers of a channel, and returns their number. May be null:
  /// there are no subscribers.
  using Publish = std::function<std::int64_t(std::string_view channel, std::string_view message)>;

  /// The number of subscribers of a channel.
  using Subscribers = std::function<std::int64_t(std::string_view channel)>;

  explicit Keyspace(Publish publish = {}, Subscribers subscribers = {})
      : publish_(std::move(publish)), subscribers_(std::move(subscribers)) {}

  /// Sets the time since the epoch. It does not advance until it is set again, so that a script
  /// sees a single instant.
  void set_time(std::chrono::microseconds now) noexcept { now_ = now; }
  [[nodiscard]] std::chrono::microseconds time() const noexcept { return now_; }
  [[nodiscard]] Milliseconds now() const noexcept {
    return std::chrono::duration_cast<Milliseconds>(now_);
  }

  /// The entry of the key; null if there is none or it has expired. Valid until the key is erased.
  Entry* find(std::string_view key);
  /// Sets the value of the key, replacing any former entry.
  Entry& put(std::string_view key, Value value);
  bool erase(std::string_view key);

  std::int64_t publish(std::string_view channel, std::string_view message) {
    return publish_ ? publish_(channel, message) : 0;
  }
  std::int64_t subscribers(std::string_view channel) {
    return subscribers_ ? subscribers_(channel) : 0;
  }

  /// All keys that have not expired.
  const Entries& live();
  /// All keys, including expired ones that have not been accessed since.
  [[nodiscard]] const Entries& all() const noexcept { return entries_; }
  /// Replaces all content.
  void load(Entries entries) { entries_ = std::move(entries); }

 private:
  [[nodiscard]] bool has_expired(const Entry& entry) const {
    return entry.expires && *entry.expires < now();
  }

  Entries entries_;
  std::chrono::microseconds now_{};
  Publish publish_;
  Subscribers subscribers_;
};

}  // namespace redlock::local
