#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/types.hpp"
#include "support/boot_clock.hpp"

namespace redlock {

/// What `doctor` wants to know of one server.
struct DiagnosisRequest {
  /// The key to probe with, which may be somebody's; nothing: one that nobody else uses.
  std::optional<Resource> key;

  Duration server_timeout{};  ///< for each question
  Duration restart_guard{};   ///< zero: none, or too few servers for one
};

enum class Level {
  good,
  unknown,  ///< it cannot be told, mostly for want of rights
  warning,  ///< it works, but something may go wrong
  bad,      ///< no vote
};

struct Finding {
  Level level;
  std::string probe;     ///< a word for programs: reach, software, role, rights, persistence, …
  std::string text;      ///< one clause for people, escaped for the terminal
  std::string advice{};  ///< what to do about it, likewise; empty: nothing
};

/// Something that programs may want to know; nothing: the server does not tell.
struct Fact {
  std::string name;
  std::variant<std::monostate, bool, std::int64_t, std::string> value{};
};

/// A cell in the table of servers, as it is told: not escaped.
struct Cell {
  std::string heading;  ///< the column; servers of one store have the same ones in the same order
  std::string text;
};

/// What one server tells of itself, judged by its store. What only a comparison with other servers
/// shows, or with our clock and timeout, is judged by engine/diagnosis.
struct Diagnosis {
  bool reachable = true;  ///< it could be asked
  bool votes = false;     ///< now: it can be locked, and has been up for long enough
  std::vector<Finding> findings;
  std::vector<Fact> facts;
  std::vector<Cell> cells;

  /// Of a question and its answer.
  std::optional<Duration> latency;

  /// Its wall clock less ours; not surer than half the latency.
  std::optional<Duration> clock_offset;

  /// Of its process: two servers with the same are one. Empty: not known.
  std::string identity;

  /// Of its data: two servers with the same copy each other. Empty: not known.
  std::string lineage;
};

}  // namespace redlock
