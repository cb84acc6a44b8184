#include "proc/title.hpp"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>

#include "proc/process_stat.hpp"

namespace redlock::proc {
namespace {

bool runs_program(pid_t pid, const char* path) {
  struct stat program {};
  struct stat theirs {};
  if (::stat(("/proc/" + std::to_string(pid) + "/exe").c_str(), &theirs) != 0) {
    // An exiting process has no program file for a moment, although it still counts as living.
    return errno == ENOENT;
  }
  return ::stat(path, &program) == 0 && program.st_dev == theirs.st_dev &&
         program.st_ino == theirs.st_ino;
}

bool has_guard_as_parent(pid_t pid) {
  const auto stat = read_process_stat(pid);
  return stat && has_guard_title(stat->parent);
}

constexpr std::array<std::string_view, 5> cookies{
    "RUNNER_TRACKING_ID=", "JENKINS_NODE_COOKIE=", "JENKINS_SERVER_COOKIE=", "BUILD_ID=",
    "HUDSON_COOKIE="};

bool is_cookie(std::string_view entry) {
  return std::ranges::any_of(cookies,
                             [entry](std::string_view name) { return entry.starts_with(name); });
}

}  // namespace

void set_name(std::string_view name) noexcept {
  ::prctl(PR_SET_NAME, std::string(name).c_str(), 0, 0, 0);
}

void set_title(std::string_view title, int argc, char** argv) noexcept {
  set_name(title);
  if (argc < 1 || argv[0] == nullptr) return;
  // The kernel shows the bytes from the first argument to the end of the last; usually the
  // arguments are contiguous.
  char* const begin = argv[0];
  char* end = begin;
  for (int i = 0; i < argc && argv[i] == end; ++i) end += std::strlen(argv[i]) + 1;
  const auto room = static_cast<std::size_t>(end - begin);
  std::memset(begin, 0, room);
  std::memcpy(begin, title.data(), std::min(title.size(), room - 1));
}

bool has_guard_title(pid_t pid) {
  const auto name = read_proc_file("/proc/" + std::to_string(pid) + "/comm");
  if (!name || name->empty()) return false;
  constexpr std::array titles{holder_title, shield_title, awaiter_title, releaser_title,
                              witness_title};
  const std::string_view text(name->data(), name->size() - 1);  // without its newline
  if (text == tree_witness_name)
    return runs_program(pid, tree_witness_program) && has_guard_as_parent(pid);
  return std::find(titles.begin(), titles.end(), text) != titles.end() &&
         runs_program(pid, "/proc/self/exe");
}

void hide_ci_cookies() {
  static std::deque<std::string> copies;  // environ points into these until the process ends
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (!is_cookie(*entry)) continue;
    copies.emplace_back(*entry);
    std::memset(*entry, 0, copies.back().size());
    *entry = copies.back().data();
  }
}

}  // namespace redlock::proc
