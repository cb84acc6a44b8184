#include "store/redis/watched_files.hpp"

#include <sys/stat.h>

#include <utility>

namespace redlock::redis {

WatchedFiles::WatchedFiles(std::vector<std::string> paths)
    : paths_(std::move(paths)), read_(look()) {}

std::optional<WatchedFiles::Stamps> WatchedFiles::changed() const {
  if (!read_) return std::nullopt;
  auto now = look();
  return now != read_ ? now : std::nullopt;
}

std::optional<WatchedFiles::Stamps> WatchedFiles::look() const {
  constexpr std::int64_t nanoseconds_per_second = 1'000'000'000;
  Stamps stamps;
  for (const std::string& path : paths_) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
    stamps.push_back({status.st_dev, status.st_ino, status.st_size,
                      status.st_mtim.tv_sec * nanoseconds_per_second + status.st_mtim.tv_nsec});
  }
  return stamps;
}

}  // namespace redlock::redis
