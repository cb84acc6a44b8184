#include "output/past_runs.hpp"

#include <fmt/format.h>

#include <string_view>

#include "output/outcome.hpp"
#include "output/request_text.hpp"
#include "output/text_parts.hpp"
#include "support/duration.hpp"
#include "support/text.hpp"

namespace redlock::output {
namespace {

/// `12m, exit 0`.
std::string held_and_end_text(const PastRun& run, Duration ended) {
  std::string text = format_duration(run.started - ended);
  if (run.exit_code) text += fmt::format(", exit {}", *run.exit_code);
  if (run.signal) text += fmt::format(", signal {}", *run.signal);
  if (run.result == word_of(CommandResult::timed_out)) return text + ", timed out (--max-hold)";
  if (run.result != word_of(CommandResult::released))
    text += ", " + escape_for_terminal(run.result);
  if (run.result == word_of(CommandResult::stopped) && run.owner && run.owner->stop_request)
    text += " by " + request_text(*run.owner->stop_request);
  return text;
}

/// ` (12m, exit 0)`; empty if the end of the run was not recorded.
std::string end_of_run_text(const PastRun& run) {
  return run.ended ? fmt::format(" ({})", held_and_end_text(run, *run.ended)) : std::string();
}

}  // namespace

std::string past_run_text(const PastRun& run) {
  std::string text = format_duration(run.started) + " ago";
  if (run.owner && !run.owner->host.empty()) text += " on " + escape_for_terminal(run.owner->host);
  return text + end_of_run_text(run);
}

std::vector<std::string> runs_lines(const LastRuns& runs,
                                    const std::function<std::string(Duration ago)>& moment) {
  std::vector<std::string> lines;
  const auto add = [&](std::string_view name, const PastRun& run) {
    lines.push_back(
        fmt::format("{} {} ago, at {}{}{}", name, format_duration(run.started), moment(run.started),
                    run.owner ? ": " + former_owner_text(*run.owner) : "", end_of_run_text(run)));
  };
  if (runs.last) add("last run", *runs.last);
  if (!runs.last && runs.unreadable)
    lines.push_back("last run not shown: " + runs.unreadable->text);
  if (runs.newer) lines.emplace_back("last run recorded by a newer version: upgrade redlock-cli");
  const bool is_last = runs.last && runs.success && runs.last->fence == runs.success->fence;
  if (runs.success && !is_last) add("last success", *runs.success);
  // So that a misspelt key does not look like a lock that happens to be free.
  if (lines.empty()) lines.emplace_back("no runs are recorded");
  return lines;
}

std::vector<std::string> kept_runs_lines(const std::vector<PastRun>& kept, const LastRuns& runs,
                                         const std::function<std::string(Duration ago)>& moment) {
  std::vector<std::string> lines;
  for (const PastRun& run : kept) {
    lines.push_back(fmt::format("{} ago, at {}{}", format_duration(run.started),
                                moment(run.started),
                                run.owner ? ": " + former_owner_text(*run.owner) : ""));
    if (run.ended) {
      lines.back() += fmt::format(" (waited {}, held {})", format_duration(run.waited),
                                  held_and_end_text(run, *run.ended));
    }
  }
  if (runs.unreadable) lines.push_back("runs not shown: " + runs.unreadable->text);
  if (runs.newer) lines.emplace_back("a run recorded by a newer version: upgrade redlock-cli");
  if (lines.empty()) lines.emplace_back("no runs are recorded");
  return lines;
}

std::string skips_text(const Skips& skips, const std::function<std::string(Duration ago)>& moment) {
  return fmt::format("skipped at least {} since {} ({})",
                     skips.number == 1 ? "once" : fmt::format("{} times", skips.number),
                     moment(skips.first), escape_for_terminal(skips.why));
}

std::string check_text(const LastRuns& runs, Duration max_age, bool recent) {
  std::string text = runs.success ? "last success " + past_run_text(*runs.success)
                                  : std::string("no successful run is known");
  if (runs.success)
    text += fmt::format(", {} {}", recent ? "within" : "not within", format_duration(max_age));
  const bool failed_since = runs.last && (!runs.success || runs.last->fence != runs.success->fence);
  if (failed_since) text += "; last run " + past_run_text(*runs.last);
  const Duration kept_for = runs.kept_for.value_or(protocol::run_life);
  if (!runs.success && max_age > kept_for) {
    text += fmt::format("; runs are remembered for {} only, less than --max-age {}",
                        format_duration(kept_for), format_duration(max_age));
  }
  return text;
}

}  // namespace redlock::output
