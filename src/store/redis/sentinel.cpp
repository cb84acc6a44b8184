#include "store/redis/sentinel.hpp"

#include <utility>

#include "store/redis/connection.hpp"
#include "store/redis/error_reply.hpp"
#include "store/redis/login.hpp"
#include "store/redis/topology.hpp"
#include "support/text.hpp"

namespace redlock::redis {
namespace {

/// {host, port}, or nil.
Result<Address, Fault> master_from(const Reply& reply, const std::string& master) {
  if (reply.type == Reply::Type::error && wants_login(reply.text)) {
    return unexpected(
        Fault{FaultKind::denied,
              "it wants a password of its own: add ?sentinel-password=PASSWORD to the URL (" +
                  quote_of(reply.text) + ")"});
  }
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
                    std::shared_ptr<Sentinels> sentinels, std::shared_ptr<TlsSource> tls)
      : executor_(std::move(executor)),
        clock_(clock),
        sentinels_(std::move(sentinels)),
        tls_(std::move(tls)) {}

  asio::awaitable<std::optional<Fault>> open(Instant deadline) override {
    std::set<Address> tried;
    for (std::optional<Fault> fault;;) {
      const auto master = co_await sentinels_->locate(deadline);
      if (!master && fault) add_fault(*fault, master.error());
      if (!master) co_return fault.value_or(master.error());
      if (closed_) co_return Fault{FaultKind::silent, "the connection was closed"};
      const Address address{master->host, master->port};
      if (!tried.insert(address).second) co_return fault;
      master_ = address;
      below_ = make_transport(executor_, clock_, *master, tls_);
      subject_ = "the master " + escape_for_terminal(master->name()) + ": ";
      fault = co_await below_->open(deadline);
      if (!fault) co_return std::nullopt;
      fault->text.insert(0, std::exchange(subject_, {}));
      if (closed_) co_return fault;
      disown();
    }
  }

  asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer,
                                         asio::error_code& error) override {
    const std::size_t length = co_await below_->read_some(buffer, error);
    answered_ = answered_ || length > 0;
    co_return length;
  }
  asio::awaitable<void> write(asio::const_buffer buffer, asio::error_code& error) override {
    return below_->write(buffer, error);
  }
  std::size_t try_write(asio::const_buffer buffer) override { return below_->try_write(buffer); }
  void end_sending() override { below_->end_sending(); }

  void close() override {
    if (!closed_ && answered_ && master_) sentinels_->confirm();
    closed_ = true;
    if (below_) below_->close();
  }

  [[nodiscard]] std::string awaited() const override {
    return below_ ? below_->awaited() : "answer of a sentinel";
  }
  [[nodiscard]] std::string subject() const override { return subject_; }
  [[nodiscard]] Fault explain(const asio::error_code& error) const override {
    return below_->explain(error);
  }
  [[nodiscard]] bool stays_on_this_host() const override { return below_->stays_on_this_host(); }

  void disown() override {
    if (master_) sentinels_->disown(*std::exchange(master_, std::nullopt));
  }

 private:
  asio::any_io_executor executor_;
  const Clock& clock_;
  std::shared_ptr<Sentinels> sentinels_;
  std::shared_ptr<TlsSource> tls_;
  std::unique_ptr<Transport> below_;  ///< once the master is known
  std::optional<Address> master_;     ///< likewise, until it is disowned
  bool answered_ = false;             ///< it sent something
  std::string subject_;
  bool closed_ = false;
};

}  // namespace

Sentinels::Sentinels(asio::any_io_executor executor, const Clock& clock, Endpoint endpoint,
                     std::shared_ptr<TlsSource> tls)
    : executor_(std::move(executor)),
      clock_(clock),
      endpoint_(std::move(endpoint)),
      tls_(std::move(tls)),
      sources_(endpoint_.members) {}

asio::awaitable<Result<Endpoint, Fault>> Sentinels::locate(Instant deadline) {
  if (found_) co_return endpoint_.server_at(*std::exchange(found_, std::nullopt));
  Search search = co_await this->search(deadline);
  if (search.master) co_return endpoint_.server_at(*search.master);
  if (!search.disowned) co_return unexpected(std::move(search.faults));
  disowned_.clear();
  co_return endpoint_.server_at(*search.disowned);
}

asio::awaitable<bool> Sentinels::finds_another(Instant deadline) {
  const Search search = co_await this->search(deadline);
  found_ = search.master;
  co_return found_.has_value();
}

void Sentinels::disown(const Address& master) {
  disowned_.insert(master);
  if (found_ == master) found_.reset();
}

asio::awaitable<Sentinels::Search> Sentinels::search(Instant deadline) {
  Search search;
  for (const Address& sentinel : sources_.in_order()) {
    auto master = co_await ask(sentinel, time_for_one(clock_.now(), deadline));
    if (master && !disowned_.contains(*master)) {
      sources_.prefer(sentinel);
      search.master = std::move(*master);
      co_return search;
    }
    sources_.pass_over(sentinel);
    if (!master) {
      add_fault(search.faults,
                {master.error().kind, "the sentinel " + escape_for_terminal(sentinel.text()) +
                                          ": " + master.error().text});
    } else if (!search.disowned) {
      search.disowned = std::move(*master);
    }
  }
  co_return search;
}

asio::awaitable<Result<Address, Fault>> Sentinels::ask(Address sentinel, Instant deadline) {
  const Endpoint endpoint = endpoint_.sentinel_at(sentinel);
  const auto connection = std::make_shared<Connection>(
      executor_, clock_, make_transport(executor_, clock_, endpoint, tls_),
      login_commands(endpoint, endpoint.password));
  connection->start(deadline);
  Command question{"SENTINEL", "get-master-addr-by-name", endpoint_.master};
  const auto reply = co_await connection->request(question, ReplyLimits{}, deadline);
  if (!reply) {
    connection->abort();
    co_return unexpected(reply.error());
  }
  auto master = master_from(*reply, endpoint_.master);
  const bool leads_astray =
      master && is_loopback(master->host) && !connection->stays_on_this_host();
  connection->abort();
  if (leads_astray) co_return unexpected(foreign_loopback(*master));
  co_return master;
}

std::unique_ptr<Transport> make_sentinel_transport(asio::any_io_executor executor,
                                                   const Clock& clock,
                                                   std::shared_ptr<Sentinels> sentinels,
                                                   std::shared_ptr<TlsSource> tls) {
  return std::make_unique<SentinelTransport>(std::move(executor), clock, std::move(sentinels),
                                             std::move(tls));
}

}  // namespace redlock::redis
