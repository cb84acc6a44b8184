#include "child/channel.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace redlock::child {
namespace {

struct Header {
  Message::Kind kind;
  int number;
};

/// A report quotes at most a key and its holder and some server errors.
constexpr std::size_t longest_text = 128 * 1024;

}  // namespace

std::pair<Channel, Channel> Channel::make_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  return {Channel(UniqueFd(ends[0])), Channel(UniqueFd(ends[1]))};
}

void Channel::send(const Message& message) const {
  Header header{message.kind, message.number};
  std::string text = message.text.substr(0, longest_text);
  std::array<iovec, 2> parts{iovec{&header, sizeof header}, iovec{text.data(), text.size()}};
  msghdr packet{};
  packet.msg_iov = parts.data();
  packet.msg_iovlen = parts.size();
  while (::sendmsg(fd_.get(), &packet, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

std::pair<std::optional<Message>, Channel::Empty> Channel::receive() const {
  ssize_t length = 0;
  do {
    length = ::recv(fd_.get(), nullptr, 0, MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC);
  } while (length < 0 && errno == EINTR);
  if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {std::nullopt, Empty::nothing_yet};
  if (length < static_cast<ssize_t>(sizeof(Header))) return {std::nullopt, Empty::ended};

  Header header{};
  std::string text(static_cast<std::size_t>(length) - sizeof header, '\0');
  std::array<iovec, 2> parts{iovec{&header, sizeof header}, iovec{text.data(), text.size()}};
  msghdr packet{};
  packet.msg_iov = parts.data();
  packet.msg_iovlen = parts.size();
  if (::recvmsg(fd_.get(), &packet, MSG_DONTWAIT) != length) return {std::nullopt, Empty::ended};
  return {Message{header.kind, header.number, std::move(text)}, Empty::nothing_yet};
}

}  // namespace redlock::child
