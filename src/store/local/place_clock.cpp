#include "store/local/place_clock.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>

#include "store/local/new_file.hpp"

namespace redlock::local {
namespace {

using std::chrono::microseconds;

constexpr std::string_view prefix = "clock-";

microseconds since_boot(const Clock& clock) {
  return std::chrono::duration_cast<microseconds>(clock.now().time_since_epoch());
}

/// This process's time namespace, as the kernel numbers it; 0 where it knows none.
std::uint64_t time_namespace() {
  struct stat status {};
  return ::stat("/proc/self/ns/time", &status) == 0 ? status.st_ino : 0;
}

/// What the file holds: what to add to the time since boot, and the time namespace in which that is true.
struct Base {
  microseconds offset;
  std::uint64_t time_namespace;
};

std::string encode(const Base& base) {
  return std::to_string(base.offset.count()) + " " + std::to_string(base.time_namespace);
}

std::optional<Base> decode(std::string_view text) {
  std::int64_t offset = 0;
  std::uint64_t name_space = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, offset);
  if (first.ec != std::errc()) return std::nullopt;
  // Before namespaces were written down.
  if (first.ptr == end) return Base{microseconds(offset), time_namespace()};
  if (*first.ptr != ' ') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, name_space);
  if (second.ec != std::errc() || second.ptr != end) return std::nullopt;
  return Base{microseconds(offset), name_space};
}

/// Nothing when there is no such file.
Result<std::optional<microseconds>, Fault> read_base(const Directory& directory, const std::string& name) {
  const UniqueFd fd(::openat(directory.fd.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd && errno == ENOENT) return std::nullopt;
  if (!fd) return fault_of_errno("cannot open the file " + name, errno);
  std::array<char, 64> text{};
  const ssize_t size = ::read(fd.get(), text.data(), text.size());
  if (size < 0) return fault_of_errno("cannot read the file " + name, errno);
  const auto base = decode({text.data(), static_cast<std::size_t>(size)});
  if (!base) {
    return unexpected(Fault{FaultKind::garbage, "somebody damaged its file " + name + "; when nothing runs under its locks, remove it"});
  }
  if (base->time_namespace != time_namespace()) {
    return unexpected(Fault{FaultKind::misconfigured,
                            "it is used in another time namespace than ours, where the time since boot is another; use local:/dir with a "
                            "directory for each, or a server"});
  }
  return base->offset;
}

/// Those of earlier boots.
void remove_other_clocks(const Directory& directory, const std::string& ours) {
  for (const std::string& name : names_in(directory)) {
    if (name.starts_with(prefix) && name != ours) ::unlinkat(directory.fd.get(), name.c_str(), 0);
  }
}

}  // namespace

Result<microseconds, Fault> place_time(const Directory& directory, const std::string& boot_id, const Clock& clock) {
  const std::string name = std::string(prefix) + boot_id;
  auto base = read_base(directory, name);
  if (base && !*base) {
    const microseconds ours = clock.wall() - since_boot(clock);
    if (auto made = make_file(directory, name, encode({ours, time_namespace()})); !made) return unexpected(made.error());
    remove_other_clocks(directory, name);
    base = read_base(directory, name);  // another process may have been first
  }
  if (!base) return unexpected(base.error());
  if (!*base) return unexpected(Fault{FaultKind::silent, "its clock was removed just now"});
  return **base + since_boot(clock);
}

}  // namespace redlock::local
