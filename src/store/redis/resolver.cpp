#include "store/redis/resolver.hpp"

#include <netdb.h>
#include <sys/eventfd.h>

#include <asio/ip/address.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "support/readable.hpp"
#include "support/text.hpp"
#include "support/unique_fd.hpp"

namespace redlock::redis {
namespace {

using Endpoints = std::vector<asio::ip::tcp::endpoint>;

/// Shared by the waiting coroutine and the resolving thread; the last one to end frees it.
struct Lookup {
  std::string host;
  std::uint16_t port = 0;
  UniqueFd done;  ///< an eventfd
  std::mutex mutex;
  Endpoints found;
  std::string error;
};

void look_up(const std::shared_ptr<Lookup>& lookup) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  const int status = ::getaddrinfo(lookup->host.c_str(), nullptr, &hints, &list);
  const std::lock_guard lock(lookup->mutex);
  if (status != 0)
    lookup->error = status == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(status);
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    asio::ip::tcp::endpoint endpoint;
    if (entry->ai_addrlen > endpoint.capacity()) continue;
    std::memcpy(endpoint.data(), entry->ai_addr, entry->ai_addrlen);
    endpoint.resize(entry->ai_addrlen);
    endpoint.port(lookup->port);
    lookup->found.push_back(endpoint);
  }
  if (list != nullptr) ::freeaddrinfo(list);
  ::eventfd_write(lookup->done.get(), 1);
}

}  // namespace

asio::awaitable<Result<Endpoints, Fault>> resolve(std::string host, std::uint16_t port) {
  asio::error_code not_numeric;
  const asio::ip::address address = asio::ip::make_address(host, not_numeric);
  if (!not_numeric) co_return Endpoints{{address, port}};

  auto lookup = std::make_shared<Lookup>();
  lookup->host = host;
  lookup->port = port;
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  std::optional<Readable> answered;
  std::string shortage;
  try {
    lookup->done.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!lookup->done) throw std::system_error(errno, std::generic_category(), "eventfd");
    answered.emplace(executor, lookup->done.get());
    std::thread(look_up, lookup).detach();
  } catch (const std::system_error& error) {
    shortage = error.what();
  }
  // The command has used up our processes or descriptors: temporary while a lease is kept.
  if (!shortage.empty())
    co_return unexpected(
        Fault{FaultKind::silent, "cannot look up " + escape_for_terminal(host) + ": " + shortage});

  co_await answered->wait();
  const std::lock_guard lock(lookup->mutex);
  if (lookup->found.empty()) {
    co_return unexpected(
        Fault{FaultKind::silent, "cannot look up " + escape_for_terminal(host) + ": " +
                                     (lookup->error.empty() ? "no address" : lookup->error)});
  }
  co_return std::move(lookup->found);
}

}  // namespace redlock::redis
