#include "store/redis/lock_scan.hpp"

#include <algorithm>
#include <utility>

#include "core/helper_keys.hpp"
#include "store/redis/command.hpp"
#include "store/redis/error_reply.hpp"

namespace redlock::redis {
namespace {

/// SCAN does not guarantee the number of keys in a page; these limits are generous.
constexpr ReplyLimits scan_limits{4, 16 * 1024, 64 * 1024, 16 * 1024 * 1024};
constexpr std::uint64_t scan_page = 512;

/// A hash table that has shrunk has many empty buckets; a page may consist of some thousand of
/// them.
constexpr std::uint64_t many_pages = 100'000;
bool is_endless(std::uint64_t pages, std::uint64_t keys) {
  return pages > many_pages + 16 * (keys / scan_page);
}

/// The memory for the locks of a listing: some hundred thousand of them. A cursor that never ends
/// must not use up all memory.
constexpr std::size_t max_listed = 32 * 1024 * 1024;

bool is_page(const Reply& reply) {
  return reply.type == Reply::Type::array && reply.elements.size() == 2 &&
         reply.elements[0].type == Reply::Type::text &&
         reply.elements[1].type == Reply::Type::array;
}

/// One page of SCAN: the next cursor and the keys.
asio::awaitable<Result<Reply, Fault>> scan(Connection& connection, std::string cursor,
                                           std::string pattern, Instant deadline) {
  Command command{"SCAN",  std::move(cursor),        "MATCH", std::move(pattern),
                  "COUNT", std::to_string(scan_page)};
  auto reply = co_await connection.request(command, scan_limits, deadline);
  if (!reply) co_return unexpected(reply.error());
  if (reply->type == Reply::Type::error) co_return unexpected(fault_of_error(reply->text));
  if (!is_page(*reply)) co_return unexpected(Fault{FaultKind::garbage, "malformed SCAN reply"});
  co_return std::move(*reply);
}

/// The number of keys in the database; nullopt if the server does not report it.
asio::awaitable<std::optional<std::uint64_t>> count_keys(Connection& connection, Instant deadline) {
  Command command{"DBSIZE"};
  const auto reply = co_await connection.request(command, ReplyLimits{}, deadline);
  if (!reply || reply->type != Reply::Type::integer || reply->integer < 0) co_return std::nullopt;
  co_return static_cast<std::uint64_t>(reply->integer);
}

/// Any key that is not ours; nullopt if the server shows none within a few pages.
asio::awaitable<std::optional<std::string>> find_other_key(Connection& connection,
                                                           Instant deadline) {
  const auto page = co_await scan(connection, "0", "*", deadline);
  if (!page) co_return std::nullopt;
  for (const Reply& key : page->elements[1].elements) {
    if (!key.text.starts_with(Resource::reserved_prefix)) co_return key.text;
  }
  co_return std::nullopt;
}

}  // namespace

LockScan::LockScan(const ListRequest& request, const Clock& clock)
    : request_(request),
      clock_(clock),
      pattern_(wants_used() ? HelperKeys::helpers_like(request.prefix)
                            : HelperKeys::owners_like(request.prefix)) {}

Instant LockScan::answer_by() const {
  return std::min(request_.until, clock_.now() + request_.answer_timeout);
}

bool LockScan::has_ended() const {
  return is_complete_ || clock_.now() >= request_.until;
}

asio::awaitable<Result<Reply, Fault>> LockScan::next_page(Connection& connection) const {
  return scan(connection, cursor_, pattern_, answer_by());
}

asio::awaitable<std::optional<Fault>> LockScan::add(Reply page, Connection& connection) {
  add_locks(page.elements[1]);
  if (bytes_ > max_listed) {
    connection.abort();
    co_return Fault{FaultKind::garbage, "its list of locks is too long"};
  }
  const std::string last_cursor = std::exchange(cursor_, std::move(page.elements[0].text));
  if (cursor_ == "0") {
    is_complete_ = true;
    if (list_.resources.empty() && request_.wants_other_key)
      list_.other_key = co_await find_other_key(connection, answer_by());
    co_return std::nullopt;
  }
  progress_.keys += scan_page;
  const bool may_be_endless = ++pages_ % many_pages == 0;
  if (!progress_.of && (request_.progress || may_be_endless))
    progress_.of = co_await count_keys(connection, answer_by());
  if (cursor_ == last_cursor || (may_be_endless && is_endless(pages_, progress_.of.value_or(0))))
    co_return so_far({FaultKind::garbage, "its list of keys (SCAN) does not end"});
  if (request_.progress) request_.progress(progress_);
  co_return std::nullopt;
}

void LockScan::add_locks(const Reply& keys) {
  for (const Reply& key : keys.elements) {
    auto resource = HelperKeys::resource_of_owner(key.text);
    if (!resource && wants_used()) resource = HelperKeys::resource_of_last(key.text);
    if (!resource) continue;
    bytes_ += sizeof(Resource) + resource->key().size();
    list_.resources.push_back(std::move(*resource));
  }
}

Fault LockScan::so_far(Fault fault) const {
  if (progress_.keys == 0) return fault;
  fault.text += ", after about " + std::to_string(progress_.keys) +
                (progress_.of ? " of " + std::to_string(*progress_.of) : "") + " keys";
  return fault;
}

LockList LockScan::list() && {
  // SCAN may show a key more than once.
  auto& resources = list_.resources;
  std::sort(resources.begin(), resources.end());
  resources.erase(std::unique(resources.begin(), resources.end()), resources.end());
  return std::move(list_);
}

}  // namespace redlock::redis
