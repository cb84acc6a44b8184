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

/// A configured server, and how to talk to it.
struct ServerLink {
  std::shared_ptr<const ServerAddress> address;
  LinkOptions options;
};

/// What is known of a set of servers.
struct SetDiagnosis {
  std::vector<std::string> names;  ///< in configured order
  std::vector<Diagnosis> servers;  ///< likewise
  std::size_t voting = 0;
  std::size_t needed = 0;      ///< a quorum
  Level worst = Level::good;   ///< warning or bad if any finding is; unknown does not count
  bool has_duplicate = false;  ///< two are the same one: no command locks with such a set

  [[nodiscard]] bool has_quorum() const noexcept { return voting >= needed; }
};

/// Judges what the servers' own diagnoses do not. Of servers that are the same one, or copy each
/// other, only the first keeps its vote. Clocks that differ from ours and slow answers get a
/// warning. Pure.
SetDiagnosis judge(std::vector<std::string> names, std::vector<Diagnosis> servers,
                   Duration server_timeout);

/// Diagnoses all servers at the same time, and judges the set. `clock` must outlive it.
asio::awaitable<SetDiagnosis> diagnose(asio::any_io_executor executor, const Clock& clock,
                                       std::vector<ServerLink> servers, DiagnosisRequest request);

}  // namespace redlock
