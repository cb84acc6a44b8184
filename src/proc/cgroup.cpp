#include "proc/cgroup.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "proc/process_stat.hpp"
#include "support/random.hpp"
#include "support/text.hpp"

namespace redlock::proc {
namespace {

/// A killed cgroup may stay busy for a moment, and one whose processes fork while we empty it takes
/// a few rounds.
constexpr int removal_tries = 50;
constexpr std::chrono::milliseconds removal_pause{2};

/// Deeper than cgroups are nested in practice, and shallow enough for our stack.
constexpr int max_depth = 64;

std::string hint() {
  return "; run it as root, or in a cgroup that is delegated to you (systemd: Delegate=yes)";
}

std::string_view next_word(std::string_view& rest, char separator) {
  const auto end = std::min(rest.find(separator), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

/// mountinfo writes blanks and backslashes as three octal digits.
std::string unescape(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    unsigned code = 0;
    const bool escaped =
        text.front() == '\\' && text.size() >= 4 &&
        std::from_chars(text.data() + 1, text.data() + 4, code, 8).ptr == text.data() + 4 &&
        code < 256;
    plain += escaped ? static_cast<char>(code) : text.front();
    text.remove_prefix(escaped ? 4 : 1);
  }
  return plain;
}

struct Mount {
  std::string root;   ///< the part of the hierarchy that it shows
  std::string point;  ///< where it is mounted
};

/// `36 35 98:0 /root /point options [optional…] - cgroup2 source options`
std::optional<Mount> parse_cgroup2(std::string_view line) {
  const auto dash = line.find(" - ");
  if (dash == std::string_view::npos || !line.substr(dash).starts_with(" - cgroup2 "))
    return std::nullopt;
  for (int skipped = 0; skipped < 3; ++skipped) next_word(line, ' ');
  const std::string_view root = next_word(line, ' ');
  const std::string_view point = next_word(line, ' ');
  if (!root.starts_with('/') || !point.starts_with('/')) return std::nullopt;
  return Mount{unescape(root), unescape(point)};
}

/// Our path in the hierarchy, from the line `0::/path`.
std::optional<std::string> parse_membership(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = next_word(text, '\n');
    if (line.starts_with("0::/")) return std::string(line.substr(3));
  }
  return std::nullopt;
}

/// The part of `path` below `root`, which starts with a slash or is empty; nullopt if it is not
/// below.
std::optional<std::string_view> below(std::string_view path, std::string_view root) {
  if (root == "/") return path == "/" ? std::string_view() : path;
  if (!path.starts_with(root)) return std::nullopt;
  const std::string_view rest = path.substr(root.size());
  return rest.empty() || rest.front() == '/' ? std::optional(rest) : std::nullopt;
}

std::string read_all(int fd) {
  std::string content;
  std::array<char, 4096> chunk{};
  for (;;) {
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return content;
    content.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

std::string read_file(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file ? read_all(file.get()) : std::string();
}

UniqueFd open_to_write(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
}

/// Returns 0 or an errno value.
int write_number(int fd, long number) noexcept {
  std::array<char, 24> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  ssize_t written = 0;
  do {
    written = ::write(fd, text.data(), static_cast<std::size_t>(end - text.data()));
  } while (written < 0 && errno == EINTR);
  return written < 0 ? errno : 0;
}

std::vector<pid_t> processes_in(const std::string& directory) {
  return pids_in(read_file(directory + "/cgroup.procs"));
}

std::vector<std::string> children_of(const std::string& directory) {
  std::vector<std::string> children;
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(directory, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    std::error_code gone;
    if (entry->is_directory(gone) && !entry->is_symlink(gone))
      children.push_back(entry->path().string());
  }
  return children;
}

void kill_one_by_one(const std::string& directory, int depth) {
  for (const pid_t pid : processes_in(directory)) ::kill(pid, SIGKILL);
  if (depth == 0) return;
  for (const std::string& child : children_of(directory)) kill_one_by_one(child, depth - 1);
}

/// Returns whether it was removed.
bool remove_empty(const std::string& directory, int depth) {
  if (::rmdir(directory.c_str()) == 0 || errno == ENOENT) return true;
  if (depth == 0) return false;
  for (const std::string& child : children_of(directory)) remove_empty(child, depth - 1);
  return ::rmdir(directory.c_str()) == 0 || errno == ENOENT;
}

constexpr std::string_view name_prefix = "redlock-";

/// Whether this is a name of ours, and the process that made the cgroup has ended.
bool maker_is_dead(std::string_view name) {
  if (!name.starts_with(name_prefix)) return false;
  name.remove_prefix(name_prefix.size());
  const std::string_view number = next_word(name, '-');
  pid_t pid = 0;
  const auto end = std::from_chars(number.data(), number.data() + number.size(), pid).ptr;
  if (pid <= 0 || end != number.data() + number.size() || name.empty()) return false;
  return ::kill(pid, 0) != 0 && errno == ESRCH;
}

/// Each process that uses a cgroup locks its directory, because the pid in the name may belong to
/// another pid namespace.
UniqueFd claim(const std::string& directory, int operation) {
  UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd && ::flock(fd.get(), operation | LOCK_NB) != 0) fd.reset();
  return fd;
}

void remove_abandoned(const std::string& parent) {
  for (const std::string& directory : children_of(parent)) {
    if (!maker_is_dead(std::string_view(directory).substr(parent.size() + 1))) continue;
    if (claim(directory, LOCK_EX)) ::rmdir(directory.c_str());  // EBUSY protects a cgroup in use
  }
}

/// Puts a short-lived child into the cgroup and waits for its end. Returns 0 or an errno value.
int try_to_enter(const Cgroup& cgroup) {
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) ::_exit(cgroup.add(0));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return errno;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

}  // namespace

std::optional<std::string> find_cgroup(std::string_view mountinfo, std::string_view membership) {
  const auto path = parse_membership(membership);
  // A path that leads upwards is outside our cgroup namespace, so no mount that we see shows it.
  if (!path || path->starts_with("/..")) return std::nullopt;
  while (!mountinfo.empty()) {
    const auto mount = parse_cgroup2(next_word(mountinfo, '\n'));
    if (!mount) continue;
    if (const auto rest = below(*path, mount->root)) return mount->point + std::string(*rest);
  }
  return std::nullopt;
}

Result<Cgroup, std::string> Cgroup::create() {
  const auto ours = find_cgroup(read_file("/proc/self/mountinfo"), read_file("/proc/self/cgroup"));
  if (!ours)
    return unexpected<std::string>(
        "no cgroup v2 is mounted here; mount one, or use another --isolate");

  remove_abandoned(*ours);
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "/%s%ld-%08lx", name_prefix.data(),
                static_cast<long>(::getpid()),
                static_cast<unsigned long>(random_bits() & 0xffffffffU));
  const std::string directory = *ours + name.data();
  if (::mkdir(directory.c_str(), 0755) != 0) {
    return unexpected("cannot make a cgroup in " + escape_for_terminal(*ours) + ": " +
                      errno_text(errno) + hint());
  }

