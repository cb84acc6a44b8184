// What this host hands over: REDLOCK_HELD, token files, and the texts of /proc and of cgroup files.
// The first byte chooses the parser.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "commands/lease_file.hpp"
#include "core/lease_handle.hpp"
#include "fuzz.hpp"
#include "proc/cgroup.hpp"
#include "proc/process_stat.hpp"

using namespace redlock;
using namespace redlock::fuzz;

namespace {

void check_held(std::string_view text) {
  const std::vector<ParentLease> leases = read_held(text);
  for (const ParentLease& lease : leases) {
    check(lease.guard.pid > 0 && lease.guard.start > 0 && !lease.guard.boot.empty());
    check(lease.ttl.length() <= Milliseconds(Ttl::max) && !lease.handle.parts.empty());
  }
  const std::string written = held_text(leases);
  const std::vector<ParentLease> again = read_held(written);
  check(again.size() == leases.size() && held_text(again) == written);
}

/// A file of its own, removed at the end.
class TokenFile {
 public:
  TokenFile() : fd_(::mkstemp(path_.data())) { check(fd_ >= 0); }
  ~TokenFile() {
    ::close(fd_);
    ::unlink(path_.c_str());
  }
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  const std::string& path() const { return path_; }
  void fill(std::string_view text) const {
    check(::ftruncate(fd_, 0) == 0);
    check(::pwrite(fd_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  }

 private:
  std::string path_ = "/tmp/redlock-fuzz.XXXXXX";
  int fd_;
};

void check_token_file(std::string_view text) {
  static const TokenFile file;
  file.fill(text);
  const auto handle = commands::read_lease_file(file.path());
  if (!handle) return check(is_printable_utf8(handle.error()));
  check(LeaseHandle::from_text(handle->text())->parts == handle->parts);
  // What was read can be handed on.
  const std::string line = commands::export_line(*handle);
  check(line.ends_with('\n') && line.find(handle->text()) != std::string::npos);
}

void check_cgroup(std::string_view text) {
  const std::size_t half = std::min(text.find('\0'), text.size());
  const std::string_view membership = text.substr(std::min(half + 1, text.size()));
  if (const auto directory = proc::find_cgroup(text.substr(0, half), membership))
    check(directory->starts_with('/'));
}

void check_process(const std::string& text) {
  if (const auto stat = proc::process_stat_in(text)) {
    check(stat->state != '\0');
    check(stat->living || stat->state == 'Z' || stat->state == 'X' || stat->state == 'x');
  }
  proc::private_bytes_in(text);
  proc::cpu_time_in(text);
  for (const pid_t pid : proc::pids_in(text)) check(pid > 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text = text_of(data + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      check_held(text);
      break;
    case 1:
      check_token_file(text);
      break;
    case 2:
      check_cgroup(text);
      break;
    default:
      check_process(std::string(text));
      break;
  }
  return 0;
}
