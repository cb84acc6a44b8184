#include "network.hpp"

#include <algorithm>
#include <asio/error.hpp>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "server.hpp"
#include "store/redis/transport.hpp"

namespace redlock::sim {
namespace {

/// TCP sends again after 200 ms at least, and twice as long after each failure.
constexpr Milliseconds first_again{200};
constexpr Milliseconds last_again{3200};

/// The client's end of a wire, as a Connection uses it.
class SimTransport final : public redis::Transport {
 public:
  explicit SimTransport(std::shared_ptr<Wire> wire) : wire_(std::move(wire)) {}
  ~SimTransport() override { wire_->close(); }
  SimTransport(const SimTransport&) = delete;
  SimTransport& operator=(const SimTransport&) = delete;

  asio::awaitable<std::optional<Fault>> open(Instant) override { return wire_->open(); }
  asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer,
                                         asio::error_code& error) override {
    return wire_->read_some(buffer, error);
  }
  asio::awaitable<void> write(asio::const_buffer buffer, asio::error_code&) override {
    try_write(buffer);
    co_return;
  }
  std::size_t try_write(asio::const_buffer buffer) override {
    wire_->send(std::string(static_cast<const char*>(buffer.data()), buffer.size()));
    return buffer.size();
  }
  void end_sending() override { wire_->end_sending(); }
  void close() override { wire_->close(); }
  [[nodiscard]] std::string awaited() const override { return "connection"; }
  [[nodiscard]] Fault explain(const asio::error_code& error) const override {
    return {FaultKind::silent, error.message()};
  }
  [[nodiscard]] bool stays_on_this_host() const override { return true; }

 private:
  std::shared_ptr<Wire> wire_;
};

}  // namespace

Duration Path::arrival(Duration now) {
  Duration at = now + delay_ + random_.between(Duration::zero(), jitter_);
  if (random_.chance(stragglers_)) at += random_.between(first_again, last_again);
  for (const auto& [from, to] : outages_) {
    if (from <= at && at < to) at = to + random_.between(Duration::zero(), first_again);
  }
  return at;
}

asio::awaitable<std::optional<Fault>> Wire::open() {
  const Duration there = path_.arrival(process_.timeline().now());
  process_.timeline().at(path_.arrival(there), [self = shared_from_this()] {
    if (self->closed_) return;
    if (self->server_.listens()) {
      self->open_ = true;
      self->server_.accept(self);
    } else {
      self->refused_ = true;
    }
    self->reader_.unpark();
  });
  while (!open_ && !refused_ && !closed_) co_await reader_.park();
  if (open_ && !closed_) co_return std::nullopt;
  co_return Fault{FaultKind::silent, "cannot connect: Connection refused"};
}

asio::awaitable<std::size_t> Wire::read_some(asio::mutable_buffer buffer, asio::error_code& error) {
  while (inbox_.empty() && !closed_ && !cut_is_known_ && !server_ended_) co_await reader_.park();
  if (closed_) {
    error = asio::error::operation_aborted;
    co_return 0;
  }
  if (inbox_.empty()) {
    error = cut_is_known_ ? asio::error_code(asio::error::connection_reset)
                          : asio::error_code(asio::error::eof);
    co_return 0;
  }
  const std::size_t length = std::min(buffer.size(), inbox_.size());
  std::memcpy(buffer.data(), inbox_.data(), length);
  inbox_.erase(0, length);
  co_return length;
}

void Wire::send(std::string bytes) {
  const Duration now = process_.timeline().now();
  if (std::exchange(vanished_, false)) tell_of_cut(path_.arrival(path_.arrival(now)));
  if (closed_ || cut_ || ended_) return;
  last_up_ = std::max(last_up_, path_.arrival(process_.timeline().now()));
  process_.timeline().at(last_up_, [self = shared_from_this(), bytes = std::move(bytes)]() mutable {
    self->arrive(std::move(bytes));
  });
}

bool Wire::has_in_flight() const {
  return !dropped_ && (last_up_ > process_.timeline().now() || !unread.empty());
}

void Wire::arrive(std::string bytes) {
  if (!dropped_) server_.receive(shared_from_this(), bytes);
}

void Wire::end_sending() {
  if (ended_ || cut_) return;
  ended_ = true;
  last_up_ = std::max(last_up_, path_.arrival(process_.timeline().now()));
  process_.timeline().at(last_up_, [self = shared_from_this()] {
    if (!self->dropped_) self->server_.see_end(self);
  });
}

void Wire::close() {
  if (closed_) return;
  if (open_) end_sending();
  closed_ = true;
  closed_at_ = process_.timeline().now();
  reader_.unpark();
}

void Wire::reply(std::string bytes, Duration delay) {
  if (closed_ || cut_ || replies_lost_) return;
  last_down_ = std::max(last_down_, path_.arrival(process_.timeline().now()) + delay);
  process_.timeline().at(last_down_, [self = shared_from_this(), bytes = std::move(bytes)] {
    if (self->cut_) return;
    self->inbox_ += bytes;
    self->reader_.unpark();
  });
}

std::optional<Duration> Wire::read_at(const Fate& fate) {
  silent_ = silent_ || fate.silent;
  last_read_ = std::max(last_read_, process_.timeline().now() + fate.request);
  return last_read();
}

std::optional<Duration> Wire::last_read() const {
  return silent_ ? std::nullopt : std::optional(last_read_);
}

void Wire::finish() {
  end_arrived_ = true;
  if (closed_ || cut_) return;
  last_down_ = std::max(last_down_, path_.arrival(process_.timeline().now()));
  process_.timeline().at(last_down_, [self = shared_from_this()] {
    self->server_ended_ = true;
    self->reader_.unpark();
  });
}

void Wire::cut(bool delivers) {
  if (cut_) return;
  cut_ = true;
  dropped_ = !delivers;
  tell_of_cut(path_.arrival(process_.timeline().now()));
}

void Wire::vanish() {
  if (cut_) return;
  cut_ = dropped_ = vanished_ = true;
}

void Wire::tell_of_cut(Duration when) {
  process_.timeline().at(when, [self = shared_from_this()] {
    self->cut_is_known_ = true;
    self->reader_.unpark();
  });
}

}  // namespace redlock::sim

namespace redlock::redis {

// The linker takes this function instead of the one with sockets, so the product's connections run
// on wires.
std::unique_ptr<Transport> make_plain_transport(asio::any_io_executor, const Clock& clock,
                                                Endpoint endpoint) {
  auto& process = const_cast<sim::Process&>(static_cast<const sim::Process&>(clock));
  return std::make_unique<sim::SimTransport>(process.dial(endpoint.port));
}

std::unique_ptr<Transport> make_tls_transport(std::unique_ptr<Transport>,
                                              const std::shared_ptr<TlsSource>&,
                                              const std::string&) {
  throw std::logic_error("the virtual network has no TLS");
}

}  // namespace redlock::redis