  Cgroup cgroup(directory);
  cgroup.claim_ = claim(directory, LOCK_SH);
  if (const int error = try_to_enter(cgroup); error != 0) {
    return unexpected("cannot put a process into a cgroup in " + escape_for_terminal(*ours) + ": " +
                      errno_text(error) + hint());
  }
  return cgroup;
}

Cgroup::Cgroup(std::string directory)
    : directory_(std::move(directory)),
      procs_(open_to_write(directory_ + "/cgroup.procs")),
      kill_(open_to_write(directory_ + "/cgroup.kill")),
      events_(::open((directory_ + "/cgroup.events").c_str(), O_RDONLY | O_CLOEXEC)) {}

Cgroup::Cgroup(Cgroup&& other) noexcept
    : directory_(std::exchange(other.directory_, {})),
      procs_(std::move(other.procs_)),
      kill_(std::move(other.kill_)),
      events_(std::move(other.events_)),
      claim_(std::move(other.claim_)) {}

Cgroup::~Cgroup() {
  if (!directory_.empty()) remove();
}

int Cgroup::add(pid_t pid) const noexcept {
  return procs_ ? write_number(procs_.get(), pid) : EACCES;
}

void Cgroup::kill() const {
  if (kill_ && write_number(kill_.get(), 1) == 0) return;
  // No process forks while it is frozen, and a frozen process can be killed.
  const UniqueFd freezer = open_to_write(directory_ + "/cgroup.freeze");
  if (freezer) write_number(freezer.get(), 1);
  kill_one_by_one(directory_, max_depth);
  if (freezer) write_number(freezer.get(), 0);
}

bool Cgroup::populated() const noexcept {
  std::array<char, 256> text{};
  const ssize_t length = ::pread(events_.get(), text.data(), text.size(), 0);
  if (length < 0) return errno != ENODEV;  // ENODEV: it was removed, so it is empty
  const std::string_view events(text.data(), static_cast<std::size_t>(length));
  return events.find("populated 0") == std::string_view::npos;
}

void Cgroup::remove() const noexcept try {
  if (remove_empty(directory_, max_depth)) return;
  const UniqueFd parent =
      open_to_write(directory_.substr(0, directory_.rfind('/')) + "/cgroup.procs");
  for (int tried = 0; tried < removal_tries; ++tried) {
    for (const pid_t pid : processes_in(directory_)) write_number(parent.get(), pid);
    if (remove_empty(directory_, max_depth)) return;
    std::this_thread::sleep_for(removal_pause);
  }
} catch (...) {
  // Out of memory: an empty directory remains.
}

}  // namespace redlock::proc
