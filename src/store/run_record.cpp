#include "store/run_record.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/protocol.hpp"
#include "store/owner_record.hpp"
#include "store/script.hpp"
#include "support/number.hpp"

namespace redlock {
namespace {

namespace line = protocol::line;

constexpr std::int64_t max_status = 255;

template <std::size_t count>
std::string join(const std::array<std::string, count>& fields) {
  std::string text = fields[0];
  for (std::size_t i = 1; i < count; ++i) text += ' ' + fields[i];
  return text;
}

/// Splits a line into `count` fields, the last of which is the rest of the line; nullopt if there
/// are fewer.
template <std::size_t count>
std::optional<std::array<std::string_view, count>> split(std::string_view text) {
  std::array<std::string_view, count> fields;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    const auto space = text.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    fields[i] = text.substr(0, space);
    text.remove_prefix(space + 1);
  }
  fields.back() = text;
  return fields;
}

std::optional<int> status_in(std::string_view text) {
  const auto number = whole_number(text);
  if (!number || *number < 0 || *number > max_status) return std::nullopt;
  return static_cast<int>(*number);
}

/// nullopt for a line in another format.
std::optional<PastRun> run_in(std::string_view text, std::int64_t time) {
  namespace at = line::run;
  const auto fields = split<at::count>(text);
  if (!fields || (*fields)[at::format] != protocol::word::run_format) return std::nullopt;
  const auto& part = *fields;
  const auto fence = Fence::from_text(part[at::fence]);
  const auto started = whole_number(part[at::started]);
  const auto ended = whole_number(part[at::ended]);
  const auto waited = whole_number(part[at::waited]);
  if (!fence || !started || !ended || !waited) return std::nullopt;
  return PastRun{*fence,
                 span_from_wire(*started, time),
                 span_from_wire(*ended, time),
                 from_wire(*waited),
                 std::string(part[at::result]),
                 status_in(part[at::exit]),
                 status_in(part[at::signal]),
                 decode_owner(part[at::record])};
}

/// nullopt for a line in another format.
std::optional<PastRun> kept_run_in(std::string_view text, std::int64_t time) {
  namespace at = line::kept;
  const auto fields = split<at::count>(text);
  auto run = fields ? run_in((*fields)[at::run], time) : std::nullopt;
  if (run && (*fields)[at::id] != "-") run->lease = LeaseId{std::string((*fields)[at::id])};
  return run;
}

/// nullopt for a line in another format.
std::optional<Skips> skips_in(std::string_view text, std::int64_t time) {
  namespace at = line::skips;
  const auto fields = split<at::count>(text);
  if (!fields) return std::nullopt;
  const auto number = whole_number((*fields)[at::number]);
  const auto first = whole_number((*fields)[at::first]);
  const auto last = whole_number((*fields)[at::last]);
  if (!number || *number < 1 || !first || !last) return std::nullopt;
  return Skips{*number, span_from_wire(*first, time), span_from_wire(*last, time),
               std::string((*fields)[at::why])};
}

/// Removes the first line from the text, and returns it.
std::string_view take_line(std::string_view& text) {
  const std::string_view taken = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), taken.size() + 1));
  return taken;
}

}  // namespace

std::string encode_run(const RunRecord& record) {
  const PastRun& run = record.run;
  const auto whole = [](Duration span) {
    return std::chrono::duration_cast<Milliseconds>(std::max(Duration::zero(), span)).count();
  };
  const auto status = [](const std::optional<int>& value) {
    return value ? std::to_string(*value) : std::string("-");
  };
  const Duration ended_ago = run.ended.value_or(run.started);
  const Milliseconds::rep ended = whole(ended_ago);
  const std::string started = std::to_string(ended + whole(run.started - ended_ago));

  std::array<std::string, line::runs::count> head;
  head[line::runs::remember_for] = std::to_string(whole(record.remember_for));
  head[line::runs::started] = record.success ? started : "0";
  head[line::runs::fence] = (record.success ? run.fence : Fence()).text();

  namespace at = line::run;
  std::array<std::string, at::count> fields;
  fields[at::format] = protocol::word::run_format;
  fields[at::fence] = run.fence.text();
  fields[at::started] = started;
  fields[at::ended] = std::to_string(ended);
  fields[at::waited] = std::to_string(whole(run.waited));
  fields[at::result] = run.result;
  fields[at::exit] = status(run.exit_code);
  fields[at::signal] = status(run.signal);
  if (record.passed_on) fields[at::record] = encode_owner(run.owner.value_or(Owner()));
  return join(head) + '\n' + join(fields);
}

LastRuns decode_runs(std::string_view text, std::int64_t time) {
  const std::string_view first = take_line(text);
  const std::string_view last = take_line(text);
  const std::string_view success = take_line(text);
  const std::string_view skips = take_line(text);
  namespace at = line::runs;
  LastRuns runs;
  const auto head = split<at::count>(first);
  if (!head) return runs;
  if (const auto kept_for = whole_number((*head)[at::remember_for]); kept_for && *kept_for > 0)
    runs.kept_for = from_wire(*kept_for);
  const auto started = whole_number((*head)[at::started]);
  // A later format may have more fields.
  const std::string_view rest = (*head)[at::fence];
  const auto fence = Fence::from_text(rest.substr(0, rest.find(' ')));
  if (!started || *started < 0 || !fence) return runs;
  runs.last = run_in(last, time);
  runs.newer = !last.empty() && !runs.last;
  runs.skips = skips_in(skips, time);
  while (!text.empty()) {
    if (auto run = kept_run_in(take_line(text), time)) runs.kept.push_back(std::move(*run));
  }
  for (const auto& run : {runs.last, run_in(success, time)}) {
    if (!run) continue;
    runs.kept.push_back(*run);
    if (run->fence == *fence && *fence != Fence()) runs.success = run;
  }
  if (!runs.success && *fence != Fence())
    runs.success = PastRun{*fence, span_from_wire(*started, time)};
  return runs;
}

}  // namespace redlock
