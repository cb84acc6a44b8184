#include "store/password_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "support/text.hpp"
#include "support/unique_fd.hpp"

namespace redlock {
namespace {

/// Tokens of cloud providers have several KiB. The limit is for devices that can be read endlessly.
constexpr std::size_t max_line = 64 * 1024;

/// Reads until the end of the first line.
Result<std::string, std::string> read_line(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  while (text.find('\n') == std::string::npos) {
    const ssize_t length = ::read(fd, buffer.data(), buffer.size());
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return unexpected(errno_text(errno));
    if (length == 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(length));
    if (text.size() > max_line) return unexpected(std::string("its first line is too long"));
  }
  if (text.empty()) return unexpected(std::string("it is empty"));
  return password_in(text);
}

bool is_regular(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

Result<std::shared_ptr<PasswordFile>, std::string> PasswordFile::open(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return unexpected(errno_text(errno));
  auto password = read_line(fd.get());
  if (!password) return unexpected(std::move(password.error()));
  auto file = std::make_shared<PasswordFile>();
  std::error_code ignored;  // without a working directory the file is read once
  if (is_regular(fd.get())) file->path_ = std::filesystem::absolute(path, ignored).string();
  file->password_ = std::move(*password);
  return file;
}

const std::string& PasswordFile::password() {
  if (path_.empty()) return password_;
  // The file may have been replaced, and opening a pipe would wait for a writer.
  const UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd || !is_regular(fd.get())) return password_;
  // The first line is empty while the file is being written, or if it was truncated.
  const auto password = read_line(fd.get());
  if (password && !password->empty()) password_ = *password;
  return password_;
}

std::string password_in(std::string_view text) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  text = text.substr(0, text.find('\n'));
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  if (text.ends_with('\r')) text.remove_suffix(1);
  return std::string(text);
}

}  // namespace redlock
