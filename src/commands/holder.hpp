#pragma once

#include <asio/awaitable.hpp>
#include <memory>

#include "commands/acquisition.hpp"
#include "commands/guarded.hpp"
#include "commands/hold_report.hpp"
#include "commands/options.hpp"
#include "commands/session.hpp"
#include "guard/front.hpp"
#include "guard/front_link.hpp"

namespace redlock::commands {

/// A holder process: acquires the leases, keeps them for what it guards, releases them, and reports
/// to the front process. Single-threaded.
class HolderProcess {
 public:
  /// All must outlive it.
  HolderProcess(Session& session, const LockOptions& options, Demands demands,
                guard::FrontLink& link, HoldReport& report, Guarded& guarded);

  /// The whole life of the process, until the end was reported to the front process. Returns 0.
  asio::awaitable<int> live();

 private:
  asio::awaitable<bool> wait();
  asio::awaitable<bool> hold();
  void keep();
  asio::awaitable<void> watch_leases();
  void note(const SetExtended& event);
  void note(const SetInTrouble& event);
  void note(const SetEnded& event);
  void note(const StopRequested& event);
  asio::awaitable<void> release(Parting parting);
  asio::awaitable<void> release_while_paused();
  asio::awaitable<void> count_if_skipped();
  void conclude_interrupted();
  void report();

  Session& session_;
  const LockOptions& options_;
  guard::FrontLink& link_;
  HoldReport& report_;
  Guarded& guarded_;
  Acquisition acquisition_;
  std::shared_ptr<HeldSet> leases_;  ///< the current or last ones
  bool parted_ = false;              ///< what was guarded has ended
};

}  // namespace redlock::commands
