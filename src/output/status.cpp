#include "output/status.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <map>

#include "core/holds.hpp"
#include "output/failure_text.hpp"
#include "output/holder_text.hpp"
#include "output/lock_text.hpp"
#include "output/past_runs.hpp"
#include "output/text_parts.hpp"
#include "support/columns.hpp"
#include "support/duration.hpp"
#include "support/text.hpp"
#include "support/timestamp.hpp"

namespace redlock::output {
namespace {

/// More lines would hide the locks that could be read.
constexpr std::size_t max_skipped_lines = 10;

/// The indent of all lines of a paragraph but the first.
constexpr std::size_t paragraph_indent = 2;

/// The further indent of a folded line's continuation.
constexpr std::size_t hanging_indent = 4;

using Lines = std::vector<std::string>;

void append(Lines& lines, Lines more) {
  std::ranges::move(more, std::back_inserter(lines));
}

/// Only the largest unit: `4m`, `3d`.
std::string short_duration(Duration span) {
  const std::string text = format_duration(std::chrono::floor<std::chrono::seconds>(span));
  const std::size_t unit = text.find_first_not_of("0123456789.");
  return text.substr(0, text.find_first_of("0123456789", unit));
}

std::string ago_text(Milliseconds now, Duration age) {
  return moment_text(now - std::chrono::duration_cast<Milliseconds>(age), now);
}

/// `08:12:01 4m`; before today `2026-11-21 3d`.
std::string since_text(Milliseconds now, Duration age) {
  const std::string moment = ago_text(now, age);
  return fmt::format("{} {}", moment.substr(0, moment.find(' ')), short_duration(age));
}

std::string owner_cell(const Owner& owner) {
  std::string text = person_text(owner.user, owner.host);
  if (!owner.command.empty()) text += " " + escape_for_terminal(owner.command);
  if (owner.detached) text += " (detached)";
  if (!owner.note.empty()) text += fmt::format(" \"{}\"", escape_for_terminal(owner.note));
  return text;
}

/// How many leases share the lock: one may have several slots. A share that is not listed counts as
/// a lease, unless it is known to be one of a listed lease.
std::size_t sharing_leases(const LockParties& parties) {
  std::map<std::string, std::size_t> shares_of;  // by lease id
  for (const Share& share : parties.first_shares)
    shares_of[share.holder.id.text] = share.holder.owner ? share.holder.owner->take : 1;
  std::size_t known = 0;
  for (const auto& [id, shares] : shares_of) known += shares;
  return shares_of.size() + parties.shares - std::min(parties.shares, known);
}

std::string holder_cell(const Inspection& inspection) {
  if (inspection.state == InspectState::free && inspection.runs.last)
    return "last run " + past_run_text(*inspection.runs.last);
  if (!inspection.holder) return {};
  const Holder& holder = *inspection.holder;
  std::string text = holder.owner ? owner_cell(*holder.owner) : std::string();
  if (holder.waits_for)
    text += fmt::format(" (waits for {})", key_text(holder.waits_for->resource));
  if (holder.foreign && holder.type != "string") text = escape_for_terminal(holder.type);
  if (holder.shared && holder.owner && holder.owner->hold_for) text += " (on hold)";
  const std::size_t leases = sharing_leases(inspection.parties);
  if (holder.shared && leases > 1) {
    text += text.empty() ? fmt::format("{}", leases) : fmt::format(" and {} more", leases - 1);
  }
  return text;
}

/// Of the process to signal; of several, each has another.
std::string pid_cell(const Inspection& inspection) {
  const auto& holder = inspection.holder;
  const bool is_one = holder && holder->owner && !holder->owner->finished &&
                      !holder->owner->hold_for &&
                      (!holder->shared || sharing_leases(inspection.parties) <= 1);
  return is_one ? std::to_string(holder->owner->pid) : std::string();
}

std::string lease_cell(const Inspection& inspection) {
  if (!inspection.holder) return {};
  const Holder& holder = *inspection.holder;
  if (!holder.remaining) return "no expiry";
  const Duration rest = hold_remaining(holder).value_or(*holder.remaining);
  std::string left = short_duration(rest) + " left";
  if (holder.owner && holder.owner->finished) return left;
  // What less than a quorum shows may be over.
  if (inspection.state == InspectState::unavailable) return left;
  switch (renewal_of(holder)) {
    case Renewal::renewed:
      return "renewed";
    case Renewal::overdue:
      return left + ", overdue";
    case Renewal::none:
    case Renewal::unknown:
      break;
  }
  return left;
}

/// The states, in the order in which totals name them.
constexpr std::array<std::string_view, 9> states{"held",    "on hold", "shared",  "slots", "kept",
                                                 "foreign", "partly",  "unknown", "free"};

std::string_view state_cell(const Inspection& inspection) {
  const auto& holder = inspection.holder;
  switch (inspection.state) {
    case InspectState::free:
      return "free";
    case InspectState::unavailable:
      return "unknown";
    case InspectState::partly_held:
      return "partly";
    case InspectState::held:
      break;
  }
  if (holder->foreign) return "foreign";
  if (!inspection.parties.free_slots.empty()) return "slots";
  if (holder->shared) return "shared";
  if (hold_remaining(*holder)) return "on hold";
  return holder->owner && holder->owner->finished ? "kept" : "held";
}

/// `3 of 4`.
std::string slots_cell(const LockParties& parties, std::optional<std::size_t> slots) {
  const auto known = taken_slots(parties, slots);
  if (!known) return {};
  return known->limit > 0 ? fmt::format("{} of {}", known->taken, known->limit)
                          : std::to_string(known->taken);
}

Lines server_lines(const KeyStatus& key) {
  Lines lines;
  for (std::size_t i = 0; i < key.votes.size(); ++i) {
    lines.push_back(
        fmt::format("{}: {}", escape_for_terminal(key.servers[i]), vote_text(key.votes[i])));
  }
  return lines;
}

/// The facts that a single line has no room for.
Lines details_of(const KeyStatus& key, Milliseconds now, bool with_servers) {
  Lines lines;
  if (key.inspection.holder && key.inspection.holder->fence)
    lines.push_back("fence " + key.inspection.holder->fence->text());
  if (!key.awaited.empty()) {
    std::vector<std::string> processes;
    for (const AwaitedProcess& process : key.awaited) processes.push_back(process.name);
    lines.push_back(
        fmt::format("a signal ended its command; keeping the lock until these have ended: {}",
                    fmt::join(processes, ", ")));
  }
  append(lines, parties_lines(key.inspection.parties));
  if (key.free_slot_names && !key.free_slot_names->empty())
    lines.push_back(fmt::format("free: {}", fmt::join(*key.free_slot_names, ", ")));
  const auto moment = [now](Duration ago) { return ago_text(now, ago); };
  if (key.runs) {
    // Past holds are not recorded: as the last run they would hide whether the job succeeded.
    const auto& holder = key.inspection.holder;
    if (holder && holder->age && hold_remaining(*holder)) {
      lines.push_back(fmt::format("{} ago, at {}: {}", format_duration(*holder->age),
                                  moment(*holder->age), output::held_text(*holder)));
    }
    append(lines, kept_runs_lines(*key.runs, key.inspection.runs, moment));
  } else if (key.inspection.state == InspectState::free) {
    append(lines, runs_lines(key.inspection.runs, moment));
  }
  if (const auto& skips = key.inspection.runs.skips) lines.push_back(skips_text(*skips, moment));
  if (with_servers) append(lines, server_lines(key));
  return lines;
}

Lines fold_hanging(const std::string& text, std::size_t indent, std::size_t width) {
  Lines lines;
  const std::size_t rest = indent + hanging_indent;
  if (width == any_width || width <= 2 * rest) return {std::string(indent, ' ') + text};
  for (const std::string& line : fold(text, width - rest)) {
    lines.push_back(std::string(lines.empty() ? indent : rest, ' ') + line);
  }
  return lines;
}

Lines paragraph_of(const KeyStatus& key, const StatusView& view, Milliseconds at) {
  Lines lines{key_text(key.resource) + ": " + inspection_text(key.inspection)};
  const bool with_servers =
      view.verbose || view.servers > 1 || key.inspection.state == InspectState::unavailable;
  const auto& holder = key.inspection.holder;
  if (holder && holder->age) lines.push_back("since " + ago_text(at, *holder->age));
  append(lines, details_of(key, at, with_servers));
  return lines;
}

Lines folded(const Lines& paragraph, std::size_t width) {
  Lines lines;
  for (const std::string& line : paragraph) {
    append(lines, fold_hanging(line, lines.empty() ? 0 : paragraph_indent, width));
  }
  return lines;
}

std::vector<std::string> row_of(const KeyStatus& key, const StatusView& view, Milliseconds at) {
  const Inspection& inspection = key.inspection;
  const Holder* const holder = inspection.holder ? &*inspection.holder : nullptr;
  const std::size_t waiters = inspection.parties.waiters;
  return {key_text(key.resource),
          std::string(state_cell(inspection)),
          holder_cell(inspection),
          pid_cell(inspection),
          holder != nullptr && holder->age ? since_text(at, *holder->age) : "",
          lease_cell(inspection),
          waiters > 0 ? std::to_string(waiters) : "",
          slots_cell(inspection.parties, view.slots)};
}

/// Whether an empty list means that there are no locks: some servers answered, and all keys could
/// be read.
bool is_known(const StatusReport& report, const StatusView& view) {
  return report.skipped.empty() && report.faults.size() < view.servers;
}

Lines problems_of(const StatusReport& report, const StatusView& view) {
  Lines lines;
  for (std::size_t i = 0; i < std::min(report.skipped.size(), max_skipped_lines); ++i)
    lines.push_back("not read: " + faults_text({report.skipped[i]}));
  if (report.skipped.size() > max_skipped_lines) {
    lines.push_back(fmt::format("not read: {} more", report.skipped.size() - max_skipped_lines));
  }
  if (view.listed && !report.faults.empty())
    lines.push_back("incomplete: " + faults_text(report.faults));
  return lines;
}

void append(std::string& text, const Lines& lines) {
  for (const std::string& line : lines) text.append(line).append(1, '\n');
}

/// `2026-11-22 08:30:00, every 1s`.
std::string heading(const StatusReport& report, Duration interval) {
  const std::string text =
      fmt::format("{}, every {}", local_time(report.at, "%F %T"), format_duration(interval));
  if (report.took <= interval) return text;
  return fmt::format("{} ({})", text, took_text(report));
}

}  // namespace

std::string took_text(const StatusReport& report) {
  return "reading the locks takes " + format_duration(report.took);
}

bool comes_before(const Resource& a, const Resource& b) {
  const int order = ::strverscmp(a.key().c_str(), b.key().c_str());
  return order != 0 ? order < 0 : a < b;  // keys may hold NUL
}

void ShownLocks::add(const KeyStatus& key, Milliseconds at) {
  ++states_[state_cell(key.inspection)];
  waiters_ += key.inspection.parties.waiters;
  if (!view_.listed) {
    paragraphs_.push_back(paragraph_of(key, view_, at));
    return;
  }
  table_.add(row_of(key, view_, at), view_.verbose ? details_of(key, at, true) : Lines{});
}

ShownLocks::Body ShownLocks::body(std::size_t width) const {
  if (!view_.listed) {
    return {{}, size(), [this, width](std::size_t i) { return folded(paragraphs_[i], width); }};
  }
  const Table::Layout layout = table_.layout(width);
  return {size() > 0 ? table_.headings(layout) : Lines{}, size(),
          [this, layout](std::size_t i) { return table_.row(i, layout); }};
}

/// `40 locks: 31 held, 9 free; 12 waiting`.
std::string ShownLocks::totals() const {
  std::string text = fmt::format("{} lock{}", size(), size() == 1 ? "" : "s");
  const char* sign = ":";
  for (const std::string_view state : states) {
    const auto count = states_.find(state);
    if (count == states_.end()) continue;
    text += fmt::format("{} {} {}", sign, count->second, state == "slots" ? "in slots" : state);
    sign = ",";
  }
  return waiters_ > 0 ? text + fmt::format("; {} waiting", waiters_) : text;
}

Lines ShownLocks::summary(const StatusReport& report) const {
  if (!view_.listed) return {};
  if (size() > 0) return {totals()};
  if (!is_known(report, view_)) return {};
  if (!report.other_key) return {"no locks"};
  return {
      fmt::format("no locks of redlock-cli; there are keys of other clients, such as {}: "
                  "`redlock-cli status KEY` shows whether one is a lock",
                  escape_for_terminal(*report.other_key))};
}

std::string ShownLocks::text(const StatusReport& report, std::size_t width) const {
  const Body all = body(width);
  std::string text;
  append(text, all.headings);
  for (std::size_t i = 0; i < all.locks; ++i) append(text, all.lines_of(i));
  for (const std::string& line : problems_of(report, view_))
    append(text, fold_hanging(line, 0, width));
  append(text, summary(report));
  return text;
}

Lines ShownLocks::screen(const StatusReport& report, Duration interval, std::size_t rows,
                         std::size_t columns) const {
  Lines lines = fold(heading(report, interval), columns);
  for (const std::string& line : summary(report)) append(lines, fold(line, columns));
  for (const std::string& line : problems_of(report, view_))
    append(lines, fold_hanging(line, 0, columns));

  Body all = body(columns);
  lines.emplace_back();
  append(lines, std::move(all.headings));
  std::size_t shown = 0;
  while (shown < all.locks) {
    Lines lock = all.lines_of(shown);
    // The last line is reserved for the number of locks that do not fit, unless this is the last
    // lock.
    const std::size_t reserved = shown + 1 < all.locks ? 1 : 0;
    const bool fits = lines.size() + lock.size() + reserved <= rows;
    if (!fits && shown > 0) break;
    append(lines, std::move(lock));
    if (!fits) break;
    ++shown;
  }
  if (shown < all.locks) {
    lines.resize(std::min(lines.size(), rows > 0 ? rows - 1 : 0));
    const std::size_t hidden = all.locks - shown;
    lines.push_back(fmt::format("{} lock{} not shown in full: the terminal has no room", hidden,
                                hidden == 1 ? "" : "s"));
  }
  lines.resize(std::min(lines.size(), rows));
  // On a very narrow terminal a long word or the indent can exceed the width: cut such lines.
  for (std::string& line : lines) {
    if (columns_of(line) > columns) line = fold(line, columns).front();
  }
  return lines;
}

}  // namespace redlock::output
