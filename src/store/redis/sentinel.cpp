#include "store/redis/sentinel.hpp"

#include <algorithm>

#include "store/redis/connection.hpp"
#include "store/redis/error_reply.hpp"
#include "store/redis/login.hpp"
#include "store/redis/topology.hpp"
#include "support/text.hpp"

namespace redlock::redis {
namespace {

/// {host, port}, or nil.
Result<Address, Fault> master_from(const Reply& reply, const std::string& master) {
  if (reply.type == Reply::Type::error) return unexpected(fault_of_error(reply.text));
  if (reply.type == Reply::Type::nil)
    return unexpected(Fault{FaultKind::misconfigured, "it knows no master " + master});
  if (reply.type == Reply::Type::array && reply.elements.size() == 2) {
    if (auto address = announced(reply.elements[0].text, reply.elements[1].text))
      return std::move(*address);
  }
  return unexpected(Fault{FaultKind::garbage, "malformed Sentinel reply"});
}

class SentinelTransport final : public Transport {
 public:
  SentinelTransport(asio::any_io_executor executor, const Clock& clock,
                    std::shared_ptr<Sentinels> sentinels, std::shared_ptr<const TlsContext> context)
      : executor_(std::move(executor)),
        clock_(clock),
        sentinels_(std::move(sentinels)),
        context_(std::move(context)) {}

  asio::awaitable<std::optional<Fault>> open(Instant deadline) override {
    const auto master = co_await sentinels_->locate(deadline);
    if (!master) co_return master.error();
    if (closed_) co_return Fault{FaultKind::silent, "the connection was closed"};
    below_ = make_transport(executor_, clock_, *master, context_);
    auto fault = co_await below_->open(deadline);
    if (fault)
      fault->text = "the master " + escape_for_terminal(master->name()) + ": " + fault->text;
    co_return fault;
  }

  asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer,
                                         asio::error_code& error) override {
    return below_->read_some(buffer, error);
  }
  asio::awaitable<void> write(asio::const_buffer buffer, asio::error_code& error) override {
    return below_->write(buffer, error);
  }
  std::size_t try_write(asio::const_buffer buffer) override { return below_->try_write(buffer); }
  void end_sending() override { below_->end_sending(); }

  void close() override {
    closed_ = true;
    if (below_) below_->close();
  }

  [[nodiscard]] std::string_view awaited() const override {
    return below_ ? below_->awaited() : "answer of a sentinel";
  }
  [[nodiscard]] Fault explain(const asio::error_code& error) const override {
    return below_->explain(error);
  }

 private:
  asio::any_io_executor executor_;
  const Clock& clock_;
  std::shared_ptr<Sentinels> sentinels_;
  std::shared_ptr<const TlsContext> context_;
  std::unique_ptr<Transport> below_;  ///< once the master is known
  bool closed_ = false;
};

}  // namespace

Sentinels::Sentinels(asio::any_io_executor executor, const Clock& clock, Endpoint endpoint,
                     std::shared_ptr<const TlsContext> context)
    : executor_(std::move(executor)),
      clock_(clock),
      endpoint_(std::move(endpoint)),
      context_(std::move(context)) {}

asio::awaitable<Result<Endpoint, Fault>> Sentinels::locate(Instant deadline) {
  Fault none;
  const std::vector<Address> sentinels = endpoint_.members;
  for (const Address& sentinel : sentinels) {
    const auto master = co_await ask(sentinel, time_for_one(clock_.now(), deadline));
    if (master) {
      const auto place = std::find(endpoint_.members.begin(), endpoint_.members.end(), sentinel);
      std::rotate(endpoint_.members.begin(), place, std::next(place));
      co_return endpoint_.server_at(*master);
    }
    // Silence hides more than any answer does.
    none.kind = none.text.empty() || none.kind == master.error().kind ? master.error().kind
                                                                      : FaultKind::silent;
    none.text += (none.text.empty() ? "" : "; ") +
                 ("the sentinel " + escape_for_terminal(sentinel.text()) + ": ") +
                 master.error().text;
  }
  co_return unexpected(std::move(none));
}

asio::awaitable<Result<Address, Fault>> Sentinels::ask(Address sentinel, Instant deadline) {
  const Endpoint endpoint = endpoint_.sentinel_at(sentinel);
  const auto connection = std::make_shared<Connection>(
      executor_, clock_, make_transport(executor_, clock_, endpoint, context_),
      login_commands(endpoint));
  connection->start(deadline);
  Command question{"SENTINEL", "get-master-addr-by-name", endpoint_.master};
  const auto reply = co_await connection->request(question, ReplyLimits{}, deadline);
  connection->abort();
  if (!reply) co_return unexpected(reply.error());
  co_return master_from(*reply, endpoint_.master);
}

std::unique_ptr<Transport> make_sentinel_transport(asio::any_io_executor executor,
                                                   const Clock& clock,
                                                   std::shared_ptr<Sentinels> sentinels,
                                                   std::shared_ptr<const TlsContext> context) {
  return std::make_unique<SentinelTransport>(std::move(executor), clock, std::move(sentinels),
                                             std::move(context));
}

}  // namespace redlock::redis
