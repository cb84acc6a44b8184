#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/types.hpp"
#include "support/boot_clock.hpp"

namespace redlock {

/// What `doctor` asks of one server.
struct DiagnosisRequest {
  /// The key to probe with, which another client may use; nothing: a key that no other client uses.
  std::optional<Resource> key;

  Duration server_timeout{};  ///< for each question
  Duration restart_guard{};   ///< zero: none, or too few servers for one
};

enum class Level {
  good,
  unknown,  ///< unknown, mostly for want of rights
  warning,  ///< it works, but something may go wrong
  bad,      ///< no vote
};

struct Finding {
  Level level;
  std::string probe;     ///< a name for programs: reach, software, role, rights, persistence, …
  std::string text;      ///< one clause for people, escaped for the terminal
  std::string advice{};  ///< what to do about it, likewise; empty: nothing
};

/// A fact that programs may want to know; nothing: the server does not tell.
struct Fact {
  std::string name;
  std::variant<std::monostate, bool, std::int64_t, std::string> value{};
};

/// A cell in the table of servers, as reported: not escaped.
struct Cell {
  std::string heading;  ///< the column; servers of one store have the same ones in the same order
  std::string text;
};

/// What one server reports of itself, judged by its store. What only a comparison with other
/// servers, or with our clock and timeout, can show is judged by engine/diagnosis.
struct Diagnosis {
  bool reachable = true;  ///< the server answered
  bool votes = false;     ///< now: it can be locked, and has been up for long enough
  std::vector<Finding> findings;
  std::vector<Fact> facts;
  std::vector<Cell> cells;

  /// The time between a question and its answer.
  std::optional<Duration> latency;

  /// Its wall clock minus ours; no more precise than half the latency.
  std::optional<Duration> clock_offset;

  /// Identifies its process: two servers with the same one are one server. Empty: unknown.
  std::string identity;

  /// Identifies its data: two servers with the same one copy each other. Empty: unknown.
  std::string lineage;
};

}  // namespace redlock
