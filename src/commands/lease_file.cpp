#include "commands/lease_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "output/console.hpp"
#include "support/kernel_calls.hpp"
#include "support/random.hpp"
#include "support/text.hpp"
#include "support/unique_fd.hpp"

namespace redlock::commands {
namespace {

constexpr std::string_view lease_prefix = "REDLOCK_LEASE='";
constexpr std::size_t max_file = 256 * 1024;

unexpected<std::string> failure(const std::string& path, std::string_view what) {
  return unexpected<std::string>(fmt::format("{}: {}", escape_for_terminal(path), what));
}

unexpected<std::string> system_failure(const std::string& path) {
  return failure(path, errno_text(errno));
}

/// The variables that have a value as NAME='value', each between `before` and `after`.
std::string assignments(const std::vector<guard::Variable>& variables, std::string_view before,
                        std::string_view after) {
  std::string text;
  for (const auto& [name, value] : variables) {
    if (value) text += fmt::format("{}{}={}{}", before, name, shell_quote(*value), after);
  }
  return text;
}

/// REDLOCK_LEASE comes first, so that a key that contains newlines cannot imitate it.
std::string file_text(const LeaseHandle& handle) {
  std::vector<guard::Variable> variables = variables_of(handle);
  std::stable_partition(variables.begin(), variables.end(), [](const guard::Variable& variable) {
    return variable.name == "REDLOCK_LEASE";
  });
  return assignments(variables, "", "\n");
}

/// Unsets the slots of an earlier lease, which a script must not take for those of the new one.
std::string forget_slots() {
  std::string names;
  for (const auto& [name, value] : variables_of({})) {
    if (!value && std::getenv(name.c_str()) != nullptr) names += " " + name;
  }
  return names.empty() ? names : "unset" + names + "; ";
}

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

/// A rename survives a crash only if the directory is synced, too.
void sync_directory_of(const std::string& path) {
  const UniqueFd fd(::open(directory_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd) (void)::fsync(fd.get());
}

}  // namespace

std::vector<guard::Variable> variables_of(const LeaseHandle& handle) {
  std::string key;
  std::string token;
  std::string fence;
  std::optional<std::string> slot;
  std::optional<std::string> slot_list;
  std::optional<std::string> slot_name;
  std::optional<std::string> slot_name_list;
  for (const LeaseHandle::Part& part : handle.parts) {
    const char* const separator = key.empty() ? "" : "\n";
    key += separator + part.resource.key();
    token += separator + part.token.secret();
    fence += separator + part.fence.text();
    const Hold& hold = part.hold;
    if (!hold.slots.empty()) {
      slot = std::to_string(hold.slots.front());
      slot_list = fmt::format("{}", fmt::join(hold.slots, " "));
    }
    if (!hold.slot_names.empty()) {
      slot_name = hold.slot_names.front();
      slot_name_list = fmt::format("{}", fmt::join(hold.slot_names, " "));
    }
  }
  return {{"REDLOCK_KEY", key},
          {"REDLOCK_TOKEN", token},
          {"REDLOCK_FENCE", fence},
          {"REDLOCK_LEASE", handle.text()},
          {"REDLOCK_SLOT", slot},
          {"REDLOCK_SLOT_LIST", slot_list},
          {"REDLOCK_SLOT_NAME", slot_name},
          {"REDLOCK_SLOT_NAME_LIST", slot_name_list}};
}

LeaseHandle handle_of(const std::vector<Lease>& leases, std::string servers) {
  LeaseHandle handle{{}, std::move(servers)};
  for (const Lease& lease : leases)
    handle.parts.push_back(
        {lease.resource, lease.token, lease.fence, lease.keeping != Keeping::own, lease.hold});
  return handle;
}

std::string export_line(const LeaseHandle& handle) {
  return forget_slots() + "export" + assignments(variables_of(handle), " ", "") + "\n";
}

std::string failed_export_line(int exit_code) {
  std::string names;
  for (const auto& [name, value] : variables_of({})) {
    if (value) names += " " + name;
  }
  return forget_slots() + fmt::format("unset{}; (exit {})\n", names, exit_code);
}

Result<void, std::string> check_lease_file_target(const std::string& path) {
  if (path.empty()) return unexpected<std::string>("the path is empty");
  const std::string directory = directory_of(path);
  if (!may_access(directory.c_str(), W_OK | X_OK))
    return failure(path, fmt::format("cannot write to its directory: {}", errno_text(errno)));
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0)
    return errno == ENOENT ? Result<void, std::string>() : system_failure(path);
  if (S_ISREG(info.st_mode)) return {};
  const std::string_view what =
      S_ISLNK(info.st_mode) ? "is a symbolic link" : "is not a regular file";
  return failure(path, fmt::format("{}; a lease file would take its place", what));
}

Result<void, std::string> write_lease_file(const std::string& path, const LeaseHandle& handle) {
  const std::string temporary = fmt::format("{}.{:016x}", path, random_bits());
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                     S_IRUSR | S_IWUSR));
  if (!fd) return system_failure(path);
  const bool written = ::fchmod(fd.get(), S_IRUSR | S_IWUSR) == 0 &&
                       output::write_all(fd.get(), file_text(handle)) && ::fsync(fd.get()) == 0 &&
                       ::rename(temporary.c_str(), path.c_str()) == 0;
  if (!written) {
    auto why = system_failure(path);
    ::unlink(temporary.c_str());
    return why;
  }
  sync_directory_of(path);
  return {};
}

Result<LeaseHandle, std::string> read_lease_file(const std::string& path) {
  if (path.empty()) return unexpected<std::string>("--token-file: the path is empty");
  // O_NONBLOCK: opening a named pipe must not block.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd && errno == ELOOP)
    return failure(path, "is a symbolic link; a lease file must be a file of your own");
  if (!fd) return system_failure(path);
  struct stat info {};
  if (kernel::fstat(fd.get(), info) != 0) return system_failure(path);
  if (!S_ISREG(info.st_mode)) return failure(path, "is not a regular file");
  if (info.st_uid != kernel::effective_user())
    return failure(path, "belongs to another user; a lease file must be your own");
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return failure(
        path, "can be read by others, so its lease is not secret; chmod 600 it if you trust it");

  std::string text(max_file, '\0');
  const ssize_t length = ::read(fd.get(), text.data(), text.size());
  if (length < 0) return system_failure(path);
  text.resize(static_cast<std::size_t>(length));
  const std::size_t end = text.find('\n');
  if (end == std::string::npos || !text.starts_with(lease_prefix) || text[end - 1] != '\'')
    return failure(path, "is not a lease file");
  const auto handle = LeaseHandle::from_text(
      std::string_view(text).substr(lease_prefix.size(), end - 1 - lease_prefix.size()));
  if (!handle) return failure(path, "is not a lease file of this version");
  return *handle;
}

}  // namespace redlock::commands
