#include "output/openmetrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/exit_code.hpp"
#include "output/check.hpp"
#include "output/lock_text.hpp"
#include "support/encoding.hpp"
#include "support/text.hpp"

namespace redlock::output {
namespace {

/// nullopt: unknown.
using Value = std::optional<std::string>;

std::string seconds(Duration span) {
  return fmt::format("{:.3f}", std::chrono::duration<double>(span).count());
}

/// A lock, and the other inputs of its values.
struct Subject {
  const KeyStatus& key;
  std::optional<std::size_t> slots;  ///< the number of slots, if it is given
  Milliseconds at;                   ///< wall clock

  [[nodiscard]] const Inspection& inspection() const { return key.inspection; }
  [[nodiscard]] bool is_known() const { return key.inspection.state != InspectState::unavailable; }
};

Value held(const Subject& of) {
  if (!of.is_known()) return std::nullopt;
  return of.inspection().state == InspectState::held ? "1" : "0";
}

Value held_seconds(const Subject& of) {
  const auto span = held_for(of.inspection());
  return span ? Value(seconds(*span)) : std::nullopt;
}

Value waiters(const Subject& of) {
  if (!of.is_known()) return std::nullopt;
  return std::to_string(of.inspection().parties.waiters);
}

Value max_wait(const Subject& of) {
  if (!of.is_known()) return std::nullopt;
  Duration longest{};
  for (const Waiting& waiting : of.inspection().parties.first_waiters)
    longest = std::max(longest, waiting.since);
  return seconds(longest);
}

std::optional<TakenSlots> slots_of(const Subject& of) {
  if (of.inspection().state == InspectState::free && of.slots) return TakenSlots{0, *of.slots};
  return taken_slots(of.inspection().parties, of.slots);
}

Value slots_taken(const Subject& of) {
  const auto slots = slots_of(of);
  return slots ? Value(std::to_string(slots->taken)) : std::nullopt;
}

Value slots(const Subject& of) {
  const auto slots = slots_of(of);
  return slots && slots->limit > 0 ? Value(std::to_string(slots->limit)) : std::nullopt;
}

/// In whole seconds, so that the value hardly varies with the moment at which the clocks are read.
Value last_success(const Subject& of) {
  const auto& run = of.inspection().runs.success;
  if (!run) return std::nullopt;
  return std::to_string(std::chrono::round<std::chrono::seconds>(of.at - run->started).count());
}

Value last_duration(const Subject& of) {
  const auto& run = of.inspection().runs.last;
  return run && run->ended ? Value(seconds(run->started - *run->ended)) : std::nullopt;
}

Value last_exit(const Subject& of) {
  const auto& run = of.inspection().runs.last;
  if (run && run->exit_code) return std::to_string(*run->exit_code);
  if (run && run->signal) return std::to_string(signal_exit_base + *run->signal);
  return std::nullopt;
}

Value skips(const Subject& of) {
  const LastRuns& runs = of.inspection().runs;
  if (runs.skips) return std::to_string(runs.skips->number);
  return runs.last ? Value("0") : std::nullopt;
}

struct Metric {
  std::string_view name;
  std::string_view unit;  ///< the suffix of the name; empty: none
  std::string_view help;
  Value (*value)(const Subject&);
};

constexpr std::array metrics{
    Metric{"redlock_lock_held", "", "Whether the lock is held, shared or kept (1), or free (0).",
           held},
    Metric{"redlock_lock_held_seconds", "seconds",
           "How long a command has held the lock, of several the longest; 0: none does.",
           held_seconds},
    Metric{"redlock_lock_waiters", "", "How many wait for the lock.", waiters},
    Metric{"redlock_lock_longest_wait_seconds", "seconds",
           "How long the one that waits longest has waited.", max_wait},
    Metric{"redlock_lock_slots_taken", "", "How many slots of the lock are taken.", slots_taken},
    Metric{"redlock_lock_slots", "", "How many slots the lock has.", slots},
    Metric{"redlock_lock_last_success_timestamp_seconds", "seconds",
           "When the last successful run started, in Unix time.", last_success},
    Metric{"redlock_lock_last_run_duration_seconds", "seconds",
           "How long the last run held the lock.", last_duration},
    Metric{"redlock_lock_last_run_exit_status", "",
           "The exit status of the last run's command, 128+n after signal n.", last_exit},
    Metric{"redlock_lock_skips", "",
           "How many runs with --record-skips did not run since the last run, at least.", skips},
};

std::string escaped(std::string_view text) {
  std::string label;
  for (const char c : text) {
    if (c == '\\' || c == '"') label += '\\';
    if (c == '\n') {
      label += "\\n";
    } else {
      label += c;
    }
  }
  return label;
}

std::string labels_of(const Resource& resource) {
  const std::string shown = to_valid_utf8(resource.key());
  std::string labels = fmt::format("key=\"{}\"", escaped(shown));
  if (shown != resource.key())
    labels += fmt::format(",key_base64=\"{}\"", encode_base64url(resource.key()));
  return labels;
}

}  // namespace

OpenMetrics::OpenMetrics(std::optional<std::size_t> slots)
    : slots_(slots), samples_(metrics.size()) {}

void OpenMetrics::add(const KeyStatus& key, Milliseconds at) {
  const std::string labels = labels_of(key.resource);
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    if (const Value value = metrics[i].value({key, slots_, at}))
      samples_[i] += fmt::format("{}{{{}}} {}\n", metrics[i].name, labels, *value);
  }
}

std::string OpenMetrics::text() && {
  std::string text;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    const Metric& metric = metrics[i];
    text += fmt::format("# TYPE {} gauge\n", metric.name);
    if (!metric.unit.empty()) text += fmt::format("# UNIT {} {}\n", metric.name, metric.unit);
    text += fmt::format("# HELP {} {}\n", metric.name, metric.help);
    text += std::exchange(samples_[i], {});
  }
  return text + "# EOF\n";
}

}  // namespace redlock::output
