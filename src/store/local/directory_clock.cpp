#include "store/local/directory_clock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "support/digest.hpp"
#include "support/kernel_calls.hpp"
#include "support/number.hpp"
#include "support/unique_fd.hpp"

namespace redlock::local {
namespace {

using std::chrono::microseconds;

const std::string clock_name = "clock-redlock-cli";

/// How old the time in the clock file may get while the directory is used. Less than the age at
/// which a fence counter is swept (sweep.cpp): if the clock file does not show a reboot, TIME still
/// continues beyond every fence that was swept. It also keeps away programs that remove old files.
constexpr microseconds max_age = std::chrono::seconds(5);

// --- The content of the clock file ---

constexpr std::size_t number_size = 21;
constexpr std::size_t numbers_size = 3 * number_size + 2;
constexpr std::size_t digest_size = 16;
constexpr std::size_t content_size = numbers_size + 1 + digest_size + 1;

std::string digest_of(std::string_view numbers) {
  return sha256_hex(numbers).substr(0, digest_size);
}

/// Always of the same size, as one write replaces it.
std::string encode(const TimeBase& base) {
  std::array<char, numbers_size + 1> numbers{};
  std::snprintf(numbers.data(), numbers.size(), "%021lld %021lld %021llu",
                static_cast<long long>(base.offset.count()),
                static_cast<long long>(base.written.count()),
                static_cast<unsigned long long>(base.time_namespace));
  return std::string(numbers.data()) + " " + digest_of(numbers.data()) + "\n";
}

std::optional<TimeBase> decode(std::string_view text) {
  if (text.size() != content_size) return std::nullopt;
  const std::string_view numbers = text.substr(0, numbers_size);
  if (text.substr(numbers_size) != " " + digest_of(numbers) + "\n") return std::nullopt;
  const auto offset = whole_number(numbers.substr(0, number_size));
  const auto written = whole_number(numbers.substr(number_size + 1, number_size));
  const auto name_space =
      whole_number<std::uint64_t>(numbers.substr(2 * (number_size + 1), number_size));
  if (!offset || !written || !name_space) return std::nullopt;
  const TimeBase base{microseconds(*offset), microseconds(*written), *name_space};
  return base.is_sane() ? std::optional(base) : std::nullopt;
}

// --- The clock file ---

std::string path_of(const Directory& directory) {
  return directory.path + "/" + clock_name;
}

/// An empty descriptor if there is no such file.
Result<UniqueFd, Fault> open_clock(const Directory& directory) {
  UniqueFd fd(::openat(directory.fd.get(), clock_name.c_str(),
                       O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd && errno != ENOENT) return fault_of_errno("cannot open " + path_of(directory), errno);
  struct stat status {};
  if (fd && (kernel::fstat(fd.get(), status) != 0 || !S_ISREG(status.st_mode)))
    return unexpected(
        Fault{FaultKind::misconfigured, path_of(directory) + " is not a regular file"});
  return fd;
}

Result<TimeBase, Fault> read_base(const Directory& directory, const UniqueFd& file) {
  std::array<char, content_size + 1> text{};
  const ssize_t size = ::pread(file.get(), text.data(), text.size(), 0);
  if (size < 0) return fault_of_errno("cannot read " + path_of(directory), errno);
  const auto base = decode({text.data(), static_cast<std::size_t>(size)});
  if (!base) {
    return unexpected(
        Fault{FaultKind::garbage, "its file is damaged: " + path_of(directory) +
                                      "; when nothing runs under its locks, remove it"});
  }
  return *base;
}

/// Another process may write at the same time: both write the same but for microseconds.
void write_base(const UniqueFd& file, const TimeBase& base) {
  const std::string text = encode(base);
  (void)::pwrite(file.get(), text.data(), text.size(), 0);
}

}  // namespace

std::optional<KernelTime> KernelTime::find(const Clock& clock) {
  constexpr ino_t host_namespace = 0xEFFFFFFA;  // TIME_NS_INIT_INO
  struct stat status {};
  if (kernel::stat("/proc/self/ns/time", status) == 0)
    return KernelTime(clock, status.st_ino == host_namespace ? 0 : status.st_ino);
  // A kernel without time namespaces.
  if (errno == ENOENT && kernel::stat("/proc/self/ns", status) == 0) return KernelTime(clock, 0);
  return std::nullopt;
}

microseconds KernelTime::since_boot() const {
  return std::chrono::duration_cast<microseconds>(clock_->now().time_since_epoch());
}

Fault other_time_namespace(const std::string& path) {
  return {FaultKind::misconfigured,
          "it is used in another time namespace than ours, where the time since boot is another; "
          "use local:/dir with a directory for each, or a server; when nothing runs under its "
          "locks, remove " +
              path};
}

Result<microseconds, Fault> directory_offset(const Directory& directory, const KernelTime& time,
                                             bool saw_reboot) {
  const microseconds of_wall = time.wall() - time.since_boot();
  auto file = open_clock(directory);
  if (file && !*file) {
    if (auto made = make_file(directory, clock_name, encode(time.base(of_wall))); !made)
      return unexpected(made.error());
    file = open_clock(directory);  // another process may have made it first
  }
  if (!file) return unexpected(file.error());
  if (!*file) return unexpected(Fault{FaultKind::silent, "its clock was removed just now"});
  const auto base = read_base(directory, *file);
  if (!base) return unexpected(base.error());
  if (!time.is_ours(*base)) return unexpected(other_time_namespace(path_of(directory)));

  microseconds offset = base->offset;
  if (time.was_rebooted_since(*base)) {
    offset = of_wall;
  } else if (saw_reboot) {
    offset = std::max(offset, of_wall);
  }
  if (offset != base->offset || time.since_boot() - base->written > max_age)
    write_base(*file, time.base(offset));
  return offset;
}

}  // namespace redlock::local
