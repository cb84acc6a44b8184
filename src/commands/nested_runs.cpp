#include "commands/nested_runs.hpp"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <system_error>

#include "commands/unix_name.hpp"
#include "proc/process_stat.hpp"
#include "proc/title.hpp"
#include "support/digest.hpp"
#include "support/kernel_calls.hpp"
#include "support/spawn.hpp"

namespace redlock::commands {
namespace {

/// Limits for connections that have not sent a token yet: max_pending for our user, for root, and
/// for all other users together; fewer for each of those. Each must send its token within the
/// timeout. Connections beyond the limits are closed; the peers retry.
constexpr int max_pending = 32;
constexpr int max_pending_of_another_user = 8;
constexpr Milliseconds secret_timeout{2000};

/// After this many connections in a row we pause, so that a process that keeps connecting cannot
/// keep us busy. A backlog of 4096, the default maximum of a listener, is accepted in 1.3 s.
constexpr int connections_at_once = 32;
constexpr Milliseconds accept_pause{10};

/// A divisor: the fraction of this process's descriptor limit that nested runs may use. The other
/// descriptors are for its servers and its command.
constexpr rlim_t share_of_descriptors = 4;

/// Larger than any token's secret.
constexpr std::size_t max_secret = 256;

std::optional<ucred> peer_of(const UniqueFd& connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return std::nullopt;
  return peer;
}

/// Accepts our own user and root; as root, accepts every user, because a job may change its user.
bool may_connect(const ucred& peer) {
  return kernel::effective_user() == 0 || peer.uid == 0 || peer.uid == kernel::effective_user();
}

/// The process group of the front process of a run; 0 if it is unknown. The holder process is its
/// child, or with a shield its grandchild; both have left the group.
pid_t group_of_front(pid_t holder) {
  const auto of_holder = holder > 0 ? proc::read_process_stat(holder) : std::nullopt;
  if (!of_holder) return 0;
  const pid_t parent = of_holder->parent;
  if (!proc::has_guard_title(parent)) return ::getpgid(parent);
  const auto of_shield = proc::read_process_stat(parent);
  return of_shield ? ::getpgid(of_shield->parent) : 0;
}

/// A run takes two descriptors: its connection, and the duplicate that Readable waits on.
std::size_t max_runs() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return static_cast<std::size_t>(limit.rlim_cur / share_of_descriptors / 2);
}

}  // namespace

std::string parent_socket_name(const Token& token) {
  return "redlock-cli/" + sha1_hex("parent " + token.secret());
}

struct NestedRuns::PendingPeer {
  PendingPeer(const asio::any_io_executor& executor, UniqueFd made, ucred from)
      : connection(std::move(made)), credentials(from), readable(executor, connection.get()) {}

  UniqueFd connection;
  ucred credentials;
  Readable readable;
  bool is_known = false;
};

NestedRuns::NestedRuns(asio::any_io_executor executor, const Clock& clock,
                       const std::vector<Lease>& leases, std::function<void()> changed)
    : executor_(std::move(executor)), clock_(clock), changed_(std::move(changed)) {
  for (const Lease& lease : leases) {
    if (lease.keeping != Keeping::inherited) tokens_.push_back(lease.token);
  }
}

void NestedRuns::listen() {
  if (tokens_.empty()) return;
  bind_address();
  if (!socket_) return;
  try {
    connects_ = std::make_unique<Readable>(executor_, socket_.get());
  } catch (const std::system_error&) {
    return socket_.reset();  // no descriptor is free
  }
  spawn(executor_, [self = shared_from_this()] { return self->accept_all(); });
}

void NestedRuns::bind_address() {
  UniqueFd made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made) return;
  const UnixName name(parent_socket_name(tokens_.front()));
  if (::bind(made.get(), name.address(), name.size()) != 0 || ::listen(made.get(), SOMAXCONN) != 0)
    return;
  socket_ = std::move(made);
}

