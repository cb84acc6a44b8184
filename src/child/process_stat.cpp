#include "child/process_stat.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "support/unique_fd.hpp"

namespace redlock::child {

std::optional<std::string> read_proc_file(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::string content;
  std::array<char, 4096> chunk{};
  for (;;) {
    const ssize_t got = ::read(file.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) return content;
    content.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

std::optional<ProcessStat> read_process_stat(pid_t pid) {
  const auto text = read_proc_file("/proc/" + std::to_string(pid) + "/stat");
  if (!text) return std::nullopt;
  // The name, in parentheses, can hold anything, ") Z 1" included; nothing after it holds a parenthesis.
  const auto name_end = text->rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  int threads = 0;
  ProcessStat stat{};
  // The fields from the 3rd to the 22nd.
  constexpr const char* form = " %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d %*s %llu";
  if (std::sscanf(text->c_str() + name_end + 1, form, &stat.state, &stat.parent, &threads, &stat.started) != 4) return std::nullopt;
  const bool ended = (stat.state == 'Z' || stat.state == 'X' || stat.state == 'x') && threads <= 1;
  stat.living = !ended;
  return stat;
}

std::uint64_t resident_bytes(pid_t pid) {
  static const auto page_size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto text = read_proc_file("/proc/" + std::to_string(pid) + "/statm");
  unsigned long long pages = 0;
  if (!text || std::sscanf(text->c_str(), "%*u %llu", &pages) != 1) return 0;
  return pages * page_size;
}

}  // namespace redlock::child
