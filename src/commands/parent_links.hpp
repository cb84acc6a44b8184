#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <functional>
#include <list>
#include <memory>

#include "core/lease_handle.hpp"
#include "support/clock.hpp"
#include "support/readable.hpp"
#include "support/unique_fd.hpp"

namespace redlock::commands {

/// A nested run's connections to the holder processes whose leases it inherits (NestedRuns). While
/// they are open, those leases are not released, whatever happens to the commands of the parent
/// runs. Single-threaded.
class ParentLinks : public std::enable_shared_from_this<ParentLinks> {
 public:
  /// `on_signal` receives the signals that a parent run passes on. `clock` and `interrupt` must
  /// outlive the executor's run().
  ParentLinks(asio::any_io_executor executor, const Clock& clock, Interrupt& interrupt,
              std::function<void(int)> on_signal)
      : executor_(std::move(executor)),
        clock_(clock),
        interrupt_(interrupt),
        on_signal_(std::move(on_signal)) {}

  /// Asks the lease's holder process to keep the lease for as long as we live. False when it
  /// refuses because it is about to release the lease, cannot be reached, or does not answer within
  /// the lease's ttl, and when the interrupt is raised; then the lease must not be inherited.
  asio::awaitable<bool> join(ParentLease lease);

 private:
  struct Link {
    Link(asio::any_io_executor executor, UniqueFd made, ProcessIdentity to, const Clock& clock);

    UniqueFd connection;
    Readable readable;
    ProcessIdentity parent;
    std::unique_ptr<Event> answered;
    bool agreed = false;
  };

  /// Waits until the parent has answered, or until `last`.
  asio::awaitable<void> ask(std::shared_ptr<Link> link, Instant last);
  asio::awaitable<void> listen(std::shared_ptr<Link> link);

  asio::any_io_executor executor_;
  const Clock& clock_;
  Interrupt& interrupt_;
  std::function<void(int)> on_signal_;
  std::list<std::shared_ptr<Link>> links_;
};

}  // namespace redlock::commands
