#include "guard/channel.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "support/kernel_calls.hpp"
#include "support/trace.hpp"

namespace redlock::guard {
namespace {

/// A longer text is sent as a file in memory, because only a packet of up to this size fits into
/// the smallest socket buffer that can be configured.
constexpr std::size_t max_packet_text = 2048;

struct Header {
  Message::Kind kind;
  int number;
  int in_file;  ///< 1: the text is in the file sent with the packet; an int, to avoid padding
  pid_t sender;
  int reached_job;
};

/// Room for one descriptor beside a packet.
struct Rights {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> bytes{};
};

/// A file in memory that holds `text`; empty when memory or descriptors run out, or the text
/// exceeds RLIMIT_FSIZE.
UniqueFd file_with(std::string_view text) {
  UniqueFd file(::memfd_create("message", MFD_CLOEXEC));
  while (file && !text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return {};
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return file;
}

/// The whole content of the file.
std::optional<std::string> text_in(const UniqueFd& file) {
  struct stat about = {};
  if (!file || ::fstat(file.get(), &about) != 0) return std::nullopt;
  std::string text(static_cast<std::size_t>(about.st_size), '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t got =
        ::pread(file.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    done += static_cast<std::size_t>(got);
  }
  return text;
}

void attach(msghdr& packet, Rights& rights, int file) {
  packet.msg_control = rights.bytes.data();
  packet.msg_controllen = rights.bytes.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&packet);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof file);
  std::memcpy(CMSG_DATA(header), &file, sizeof file);
}

/// The descriptor that came with a packet.
UniqueFd detach(msghdr& packet) {
  const cmsghdr* const header = CMSG_FIRSTHDR(&packet);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
    return {};
  int file = -1;
  std::memcpy(&file, CMSG_DATA(header), sizeof file);
  return UniqueFd(file);
}

/// The message in a line of the trace. Its text may contain a token.
std::string shown(const Message& message) {
  static constexpr std::array words{"signal",   "handed_over", "go",     "may_start",
                                    "waiting",  "started",     "paused", "notify",
                                    "notified", "ended",       "exited", "died"};
  std::string text = words.at(static_cast<std::size_t>(message.kind));
  text += " " + std::to_string(message.number);
  if (message.kind == Message::Kind::signal)
    text += " from " + std::to_string(message.sender) + (message.reached_job ? ", in the job" : "");
  if (!message.text.empty()) text += ", " + std::to_string(message.text.size()) + " bytes";
  return text;
}

}  // namespace

std::pair<Channel, Channel> Channel::make_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw_errno("socketpair");
  return {Channel(UniqueFd(ends[0])), Channel(UniqueFd(ends[1]))};
}

bool Channel::send(const Message& message) const {
  Header header{message.kind, message.number, message.text.size() > max_packet_text ? 1 : 0,
                message.sender, message.reached_job ? 1 : 0};
  std::string text = message.text;
  std::array<iovec, 2> parts{iovec{&header, sizeof header}, iovec{text.data(), text.size()}};
  msghdr packet{};
  packet.msg_iov = parts.data();
  packet.msg_iovlen = parts.size();

  UniqueFd file;
  Rights rights;
  if (header.in_file != 0) {
    file = file_with(text);
    if (!file) return false;
    packet.msg_iovlen = 1;
    attach(packet, rights, file.get());
  }

  ssize_t sent = 0;
  do {
    sent = ::sendmsg(fd_.get(), &packet, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (is_traced()) trace("channel", (sent < 0 ? "not sent: " : "sent: ") + shown(message));
  return sent >= 0;
}

std::pair<std::optional<Message>, Channel::Empty> Channel::receive() const {
  Header header{};
  std::string text(max_packet_text, '\0');
  std::array<iovec, 2> parts{iovec{&header, sizeof header}, iovec{text.data(), text.size()}};
  Rights rights;
  msghdr packet{};
  packet.msg_iov = parts.data();
  packet.msg_iovlen = parts.size();
  packet.msg_control = rights.bytes.data();
  packet.msg_controllen = rights.bytes.size();

  ssize_t length = 0;
  do {
    length = ::recvmsg(fd_.get(), &packet, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (length < 0 && errno == EINTR);
  if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
    return {std::nullopt, Empty::nothing_yet};
  if (length < static_cast<ssize_t>(sizeof header)) return {std::nullopt, Empty::ended};

  if (header.in_file != 0) {
    auto whole = text_in(detach(packet));
    if (!whole) return {std::nullopt, Empty::ended};
    text = std::move(*whole);
  } else {
    text.resize(static_cast<std::size_t>(length) - sizeof header);
  }
  Message message{header.kind, header.number, std::move(text), header.sender,
                  header.reached_job != 0};
  if (is_traced()) trace("channel", "received: " + shown(message));
  return {std::move(message), Empty::nothing_yet};
}

}  // namespace redlock::guard
