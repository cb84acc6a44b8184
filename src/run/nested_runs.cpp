#include "run/nested_runs.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "run/unix_name.hpp"
#include "store/local/digest.hpp"
#include "support/spawn.hpp"

namespace redlock::run {
namespace {

/// How many may connect between two turns of ours; others are refused, and acquire for themselves.
constexpr int max_pending = 64;

/// More than any token's secret has.
constexpr std::size_t max_secret = 256;

pid_t peer_of(const UniqueFd& connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

}  // namespace

std::string parent_socket_name(const Token& token) {
  return "redlock-cli/" + local::sha1_hex("parent " + token.secret());
}

NestedRuns::NestedRuns(asio::any_io_executor executor, const std::vector<Lease>& leases, std::function<void()> changed)
    : executor_(std::move(executor)), changed_(std::move(changed)) {
  for (const Lease& lease : leases) {
    if (lease.tenure != Tenure::borrowed) tokens_.push_back(lease.token);
  }
}

void NestedRuns::listen() {
  if (tokens_.empty()) return;
  take_name();
  if (!socket_) return;
  connects_ = std::make_unique<Readable>(executor_, socket_.get());
  spawn(executor_, [self = shared_from_this()] { return self->accept_all(); });
}

void NestedRuns::take_name() {
  UniqueFd made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made) return;
  const UnixName name(parent_socket_name(tokens_.front()));
  if (::bind(made.get(), name.address(), name.size()) != 0 || ::listen(made.get(), max_pending) != 0) return;
  socket_ = std::move(made);
}

void NestedRuns::close() {
  socket_.reset();
  if (connects_) connects_->cancel();
}

asio::awaitable<void> NestedRuns::accept_all() {
  while (socket_) {
    UniqueFd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (connection) {
      // A shared pointer, as a coroutine's function must be copyable.
      auto held = std::make_shared<UniqueFd>(std::move(connection));
      spawn(executor_, [self = shared_from_this(), held] { return self->serve(std::move(*held)); });
    } else if (errno == EAGAIN) {
      co_await connects_->wait();
    } else if (errno != EINTR && errno != ECONNABORTED) {
      close();  // no descriptors, no memory: it would only fail again at once
    }
  }
  connects_.reset();  // it has a descriptor of the socket, too
}

asio::awaitable<void> NestedRuns::serve(UniqueFd connection) {
  Readable readable(executor_, connection.get());
  co_await readable.wait();
  std::array<char, max_secret> secret{};
  const ssize_t length = ::recv(connection.get(), secret.data(), secret.size(), 0);
  if (length <= 0 || !may_inherit({secret.data(), static_cast<std::size_t>(length)})) co_return;
  if (::send(connection.get(), "", 1, MSG_NOSIGNAL) != 1) co_return;

  const int fd = connection.get();
  const pid_t holder = peer_of(connection);
  const auto run = runs_.insert(runs_.end(), Run{std::move(connection), holder});
  char nothing = 0;
  ssize_t got = 0;
  do {
    co_await readable.wait();
    got = ::recv(fd, &nothing, 1, 0);
  } while (got > 0 || (got < 0 && errno == EAGAIN));
  runs_.erase(run);
  changed_();
}

/// Not once we let nobody in any more: its answer would be a promise.
bool NestedRuns::may_inherit(std::string_view secret) const {
  return socket_ && std::any_of(tokens_.begin(), tokens_.end(), [=](const Token& token) { return token.secret() == secret; });
}

bool NestedRuns::lives(const Run& run) {
  char nothing = 0;
  return ::recv(run.connection.get(), &nothing, 1, MSG_PEEK) != 0;
}

bool NestedRuns::empty() const {
  return std::none_of(runs_.begin(), runs_.end(), lives);
}

std::vector<pid_t> NestedRuns::holders() const {
  std::vector<pid_t> pids;
  for (const Run& run : runs_) {
    if (run.holder != 0 && lives(run)) pids.push_back(run.holder);
  }
  return pids;
}

void NestedRuns::pass_on(int signal) const {
  for (const Run& run : runs_) (void)::send(run.connection.get(), &signal, sizeof signal, MSG_NOSIGNAL);
}

}  // namespace redlock::run
