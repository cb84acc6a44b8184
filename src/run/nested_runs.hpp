#pragma once

#include <sys/types.h>

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/lease.hpp"
#include "support/clock.hpp"
#include "support/readable.hpp"
#include "support/unique_fd.hpp"

namespace redlock::run {

/// Where the holder process of these leases is reached by runs below it that inherit one of them: a name in the abstract namespace of
/// unix sockets (unix(7)), and so of the network namespace.
std::string parent_socket_name(const Token& token);

/// Runs below this one that live on its leases. Each keeps a connection to us open for as long as its holder process lives: the kernel
/// closes it, however that ends. The name can be read by every process of the host, so what connects must be the same user (or root, or
/// we are), and show soon that it knows the token of one of the leases. Single-threaded.
class NestedRuns : public std::enable_shared_from_this<NestedRuns> {
 public:
  /// `changed` is called when one of them has ended. `clock` must outlive the executor's run().
  NestedRuns(asio::any_io_executor executor, const Clock& clock, const std::vector<Lease>& leases, std::function<void()> changed);

  /// Accepts them from now on. Where no socket can be had there are none, and runs below acquire for themselves.
  void listen();

  /// Accepts none any more.
  void close();

  /// Whether none of them lives. Asks the kernel: one that has ended is not counted, though nobody was told yet.
  [[nodiscard]] bool empty() const;

  /// Their holder processes; without those in pid namespaces that we do not see.
  [[nodiscard]] std::vector<pid_t> holders() const;

  /// Passes a signal on to all of them.
  void pass_on(int signal) const;

 private:
  /// A connection of which nothing is known yet.
  struct Guest;

  struct Run {
    UniqueFd connection;
    pid_t holder;
  };
  void take_name();
  asio::awaitable<void> accept_all();
  asio::awaitable<void> serve(std::shared_ptr<Guest> guest);
  [[nodiscard]] static bool lives(const Run& run);
  [[nodiscard]] bool may_inherit(std::string_view secret) const;

  asio::any_io_executor executor_;
  const Clock& clock_;
  int guests_ = 0;
  std::vector<Token> tokens_;  ///< of the leases that are ours
  std::function<void()> changed_;
  UniqueFd socket_;
  std::unique_ptr<Readable> connects_;
  std::list<Run> runs_;
};

}  // namespace redlock::run
