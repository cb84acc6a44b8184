#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "output/json.hpp"
#include "output/table.hpp"

namespace redlock::output {

/// What `status` found out besides the locks.
struct StatusReport {
  std::vector<ServerFault> faults{};       ///< of listing, or of the first key
  std::vector<ServerFault> skipped{};      ///< keys that may be locks, too, but could not be read
  Milliseconds at{};                       ///< the wall clock's time at the end
  Duration took{};                         ///< until then
  std::optional<std::string> other_key{};  ///< where no lock is listed: a key of another client
};

/// How to show it.
struct StatusView {
  bool listed = true;                  ///< a row for each lock; else a paragraph for each key
  bool verbose = false;                ///< with a paragraph below each row
  std::size_t servers = 1;             ///< how many are configured
  std::optional<std::size_t> slots{};  ///< how many each lock has; else as many as its holders say
};

struct TakenSlots {
  std::size_t taken;
  std::size_t limit;  ///< how many there are; zero: not known
};

/// Of a lock that is shared in slots; nothing: it is not. `slots`: how many it has, if that is
/// given; else as many as its holders say.
std::optional<TakenSlots> taken_slots(const LockParties& parties, std::optional<std::size_t> slots);

/// `reading the locks takes 2.3s`.
std::string took_text(const StatusReport& report);

/// The natural order, in which locks are listed for people: `job2` before `job10`.
bool comes_before(const Resource& a, const Resource& b);

/// The locks for people. Of each it keeps what is shown alone, as there may be many.
class ShownLocks {
 public:
  explicit ShownLocks(const StatusView& view) : view_(view) {}

  /// Shows it below those before it. `at`: the wall clock's time of the answer.
  void add(const KeyStatus& key, Milliseconds at);

  /// `status`, folded to `width` columns: what could not be read, and totals, last.
  [[nodiscard]] std::string text(const StatusReport& report, std::size_t width) const;

  /// `status --watch`: the lines of one screen of exactly this size or smaller. At the top the
  /// clock, the totals and what could not be read; then as many whole locks as fit, and how many do
  /// not.
  [[nodiscard]] std::vector<std::string> screen(const StatusReport& report, Duration interval,
                                                std::size_t rows, std::size_t columns) const;

 private:
  using Lines = std::vector<std::string>;

  struct Body {
    Lines headings;
    std::size_t locks;
    std::function<Lines(std::size_t)> lines_of;  ///< of one lock
  };
  [[nodiscard]] Body body(std::size_t width) const;
  [[nodiscard]] std::size_t size() const { return table_.size() + paragraphs_.size(); }
  [[nodiscard]] std::string totals() const;
  [[nodiscard]] Lines summary(const StatusReport& report) const;

  StatusView view_;
  static constexpr std::size_t pid_column = 3;
  Table table_{{"KEY", "STATE", "HOLDER", "PID", "SINCE", "LEASE", "WAITING", "SLOTS"}, pid_column};
  std::vector<Lines> paragraphs_{};                   ///< where locks are not listed; not folded
  std::map<std::string_view, std::size_t> states_{};  ///< how many locks are in each
  std::size_t waiters_ = 0;
};

}  // namespace redlock::output
