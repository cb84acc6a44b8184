#pragma once

#include <sys/types.h>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/lease.hpp"
#include "support/clock.hpp"
#include "support/readable.hpp"
#include "support/unique_fd.hpp"

namespace redlock::commands {

/// The address at which nested runs that inherit the lease of this token reach its holder process:
/// a name in the abstract namespace of unix sockets (unix(7)), visible in the whole network
/// namespace.
std::string parent_socket_name(const Token& token);

/// The nested runs that use the leases of this run. Each keeps a connection to us open while its
/// holder process lives; the kernel closes it, however that process ends.
///
/// Every process on the host can see the address. So a peer must have the same user (or be root, or
/// we are root), and must soon send the token of one of the leases. The number of connections that
/// have not sent it yet is limited, for each user and for all other users together: other users can
/// neither keep our own runs out, nor use more than a few percent of a CPU. Single-threaded.
class NestedRuns : public std::enable_shared_from_this<NestedRuns> {
 public:
  /// `changed` is called when one of them has ended. `clock` must outlive the executor's run().
  NestedRuns(asio::any_io_executor executor, const Clock& clock, const std::vector<Lease>& leases,
             std::function<void()> changed);

  /// Accepts nested runs from now on. If no socket can be made, none can connect, and runs below
  /// the command acquire the lock for themselves.
  void listen();

  /// Stops accepting.
  void close();

  /// Whether none of them lives. Asks the kernel, so a run that has ended does not count, even
  /// before `changed` was called for it.
  [[nodiscard]] bool empty() const;

  /// The pids of their holder processes, without those in pid namespaces that we cannot see.
  [[nodiscard]] std::vector<pid_t> holders() const;

  /// Passes a signal on to all of them, except those whose front process is in `spared_group` and
  /// has received it there; 0: to all.
  void pass_on(int signal, pid_t spared_group) const;

 private:
  /// A connection that has not sent a token yet.
  struct PendingPeer;

  struct Run {
    UniqueFd connection;
    pid_t holder;
  };
  void bind_address();
  asio::awaitable<void> accept_all();
  bool accept_one();
  [[nodiscard]] bool has_room_for(uid_t user) const;
  asio::awaitable<void> serve(std::shared_ptr<PendingPeer> pending);
  [[nodiscard]] static bool lives(const Run& run);
  [[nodiscard]] bool may_inherit(std::string_view secret) const;

  asio::any_io_executor executor_;
  const Clock& clock_;
  std::map<uid_t, int> pending_;  ///< the number of pending peers, by user
  std::vector<Token> tokens_;     ///< the tokens of our own leases
  std::function<void()> changed_;
  UniqueFd socket_;
  std::unique_ptr<Readable> connects_;
  std::list<Run> runs_;
};

}  // namespace redlock::commands
