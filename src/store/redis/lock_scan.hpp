#pragma once

#include <asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "store/lock_server.hpp"
#include "store/redis/connection.hpp"
#include "support/clock.hpp"

namespace redlock::redis {

/// Finds the locks of a server among its keys (SCAN), page by page. Its caller chooses the
/// connection for each page.
class LockScan {
 public:
  /// Both must outlive it.
  LockScan(const ListRequest& request, const Clock& clock);

  /// When the next answer is due.
  [[nodiscard]] Instant answer_by() const;

  /// Whether all pages are read, or the request's time has passed.
  [[nodiscard]] bool has_ended() const;

  /// Whether no page is read yet. The others must come from the same server: a cursor is only valid
  /// where it came from.
  [[nodiscard]] bool is_at_start() const { return cursor_ == "0"; }

  /// Asks for the next page.
  asio::awaitable<Result<Reply, Fault>> next_page(Connection& connection) const;

  /// Adds the locks of this page, which came on this connection, and reports the progress. -> the
  /// fault of a list that is too long or does not end; that ends the scan
  asio::awaitable<std::optional<Fault>> add(Reply page, Connection& connection);

  /// A fault that ended the scan, with the progress so far.
  [[nodiscard]] Fault so_far(Fault fault) const;

  /// What was found, without duplicates. Call it last.
  [[nodiscard]] LockList list() &&;

 private:
  [[nodiscard]] bool wants_used() const { return request_.listed == Listed::used; }
  void add_locks(const Reply& keys);

  const ListRequest& request_;
  const Clock& clock_;
  std::string pattern_;
  std::string cursor_ = "0";
  bool is_complete_ = false;
  LockList list_;
  ListProgress progress_;
  std::size_t bytes_ = 0;  ///< the memory of what was found
  std::uint64_t pages_ = 0;
};

}  // namespace redlock::redis
