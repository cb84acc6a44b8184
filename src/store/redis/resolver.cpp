#include "store/redis/resolver.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <asio/query.hpp>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "support/kernel_calls.hpp"
#include "support/readable.hpp"
#include "support/spawn.hpp"
#include "support/text.hpp"
#include "support/unique_fd.hpp"

namespace redlock::redis {
namespace {

/// Shared by the waiting coroutine and the resolving thread; the last one to end frees it.
struct Answer {
  UniqueFd done;  ///< an eventfd
  std::mutex mutex;
  Found found;
};

std::optional<asio::ip::address> address_of(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    return asio::ip::address_v4(ntohl(v4.sin_addr.s_addr));
  }
  if (address.sa_family != AF_INET6) return std::nullopt;
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address, sizeof v6);
  asio::ip::address_v6::bytes_type bytes{};
  std::copy(std::begin(v6.sin6_addr.s6_addr), std::end(v6.sin6_addr.s6_addr), bytes.begin());
  return asio::ip::address_v6(bytes, v6.sin6_scope_id);
}

Found ask_system(const std::string& host, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  const int status = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  Found found;
  if (status != 0) found.error = status == EAI_SYSTEM ? errno_text(errno) : ::gai_strerror(status);
  found.may_be_temporary = status != EAI_NONAME && status != EAI_NODATA && status != EAI_ADDRFAMILY;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    if (const auto address = address_of(*entry->ai_addr)) found.addresses.push_back(*address);
  }
  if (list != nullptr) ::freeaddrinfo(list);
  return found;
}

}  // namespace

Found find_addresses(const std::string& host) {
  Found found = ask_system(host, AI_ADDRCONFIG);
  // On a host with addresses of only one kind (IPv4 or IPv6), that flag also hides loopback
  // addresses of the other kind. /etc/hosts may have one although no name server answers.
  if (!found.addresses.empty() && host != "localhost") return found;
  for (const asio::ip::address& address : ask_system(host, 0).addresses) {
    if (std::ranges::find(found.addresses, address) == found.addresses.end())
      found.addresses.push_back(address);
  }
  return found;
}

Resolver& Resolver::of(const asio::any_io_executor& executor) {
  auto& resolver = asio::use_service<Resolver>(asio::query(executor, asio::execution::context));
  resolver.executor_ = executor;
  return resolver;
}

asio::awaitable<const Found*> Resolver::Lookup::wait_until(const Clock& clock, Instant when) {
  const std::unique_ptr<Event> event = clock.make_event();
  while (!found_) {
    waiting_.insert(event.get());
    const bool notified = co_await event->wait_until(when);
    waiting_.erase(event.get());
    if (!notified) break;
  }
  co_return found_ ? &*found_ : nullptr;
}

std::shared_ptr<Resolver::Lookup> Resolver::look_up(const std::string& host) {
  std::shared_ptr<Lookup>& under_way = names_[host].under_way;
  if (under_way) return under_way;
  const auto lookup = std::make_shared<Lookup>();
  under_way = lookup;
  spawn(executor_, [this, host, lookup] { return finish(host, lookup, find_); });
  return lookup;
}

std::vector<asio::ip::address> Resolver::last_known(const std::string& host) const {
  const auto name = names_.find(host);
  return name != names_.end() ? name->second.last_known : std::vector<asio::ip::address>();
}

asio::awaitable<void> Resolver::finish(std::string host, std::shared_ptr<Lookup> lookup,
                                       Find find) {
  const auto answer = std::make_shared<Answer>();
  std::optional<Readable> answered;
  try {
    answer->done.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!answer->done) throw_errno("eventfd");
    answered.emplace(executor_, answer->done.get());
    std::thread([answer, host, find] {
      Found found = find(host);
      const std::lock_guard lock(answer->mutex);
      answer->found = std::move(found);
      ::eventfd_write(answer->done.get(), 1);
    }).detach();
  } catch (const std::system_error& error) {
    // The command may have used up our processes or descriptors. That counts as temporary, as a
    // lease may depend on the lookup.
    answered.reset();
    answer->found.error = error.what();
  }
  if (answered) co_await answered->wait();

  const std::lock_guard lock(answer->mutex);
  Name& name = names_[host];
  name.under_way = nullptr;
  if (!answer->found.addresses.empty()) name.last_known = answer->found.addresses;
  lookup->found_ = std::move(answer->found);
  for (Event* const event : lookup->waiting_) event->notify();
}

}  // namespace redlock::redis
