#include "store/local/sweep.hpp"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/helper_keys.hpp"
#include "store/local/lock_file.hpp"
#include "store/local/wake.hpp"
#include "support/number.hpp"
#include "support/random.hpp"

namespace redlock::local {
namespace {

/// If more than one file is checked for each one that is created, unneeded files never become the
/// majority.
constexpr std::size_t checked_names = 4;

/// Calls `check` with a few of the names, chosen at random.
template <class Check>
void check_a_few(std::vector<std::string>& names, Check check) {
  for (std::size_t i = 0; i < checked_names && !names.empty(); ++i) {
    std::swap(names[random_bits() % names.size()], names.back());
    check(names.back());
    names.pop_back();
  }
}

/// Once the time has passed the counter, the next fence is larger without it. The delay lets a
/// resource that is locked frequently keep its file.
constexpr Milliseconds outdated{10'001};

bool is_outdated_fence(const std::string& key, const Entry& entry, Milliseconds now) {
  const auto* text = std::get_if<std::string>(&entry.value);
  if (!HelperKeys::is_fence(key) || text == nullptr) return false;
  const auto fence = whole_number(*text);
  return fence && *fence < (now - outdated).count();
}

/// Also a file that is empty or zeros: it may be another program's.
bool is_of_value(const format::Found& found, const KernelTime& time,
                 std::chrono::microseconds offset) {
  const auto* stored = std::get_if<format::Stored>(&found);
  if (stored == nullptr) return !std::get<format::Empty>(found).saw_reboot;
  Keyspace keyspace;
  keyspace.load(stored->entries);
  keyspace.set_time(stored->base.offset + time.since_boot());
  // The time of the file that is made next for this lock.
  const auto next = std::chrono::duration_cast<Milliseconds>(offset + time.since_boot());
  return !std::ranges::all_of(keyspace.live(), [&](const auto& item) {
    return is_outdated_fence(item.first, item.second, next);
  });
}

void remove_if_idle(const Directory& directory, const std::string& name, const KernelTime& time,
                    std::chrono::microseconds offset) {
  const auto opened = LockFile::try_open(directory, name);
  const auto* file = std::get_if<LockFile>(&opened);
  const auto found = file != nullptr ? file->load(time) : unexpected(Fault());
  // The file stays locked meanwhile, so no process uses it. A process that waits for it will notice
  // that the name is gone.
  if (found && !is_of_value(*found, time, offset)) ::unlinkat(directory.fd.get(), name.c_str(), 0);
}

}  // namespace

void sweep(const Directory& directory, const KernelTime& time, std::chrono::microseconds offset) {
  // Separately, so that many waiters do not reduce the number of lock files that are checked.
  std::vector<std::string> lock_files;
  std::vector<std::string> others;
  for (std::string& name : names_in(directory)) {
    if (is_lock_file(name)) {
      lock_files.push_back(std::move(name));
    } else if (is_fifo(name) || is_temporary(name)) {
      others.push_back(std::move(name));
    }
  }
  check_a_few(lock_files,
              [&](const std::string& name) { remove_if_idle(directory, name, time, offset); });
  check_a_few(others, [&](const std::string& name) {
    if (is_fifo(name)) {
      remove_if_unsubscribed(directory, name);
    } else {
      remove_if_old(directory, name);
    }
  });
}

}  // namespace redlock::local
