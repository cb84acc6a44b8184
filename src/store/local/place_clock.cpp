#include "store/local/place_clock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <optional>

#include "store/local/new_file.hpp"

namespace redlock::local {
namespace {

using std::chrono::microseconds;

constexpr std::string_view prefix = "clock-";

microseconds since_boot(const Clock& clock) {
  return std::chrono::duration_cast<microseconds>(clock.now().time_since_epoch());
}

/// What to add to the time since boot; nothing when there is no such file.
Result<std::optional<microseconds>, Fault> read_base(const Directory& directory, const std::string& name) {
  const UniqueFd fd(::openat(directory.fd.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd && errno == ENOENT) return std::nullopt;
  if (!fd) return fault_of_errno("cannot open the file " + name, errno);
  std::array<char, 32> text{};
  const ssize_t size = ::read(fd.get(), text.data(), text.size());
  if (size < 0) return fault_of_errno("cannot read the file " + name, errno);
  std::int64_t base = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + size, base);
  if (error != std::errc() || end != text.data() + size) {
    return unexpected(Fault{FaultKind::garbage, "somebody damaged its file " + name + "; when nothing runs under its locks, remove it"});
  }
  return microseconds(base);
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
    if (auto made = make_file(directory, name, std::to_string(ours.count())); !made) return unexpected(made.error());
    remove_other_clocks(directory, name);
    base = read_base(directory, name);  // another process may have been first
  }
  if (!base) return unexpected(base.error());
  if (!*base) return unexpected(Fault{FaultKind::silent, "its clock was removed just now"});
  return **base + since_boot(clock);
}

}  // namespace redlock::local