void NestedRuns::close() {
  socket_.reset();
  if (connects_) connects_->cancel();
}

asio::awaitable<void> NestedRuns::accept_all() {
  while (socket_) {
    co_await connects_->wait();
    int accepted = 0;
    while (accepted < connections_at_once && accept_one()) ++accepted;
    if (accepted == connections_at_once) co_await sleep_until(clock_, clock_.now() + accept_pause);
  }
  connects_.reset();  // it holds a duplicate of the socket
}

/// False if no connection is waiting to be accepted.
bool NestedRuns::accept_one() {
  if (!socket_) return false;
  UniqueFd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!connection) {
    if (errno == EINTR || errno == ECONNABORTED) return true;
    if (errno != EAGAIN) close();  // no descriptors or memory: retrying would fail again at once
    return false;
  }

  const auto peer = peer_of(connection);
  if (!peer || !may_connect(*peer) || !has_room_for(peer->uid) || runs_.size() >= max_runs())
    return true;
  try {
    const auto pending = std::make_shared<PendingPeer>(executor_, std::move(connection), *peer);
    ++pending_[peer->uid];
    spawn(executor_, [self = shared_from_this(), pending] { return self->serve(pending); });
  } catch (const std::system_error&) {
    close();
  }
  return true;
}

bool NestedRuns::has_room_for(uid_t user) const {
  const auto is_other = [](uid_t one) { return one != 0 && one != kernel::effective_user(); };
  const auto found = pending_.find(user);
  const int of_user = found == pending_.end() ? 0 : found->second;
  if (!is_other(user)) return of_user < max_pending;
  int of_others = 0;
  for (const auto& [one, count] : pending_) of_others += is_other(one) ? count : 0;
  return of_user < max_pending_of_another_user && of_others < max_pending;
}

asio::awaitable<void> NestedRuns::serve(std::shared_ptr<PendingPeer> pending) {
  spawn(executor_, [&clock = clock_, pending]() -> asio::awaitable<void> {
    co_await sleep_until(clock, clock.now() + secret_timeout);
    if (!pending->is_known) pending->readable.cancel();
  });

  co_await pending->readable.wait();
  if (const auto of_user = pending_.find(pending->credentials.uid); --of_user->second == 0)
    pending_.erase(of_user);
  pending->is_known = true;

  std::array<char, max_secret> secret{};
  const int fd = pending->connection.get();
  const ssize_t length = ::recv(fd, secret.data(), secret.size(), 0);
  if (length <= 0 || !may_inherit({secret.data(), static_cast<std::size_t>(length)}))
    co_return pending->connection.reset();
  if (::send(fd, "", 1, MSG_NOSIGNAL) != 1) co_return pending->connection.reset();

  const auto run =
      runs_.insert(runs_.end(), Run{std::move(pending->connection), pending->credentials.pid});
  char ignored = 0;
  ssize_t got = 0;
  do {
    co_await pending->readable.wait();
    got = ::recv(fd, &ignored, 1, 0);
  } while (got > 0 || (got < 0 && errno == EAGAIN));
  runs_.erase(run);
  changed_();
}

/// False once we have stopped accepting, because the answer would promise to keep the lease.
bool NestedRuns::may_inherit(std::string_view secret) const {
  return socket_ && std::any_of(tokens_.begin(), tokens_.end(),
                                [=](const Token& token) { return token.secret() == secret; });
}

bool NestedRuns::lives(const Run& run) {
  char ignored = 0;
  return ::recv(run.connection.get(), &ignored, 1, MSG_PEEK) != 0;
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

void NestedRuns::pass_on(int signal, pid_t spared_group) const {
  for (const Run& run : runs_) {
    if (spared_group == 0 || group_of_front(run.holder) != spared_group)
      (void)::send(run.connection.get(), &signal, sizeof signal, MSG_NOSIGNAL);
  }
}

}  // namespace redlock::commands
