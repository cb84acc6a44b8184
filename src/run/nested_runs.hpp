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

namespace redlock::run {

/// The address at which nested runs that inherit one of these leases reach its holder process: a
/// name in the abstract namespace of unix sockets (unix(7)), and so of the network namespace.
std::string parent_socket_name(const Token& token);

/// Nested runs that live on the leases of this one. Each keeps a connection to us open for as long
/// as its holder process lives: the kernel closes it, however that process ends. Every process of
/// the host can read the name, so a peer must be the same user (or root, or we are root), and soon
/// show that it knows the token of one of the leases. Only a few connections of a user may wait for
/// that at a time, and of all users but us and root together: others cannot keep ours out, nor take
/// more than a few hundredths of a processor. Single-threaded.
class NestedRuns : public std::enable_shared_from_this<NestedRuns> {
 public:
  /// `changed` runs when one of them has ended. `clock` must outlive the executor's run().
  NestedRuns(asio::any_io_executor executor, const Clock& clock, const std::vector<Lease>& leases,
             std::function<void()> changed);

  /// Accepts nested runs from now on. Where no socket can be had there are none, and runs below
  /// acquire for themselves.
  void listen();

  /// Accepts no more.
  void close();

  /// Whether none of them lives. Asks the kernel: a run that has ended is not counted, even before
  /// its end was reported.
  [[nodiscard]] bool empty() const;

  /// The pids of their holder processes; without those in pid namespaces that we do not see.
  [[nodiscard]] std::vector<pid_t> holders() const;

  /// Passes a signal on to all of them but those whose front process is in this process group, and
  /// got it there; 0: to all.
  void pass_on(int signal, pid_t spared_group) const;

 private:
  /// A connection that has not shown a token yet.
  struct Guest;

  struct Run {
    UniqueFd connection;
    pid_t holder;
  };
  void take_name();
  asio::awaitable<void> accept_all();
  bool accept_one();
  [[nodiscard]] bool has_room_for(uid_t user) const;
  asio::awaitable<void> serve(std::shared_ptr<Guest> guest);
  [[nodiscard]] static bool lives(const Run& run);
  [[nodiscard]] bool may_inherit(std::string_view secret) const;

  asio::any_io_executor executor_;
  const Clock& clock_;
  std::map<uid_t, int> guests_;  ///< by user
  std::vector<Token> tokens_;    ///< of our own leases
  std::function<void()> changed_;
  UniqueFd socket_;
  std::unique_ptr<Readable> connects_;
  std::list<Run> runs_;
};

}  // namespace redlock::run
