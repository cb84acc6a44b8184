#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/execution_context.hpp>
#include <asio/ip/address.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "support/clock.hpp"

namespace redlock::redis {

/// The result of a name lookup: addresses, or an error.
struct Found {
  std::vector<asio::ip::address> addresses;
  std::string error{};           ///< one clause; meaningful if there are no addresses
  bool may_be_temporary = true;  ///< the name may have addresses despite the error
};

/// The addresses of a host, in the order in which to try them. Blocks in getaddrinfo(3).
Found find_addresses(const std::string& host);

/// Looks up names for everything that runs on one executor. Each lookup runs in a thread of its own
/// that is never joined: a name server that does not answer must not delay our exit (Asio's own
/// resolver joins its thread when the program ends). A lookup continues after the attempt that
/// began it has given up, and serves the next attempt. There is one lookup at a time for a name,
/// and its last result is kept. Use it only from the thread that runs the executor.
class Resolver final : public asio::execution_context::service {
 public:
  /// The resolver of this executor.
  static Resolver& of(const asio::any_io_executor& executor);

  /// A lookup that is under way, or has ended. Shared with the coroutines that wait for it.
  class Lookup {
   public:
    /// Waits for the result until `when`; null if the lookup is still under way then.
    asio::awaitable<const Found*> wait_until(const Clock& clock, Instant when);

   private:
    friend class Resolver;
    std::optional<Found> found_;
    std::set<Event*> waiting_;
  };

  /// Begins a lookup of the name, or returns the one that is under way.
  std::shared_ptr<Lookup> look_up(const std::string& host);

  /// The addresses that the last successful lookup of the name found; empty if there was none.
  [[nodiscard]] std::vector<asio::ip::address> last_known(const std::string& host) const;

  using Find = std::function<Found(const std::string& host)>;
  /// For tests: the function to call, in another thread, instead of find_addresses().
  void replace_find(Find find) { find_ = std::move(find); }

  explicit Resolver(asio::execution_context& context) : service(context) {}
  inline static asio::execution_context::id id;  ///< required by Asio

 private:
  void shutdown() override {}
  asio::awaitable<void> finish(std::string host, std::shared_ptr<Lookup> lookup, Find find);

  struct Name {
    std::shared_ptr<Lookup> under_way;
    std::vector<asio::ip::address> last_known;
  };

  asio::any_io_executor executor_;
  Find find_ = find_addresses;
  std::map<std::string, Name> names_;
};

}  // namespace redlock::redis
