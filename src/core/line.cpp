#include "core/line.hpp"

#include <algorithm>

#include "core/decision.hpp"

namespace redlock {
namespace {

/// By how much those behind the first are later than it.
constexpr Milliseconds second_slack{250};
constexpr Milliseconds others_slack{1000};

}  // namespace

LineView view_of(const std::vector<const LineWord*>& lines, const std::vector<bool>& granted) {
  const std::size_t quorum = quorum_of(lines.size());
  std::vector<Milliseconds> times;
  std::vector<Duration> changes;
  std::vector<std::size_t> free;
  LineView view;
  std::optional<std::size_t> fewest;
  std::size_t in_line = 0;
  std::size_t offered = 0;
  std::size_t mute = 0;
  Ticket above_all = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const LineWord* line = lines[i];
    if (line == nullptr) continue;
    times.push_back(line->time);
    above_all = std::max(above_all, line->largest_ticket.value_or(0) + 1);
    if (line->in_line || granted[i]) ++in_line;
    if (line->offered || granted[i]) ++offered;
    if (line->mute) ++mute;
    view.newer = view.newer || line->newer;
    fewest = std::min(fewest.value_or(line->ahead), line->ahead);
    if (granted[i]) changes.push_back(Duration::zero());
    if (!granted[i] && line->may_change) changes.push_back(*line->may_change);
    free.resize(std::max(free.size(), line->free_seats.size()));
    for (std::size_t seat = 0; seat < line->free_seats.size(); ++seat) free[seat] += line->free_seats[seat] == '1' ? 1 : 0;
  }
  view.ahead = fewest.value_or(0);
  view.in_line = in_line >= quorum;
  view.offered = offered >= quorum;
  view.mute = lines.size() - mute < quorum;
  if (times.size() < quorum) return view;
  std::ranges::sort(times);
  view.next_ticket = std::max(static_cast<Ticket>(std::max<Milliseconds::rep>(times[times.size() / 2].count(), 0)), above_all);
  std::ranges::sort(changes);
  if (changes.size() >= quorum) view.may_change = changes[quorum - 1];
  const auto seat = std::ranges::find_if(free, [&](std::size_t votes) { return votes >= quorum; });
  if (seat != free.end()) view.seat = static_cast<std::size_t>(seat - free.begin());
  return view;
}

Duration until_next_look(const LineView& line) {
  if (!line.may_change) return longest_between_looks;
  const Duration may_change = *line.may_change;
  const std::size_t ahead = line.ahead;
  // Nobody else may be there to see that whoever was notified does not come.
  if (line.offered) return may_change + expiry_slack;
  Duration span = may_change + expiry_slack;
  if (ahead == 1) span = may_change + second_slack;
  if (ahead > 1) {
    // The sum of 2/n² over all places is below 1: so many looks a second at most.
    const auto place = static_cast<Milliseconds::rep>(std::min<std::size_t>(ahead + 1, 100));
    span = std::max<Duration>(may_change + others_slack, Milliseconds(500 * place * place));
  }
  return std::min<Duration>(span, longest_between_looks);
}

}  // namespace redlock
