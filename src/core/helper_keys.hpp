#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/protocol.hpp"
#include "core/types.hpp"

namespace redlock {

/// The Redis Cluster hash slot of a key: CRC16-XMODEM of the key's hash tag (or of the whole key)
/// modulo 16384. Source: Redis Cluster specification, "Hash tags", and its appendix A.
std::uint16_t hash_slot(std::string_view key);

/// The names of the helper keys beside a lock in the same hash slot (K2): `redlock:NAME:{KEY}` when
/// KEY has no `}`; otherwise `redlock:NAME:{T}KEY`. T is KEY's own hash tag; if KEY has none, or an
/// empty one, T is the smallest decimal number in KEY's slot. No two resources share a helper key.
class HelperKeys {
 public:
  explicit HelperKeys(const Resource& resource);

  /// String: the fence counter.
  [[nodiscard]] std::string fence() const { return named(protocol::key::fence); }
  /// Hash: who holds the lease.
  [[nodiscard]] std::string owner() const { return named(protocol::key::owner); }
  /// Sorted set: tombstones of leases released by hand (R9).
  [[nodiscard]] std::string released() const { return named(protocol::key::released); }
  /// Sorted set: shares, ordered by when they end (M1).
  [[nodiscard]] std::string readers() const { return named(protocol::key::readers); }
  /// Hash: the data of each share.
  [[nodiscard]] std::string shares() const { return named(protocol::key::shares); }
  /// Hash: the reader in each slot (M2).
  [[nodiscard]] std::string slots() const { return named(protocol::key::slots); }
  /// Sorted set: waiters, ordered by ticket (Q1).
  [[nodiscard]] std::string queue() const { return named(protocol::key::queue); }
  /// Hash: the entry of each waiter.
  [[nodiscard]] std::string waiters() const { return named(protocol::key::waiters); }

  /// String: the last runs.
  [[nodiscard]] std::string last() const { return named(protocol::key::last); }

  /// All of them, in the order of the scripts' KEYS, where they follow the lock.
  [[nodiscard]] std::vector<std::string> all() const;

  /// The channel for a waiter's notifications. A channel is not a key and has no hash slot; in a
  /// cluster, the server that has the lock publishes on it.
  [[nodiscard]] std::string wake(std::string_view waiter) const {
    return std::string(protocol::word::wake_prefix).append(waiter).append(":").append(tail_);
  }

  /// A SCAN pattern that matches the owner keys, or all helper keys, of the resources whose keys
  /// begin with `prefix`. It may match those of some other resources, too.
  static std::string owners_like(std::string_view prefix);
  static std::string helpers_like(std::string_view prefix);

  /// Whether a key is the fence counter of some lock.
  static bool is_fence(std::string_view helper_key);

  /// The resource whose owner key this is; nullopt for any other key.
  static std::optional<Resource> resource_of_owner(std::string_view owner_key);

  /// The resource whose last runs this key has; nullopt for any other key.
  static std::optional<Resource> resource_of_last(std::string_view last_key);

 private:
  static std::optional<Resource> resource_of(std::size_t key, std::string_view helper_key);

  /// `key`: a position in KEYS.
  [[nodiscard]] std::string named(std::size_t key) const;
  std::string tail_;  ///< from the brace on
};

}  // namespace redlock
