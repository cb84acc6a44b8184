#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/server_set.hpp"
#include "output/key_status.hpp"
#include "output/table.hpp"

namespace redlock::output {

/// The results of `status` besides the locks themselves.
struct StatusReport {
  std::vector<ServerFault> faults{};       ///< of the listing, or of the first key with any
  std::vector<ServerFault> skipped{};      ///< keys that may be locks but could not be read
  Milliseconds at{};                       ///< wall-clock time when the last lock was read
  Duration took{};                         ///< how long reading the locks took
  std::optional<std::string> other_key{};  ///< an example of another client's key, without locks
};

/// How to show the locks.
struct StatusView {
  bool listed = true;                  ///< a row for each lock; else a paragraph for each key
  bool verbose = false;                ///< with the details of each lock
  std::size_t servers = 1;             ///< how many are configured
  std::optional<std::size_t> slots{};  ///< the slots of each lock; nullopt: from holders' records
};

/// `reading the locks takes 2.3s`.
std::string took_text(const StatusReport& report);

/// The natural order, in which locks are listed for people: `job2` comes before `job10`.
bool comes_before(const Resource& a, const Resource& b);

/// Formats the locks for people. There may be many, so it keeps only the text of each.
class ShownLocks {
 public:
  explicit ShownLocks(const StatusView& view) : view_(view) {}

  /// Appends a lock. `at`: the wall-clock time of the answer.
  void add(const KeyStatus& key, Milliseconds at);

  /// The text of `status`, folded to `width` columns. Keys that could not be read and the totals
  /// come last.
  [[nodiscard]] std::string text(const StatusReport& report, std::size_t width) const;

  /// One screen of `status --watch`, at most `rows` lines of `columns` columns: the time, the
  /// totals and the keys that could not be read; then as many whole locks as fit, and the number of
  /// the others.
  [[nodiscard]] std::vector<std::string> screen(const StatusReport& report, Duration interval,
                                                std::size_t rows, std::size_t columns) const;

 private:
  using Lines = std::vector<std::string>;

  struct Body {
    Lines headings;
    std::size_t locks;
    std::function<Lines(std::size_t)> lines_of;  ///< the lines of the lock with this index
  };
  [[nodiscard]] Body body(std::size_t width) const;
  [[nodiscard]] std::size_t size() const { return table_.size() + paragraphs_.size(); }
  [[nodiscard]] std::string totals() const;
  [[nodiscard]] Lines summary(const StatusReport& report) const;

  StatusView view_;
  static constexpr std::size_t pid_column = 3;
  Table table_{{"KEY", "STATE", "HOLDER", "PID", "SINCE", "LEASE", "WAITING", "SLOTS"}, pid_column};
  std::vector<Lines> paragraphs_{};                   ///< unless locks are listed; not folded
  std::map<std::string_view, std::size_t> states_{};  ///< how many locks are in each
  std::size_t waiters_ = 0;
};

}  // namespace redlock::output
