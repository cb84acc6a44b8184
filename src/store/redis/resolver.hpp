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

/// What a name lookup found: addresses, or an error.
struct Found {
  std::vector<asio::ip::address> addresses;
  std::string error{};           ///< one clause; of interest without addresses
  bool may_be_temporary = true;  ///< the error: the name may well have addresses all the same
};

/// The addresses of a host by getaddrinfo(3); blocks. In the order in which they are to be tried.
Found find_addresses(const std::string& host);

/// Looks up names for everything that runs on one executor, each in a thread of its own that is
/// never joined: a name server that does not answer must not delay our end (Asio's own resolver
/// joins its thread when the program ends). A lookup goes on when the attempt that began it has
/// given up, and serves the next; there is one at a time for a name. What it found last is kept.
/// Use it from the thread that runs the executor.
class Resolver final : public asio::execution_context::service {
 public:
  /// The one for this executor.
  static Resolver& of(const asio::any_io_executor& executor);

  /// A lookup that is under way, or has ended. Shared with those who wait for it.
  class Lookup {
   public:
    /// Waits for it until `when`. -> null: it is still under way
    asio::awaitable<const Found*> wait_until(const Clock& clock, Instant when);

   private:
    friend class Resolver;
    std::optional<Found> found_;
    std::set<Event*> waiting_;
  };

  /// Begins a lookup of the name, or joins the one that is under way.
  std::shared_ptr<Lookup> look_up(const std::string& host);

  /// The addresses that the last successful lookup of the name found; empty: there was none.
  [[nodiscard]] std::vector<asio::ip::address> last_known(const std::string& host) const;

  using Find = std::function<Found(const std::string& host)>;
  /// For tests: what is called, in another thread, in place of find_addresses().
  void replace_find(Find find) { find_ = std::move(find); }

  explicit Resolver(asio::execution_context& context) : service(context) {}
  inline static asio::execution_context::id id;  ///< as Asio wants it

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
