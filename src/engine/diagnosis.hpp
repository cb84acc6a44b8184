#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "store/diagnosis.hpp"
#include "store/registry.hpp"
#include "support/clock.hpp"

namespace redlock {

/// A configured server, and how to connect to it.
struct ServerLink {
  std::shared_ptr<const ServerAddress> address;
  LinkOptions options;
};

/// The diagnosis of a set of servers.
struct SetDiagnosis {
  std::vector<std::string> names;  ///< in configured order
  std::vector<Diagnosis> servers;  ///< in configured order
  std::size_t voting = 0;          ///< number of servers that vote
  std::size_t needed = 0;          ///< the quorum
  Level worst = Level::good;       ///< the worst level of any finding, where unknown counts as good
  std::size_t unknown = 0;         ///< number of findings that are unknown
  bool has_duplicate = false;      ///< two of them are the same server: every command refuses such
                                   ///< a set

  /// Nothing is wrong, as far as can be seen.
  [[nodiscard]] bool is_fit() const noexcept { return worst == Level::good; }
  [[nodiscard]] bool has_quorum() const noexcept { return voting >= needed; }
};

/// Adds the findings that need a comparison. Of servers that are the same one, or copy each other's
/// data, only the first keeps its vote. Clocks that differ from ours and slow answers get a
/// warning. Pure.
SetDiagnosis judge(std::vector<std::string> names, std::vector<Diagnosis> servers,
                   Duration server_timeout);

/// Diagnoses all servers at the same time, then the set. `clock` must outlive the coroutine.
asio::awaitable<SetDiagnosis> diagnose(asio::any_io_executor executor, const Clock& clock,
                                       std::vector<ServerLink> servers, DiagnosisRequest request);

}  // namespace redlock
