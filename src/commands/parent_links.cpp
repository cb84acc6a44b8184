#include "commands/parent_links.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "commands/nested_runs.hpp"
#include "commands/unix_name.hpp"
#include "support/spawn.hpp"

namespace redlock::commands {
namespace {

/// The interval between attempts to reach a parent run to which many connect at once.
constexpr Milliseconds retry_interval{20};

enum class Reach { connected, busy, gone };

/// Connects to the holder process; refuses another process that uses its address.
Reach connect_to(const ParentLease& lease, UniqueFd& connection) {
  connection = UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const Token& token = lease.handle.parts.front().token;
  const UnixName name(parent_socket_name(token));
  if (!connection) return Reach::gone;
  if (::connect(connection.get(), name.address(), name.size()) != 0)
    return errno == EAGAIN ? Reach::busy : Reach::gone;

  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      peer.pid != lease.guard.pid)
    return Reach::gone;

  const std::string secret = token.secret();
  // An error means that the parent has closed the connection; then we retry.
  (void)::send(connection.get(), secret.data(), secret.size(), MSG_NOSIGNAL);
  return Reach::connected;
}

}  // namespace

ParentLinks::Link::Link(asio::any_io_executor executor, UniqueFd made, ProcessIdentity to,
                        const Clock& clock)
    : connection(std::move(made)),
      readable(std::move(executor), connection.get()),
      parent(std::move(to)),
      answered(clock.make_event()) {}

asio::awaitable<bool> ParentLinks::join(ParentLease lease) {
  const auto known = std::find_if(links_.begin(), links_.end(),
                                  [&](const auto& link) { return link->parent == lease.guard; });
  if (known != links_.end()) co_return true;

  const Instant last = clock_.now() + lease.ttl.length();
  while (clock_.now() < last && !interrupt_.raised()) {
    UniqueFd connection;
    const Reach reach = connect_to(lease, connection);
    if (reach == Reach::gone) co_return false;
    if (reach == Reach::connected) {
      const auto link =
          std::make_shared<Link>(executor_, std::move(connection), lease.guard, clock_);
      co_await ask(link, last);
      if (link->agreed) {
        links_.push_back(link);
        co_return true;
      }
      // A late answer must find the connection closed, so that the parent does not count us.
      link->connection.reset();
      link->readable.cancel();
    }
    co_await sleep_until(clock_, clock_.now() + retry_interval);
  }
  co_return false;
}

asio::awaitable<void> ParentLinks::ask(std::shared_ptr<Link> link, Instant last) {
  const Interrupt::Listener gives_up(interrupt_, *link->answered);
  spawn(executor_, [self = shared_from_this(), link] { return self->listen(link); });
  co_await link->answered->wait_until(last);
}

/// The answer arrives first, then signals, and finally end of file.
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
      link->answered->notify();
    }
  }
  links_.remove(link);
  link->answered->notify();
}

}  // namespace redlock::commands
