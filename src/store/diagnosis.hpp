#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/types.hpp"
#include "support/boot_clock.hpp"

namespace redlock {

/// How `doctor` diagnoses one server.
struct DiagnosisRequest {
  /// The key to probe with, which other clients may use; nullopt: a new key that no other client
  /// uses.
  std::optional<Resource> key;

  Duration server_timeout{};  ///< for each question
  Duration restart_guard{};   ///< zero: no guard, or too few servers for one
};

enum class Level {
  good,
  unknown,  ///< could not be determined, mostly because a right is missing
  warning,  ///< the server works, but something may go wrong
  bad,      ///< the server has no vote
};

struct Finding {
  Level level;
  std::string probe;     ///< a name for programs: reach, software, role, rights, persistence, …
  std::string text;      ///< one clause for the user, escaped for the terminal
  std::string advice{};  ///< what to do about it, escaped as well; may be empty
};

/// A fact for programs; std::monostate: the server does not report it.
struct Fact {
  std::string name;
  std::variant<std::monostate, bool, std::int64_t, std::string> value{};
};

/// A cell in the table of servers, as the server reported it: not escaped.
struct Cell {
  std::string heading;  ///< the column; those that servers share stand in the same order
  std::string text;
};

/// The diagnosis of one server by its store. engine/diagnosis adds the findings that need a
/// comparison with other servers, or with our clock and timeout.
struct Diagnosis {
  bool reachable = true;  ///< the server answered
  bool votes = false;     ///< locks work there now, and it has been up for long enough
  std::vector<Finding> findings;
  std::vector<Fact> facts;
  std::vector<Cell> cells;

  /// The time between a question and its answer.
  std::optional<Duration> latency;

  /// Its wall clock minus ours; the error is at most half the latency.
  std::optional<Duration> clock_offset;

  /// Identifies its process: two servers with the same one are one server. Empty: unknown.
  std::string identity;

  /// Identifies its data: two servers with the same one copy each other. Empty: unknown.
  std::string lineage;
};

}  // namespace redlock
