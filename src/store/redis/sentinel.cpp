#include "store/redis/sentinel.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "store/redis/command.hpp"
#include "store/redis/connection.hpp"
#include "store/redis/error_reply.hpp"
#include "store/redis/topology.hpp"
#include "support/number.hpp"
#include "support/spawn.hpp"
#include "support/text.hpp"

namespace redlock::redis {
namespace {

/// {host, port}, or nil.
Result<Address, Fault> master_from(const Reply& reply, const std::string& master) {
  if (reply.type == Reply::Type::error && wants_login(reply.text)) {
    return unexpected(
        Fault{FaultKind::denied,
              "it requires a password of its own: add ?sentinel-password=PASSWORD to the URL (" +
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

/// SENTINEL MASTER: some 25 fields and their values; later versions may have more.
constexpr ReplyLimits details_limits{.elements = 256};

/// The config-epoch among the fields of SENTINEL MASTER.
std::optional<std::uint64_t> epoch_in(const Reply& details) {
  for (std::size_t i = 0; i + 1 < details.elements.size(); i += 2) {
    if (details.elements[i].text != "config-epoch") continue;
    return whole_number<std::uint64_t>(details.elements[i + 1].text);
  }
  return std::nullopt;
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

  [[nodiscard]] std::string advice() const override {
    return below_ ? below_->advice() : std::string();
  }
  [[nodiscard]] std::string subject() const override { return subject_; }
  [[nodiscard]] Fault explain(const asio::error_code& error) const override {
    return below_->explain(error);
  }
  [[nodiscard]] bool stays_on_this_host() const override {
    return below_ && below_->stays_on_this_host();
  }

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
                     RedisServerOptions options)
    : executor_(std::move(executor)),
      clock_(clock),
      endpoint_(std::move(endpoint)),
      options_(std::move(options)),
      sources_(endpoint_.members) {}

asio::awaitable<Result<Endpoint, Fault>> Sentinels::locate(Instant deadline) {
  const auto found = std::exchange(found_, std::nullopt);
  if (found && clock_.now() < found_until_) co_return endpoint_.server_at(*found);
  const auto master = co_await search(deadline);
  if (!master) co_return unexpected(master.error());
  if (disowned_.contains(*master)) disowned_.clear();
  co_return endpoint_.server_at(*master);
}

asio::awaitable<bool> Sentinels::finds_another(Instant deadline) {
  const auto master = co_await search(deadline);
  if (!master || disowned_.contains(*master)) co_return false;
  found_ = *master;
  found_until_ = deadline;
  co_return true;
}

void Sentinels::disown(const Address& master) {
  disowned_.insert(master);
  if (found_ == master) found_.reset();
}

void Sentinels::confirm() {
  disowned_.clear();
  found_.reset();
}

asio::awaitable<Result<Address, Fault>> Sentinels::search(Instant deadline) {
  return disowned_.empty() ? first_named(deadline) : best_named(deadline);
}

asio::awaitable<Result<Address, Fault>> Sentinels::first_named(Instant deadline) {
  const std::vector<Address> sentinels = sources_.in_order();
  const std::function<asio::awaitable<Result<View, Fault>>(std::size_t)> ask_one =
      [self = shared_from_this(), sentinels, deadline](std::size_t i) {
        return self->ask(sentinels[i], /*with_epoch=*/false, deadline);
      };
  const ViewAnswers<View> answers =
      co_await ask_in_turn<View>(executor_, clock_, sentinels.size(), ask_one, deadline);
  Fault faults;
  for (std::size_t i = 0; i < sentinels.size(); ++i) {
    if (!answers[i] || !*answers[i]) sources_.pass_over(sentinels[i]);
    if (!answers[i]) continue;  // it is silent, or was not asked
    if (*answers[i]) {
      sources_.prefer(sentinels[i]);
      co_return (*answers[i])->master;
    }
    add_fault(faults, answers[i]->error());
  }
  co_return unexpected(std::move(faults));
}

asio::awaitable<Result<Address, Fault>> Sentinels::best_named(Instant deadline) {
  const std::vector<Address> sentinels = sources_.in_order();
  std::vector<std::optional<Result<View, Fault>>> views(sentinels.size());
  // Some time remains for the master.
  const Instant until = time_for_one(clock_.now(), deadline, 2);
  const auto ask_one = [&](std::size_t i) -> asio::awaitable<void> {
    views[i] = co_await ask(sentinels[i], /*with_epoch=*/true, until);
  };
  co_await run_all(executor_, clock_, sentinels.size(), ask_one);

  Fault faults;
  std::map<Address, std::size_t> votes;
  bool all_have_epochs = true;
  for (const auto& view : views) {
    if (!*view) {
      add_fault(faults, view->error());
      continue;
    }
    ++votes[(*view)->master];
    all_have_epochs = all_have_epochs && (*view)->epoch.has_value();
  }
  if (votes.empty()) co_return unexpected(std::move(faults));

  // A master that is merely silent is still the master. A few sentinels may be cut off together
  // with an old master; if we believed them, two clients could acquire the lock.
  const auto rank = [&](const std::optional<Result<View, Fault>>& view) {
    if (!*view) return std::tuple(std::uint64_t{0}, std::size_t{0}, false);
    const View& seen = **view;
    return std::tuple(all_have_epochs ? *seen.epoch : 0, votes[seen.master],
                      !disowned_.contains(seen.master));
  };
  const Address best = (*std::ranges::max_element(views, {}, rank))->value().master;
  for (std::size_t i = sentinels.size(); i-- > 0;) {
    if (*views[i] && (*views[i])->master == best) {
      sources_.prefer(sentinels[i]);
    } else {
      sources_.pass_over(sentinels[i]);
    }
  }
  co_return best;
}

asio::awaitable<Result<Sentinels::View, Fault>> Sentinels::ask(Address sentinel, bool with_epoch,
                                                               Instant deadline) {
  const auto self = shared_from_this();
  const Endpoint endpoint = endpoint_.sentinel_at(sentinel);
  const auto connection = std::make_shared<Connection>(
      executor_, clock_, make_transport(executor_, clock_, endpoint, options_.tls),
      login_commands(endpoint, endpoint.password));
  connection->set_server_timeout(options_.server_timeout);
  const auto fault_of = [&](const Fault& fault) {
    connection->abort();
    return unexpected(Fault{
        fault.kind, "the sentinel " + escape_for_terminal(sentinel.text()) + ": " + fault.text});
  };
  connection->start(deadline);
  Command question{"SENTINEL", "get-master-addr-by-name", endpoint_.master};
  const auto reply = co_await connection->request(question, ReplyLimits{}, deadline);
  if (!reply) co_return fault_of(reply.error());
  const auto master = master_from(*reply, endpoint_.master);
  if (!master) co_return fault_of(master.error());
  if (is_loopback(master->host) && !connection->stays_on_this_host())
    co_return fault_of(foreign_loopback(*master));
  View view{*master, std::nullopt};
  if (with_epoch) {
    Command details{"SENTINEL", "MASTER", endpoint_.master};
    const auto described = co_await connection->request(details, details_limits, deadline);
    if (described) view.epoch = epoch_in(*described);
  }
  connection->abort();
  co_return view;
}

std::unique_ptr<Transport> make_sentinel_transport(asio::any_io_executor executor,
                                                   const Clock& clock,
                                                   std::shared_ptr<Sentinels> sentinels,
                                                   std::shared_ptr<TlsSource> tls) {
  return std::make_unique<SentinelTransport>(std::move(executor), clock, std::move(sentinels),
                                             std::move(tls));
}

}  // namespace redlock::redis
