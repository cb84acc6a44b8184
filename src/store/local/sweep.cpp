#include "store/local/sweep.hpp"

#include <unistd.h>

#include <algorithm>

#include "store/local/command_parts.hpp"
#include "store/local/keyspace.hpp"
#include "store/local/lock_file.hpp"
#include "support/random.hpp"

namespace redlock::local {
namespace {

constexpr std::size_t file_name_size = 64;

/// With more than one looked at for each one made, the idle ones never become the greater part.
constexpr std::size_t looked_at = 4;

/// The next fence is at least the time, so that the counter does not matter any more. Some time longer, so that what is locked again and
/// again keeps its file.
constexpr Milliseconds outdated{10'001};

constexpr std::string_view fence_prefix = "redlock:fence:";

bool is_outdated_fence(const std::string& key, const Entry& entry, Milliseconds now) {
  const auto* text = std::get_if<std::string>(&entry.value);
  if (!key.starts_with(fence_prefix) || text == nullptr) return false;
  const auto fence = read_integer(*text);
  return fence && *fence < (now - outdated).count();
}

bool is_of_value(const image::Found& found, std::chrono::microseconds now) {
  const auto* stored = std::get_if<image::Stored>(&found);
  if (stored == nullptr) return false;
  Keyspace keyspace;
  keyspace.load(stored->entries);
  keyspace.set_time(now);
  const auto& live = keyspace.live();
  return !std::all_of(live.begin(), live.end(),
                      [&](const auto& item) { return is_outdated_fence(item.first, item.second, keyspace.now()); });
}

}  // namespace

std::vector<std::string> lock_files_in(const Directory& directory) {
  std::vector<std::string> names = names_in(directory);
  std::erase_if(names, [](const std::string& name) {
    return name.size() != file_name_size || name.find_first_not_of("0123456789abcdef") != std::string::npos;
  });
  return names;
}

void sweep(const Directory& directory, std::string_view boot_id, std::chrono::microseconds now) {
  std::vector<std::string> names = lock_files_in(directory);
  for (std::size_t i = 0; i < looked_at && !names.empty(); ++i) {
    std::swap(names[random_bits() % names.size()], names.back());
    const auto opened = LockFile::try_open(directory, names.back());
    const auto* file = std::get_if<LockFile>(&opened);
    const auto found = file != nullptr ? file->load(boot_id) : unexpected(Fault());
    // Locked all the while, so that nobody acts on it; who waits for it sees that its name is gone.
    if (found && !is_of_value(*found, now)) ::unlinkat(directory.fd.get(), names.back().c_str(), 0);
    names.pop_back();
  }
}

}  // namespace redlock::local
