#include "run/parent_links.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "run/nested_runs.hpp"
#include "run/unix_name.hpp"
#include "support/spawn.hpp"

namespace redlock::run {
namespace {

/// How long a parent may take to answer. One that hangs is about to lose its lease.
constexpr Milliseconds answer_timeout{2000};

/// A connection to the holder process, and to no other that took its name.
UniqueFd connect_to(const EnclosingLease& lease) {
  UniqueFd made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const Token& token = lease.handle.parts.front().token;
  const UnixName name(parent_socket_name(token));
  if (!made || ::connect(made.get(), name.address(), name.size()) != 0) return {};
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(made.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid != lease.guard.pid) return {};
  const std::string secret = token.secret();
  if (::send(made.get(), secret.data(), secret.size(), MSG_NOSIGNAL) < 0) return {};
  return made;
}

}  // namespace

ParentLinks::Link::Link(asio::any_io_executor executor, UniqueFd made, ProcessIdentity to, const Clock& clock)
    : connection(std::move(made)),
      readable(std::move(executor), connection.get()),
      parent(std::move(to)),
      answered(clock.make_bell()) {}

asio::awaitable<bool> ParentLinks::join(EnclosingLease lease) {
  const auto known = std::find_if(links_.begin(), links_.end(), [&](const auto& link) { return link->parent == lease.guard; });
  if (known != links_.end()) co_return (*known)->agreed;
  UniqueFd connection = connect_to(lease);
  if (!connection) co_return false;

  const auto link = std::make_shared<Link>(executor_, std::move(connection), lease.guard, clock_);
  links_.push_back(link);
  spawn(executor_, [self = shared_from_this(), link] { return self->listen(link); });
  co_await link->answered->wait_until(clock_.now() + answer_timeout);
  if (!link->agreed) {
    // An answer that comes later must find nobody.
    link->connection.reset();
    link->readable.cancel();
    links_.remove(link);
  }
  co_return link->agreed;
}

/// First comes the answer, then signals; at last the end.
asio::awaitable<void> ParentLinks::listen(std::shared_ptr<Link> link) {
  for (;;) {
    co_await link->readable.wait();
    int word = 0;
    const ssize_t length = ::recv(link->connection.get(), &word, sizeof word, 0);
    if (length < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (length <= 0) break;
    if (length == sizeof word) {
      on_signal_(word);
    } else {
      link->agreed = true;
      link->answered->ring();
    }
  }
  link->answered->ring();
}

}  // namespace redlock::run
