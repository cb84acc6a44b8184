// Redis servers, clusters and sentinels through the real connections: login, partial reads, pushes,
// subscriptions, topology, and what `doctor` asks. Of the input the first three bytes choose the
// servers, the question, and how many bytes a read gets. The rest is what the servers send: byte
// 0xff ends a connection, and what is behind 0xfe comes only after the next question.
#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <cstring>
#include <set>

#include "fuzz.hpp"
#include "store/redis/cluster.hpp"
#include "store/redis/diagnosis.hpp"
#include "store/redis/transport.hpp"
#include "support/spawn.hpp"

using namespace redlock;
using namespace redlock::fuzz;
using namespace redlock::redis;

namespace {

constexpr char end_of_connection = '\xff';
constexpr char after_question = '\xfe';

constexpr Milliseconds server_timeout{50};

/// More rounds of ready coroutines, and more points in time, than any question takes.
constexpr int max_moments = 100'000;

/// How often other coroutines run before bytes arrive that wait for no question.
constexpr int turns = 4;

asio::io_context io{1};

/// Time that passes only when nothing can run.
class IdleClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const override { return now_; }
  [[nodiscard]] Milliseconds wall() const override { return Milliseconds(1'700'000'000'000); }
  [[nodiscard]] std::unique_ptr<Event> make_event() const override {
    return std::make_unique<Wait>(*this);
  }

  /// To the next moment for which an event waits; false: there is none.
  bool advance() {
    if (waits_.empty()) return false;
    now_ = std::max(now_, waits_.begin()->first);
    waits_.begin()->second->end();
    return true;
  }

 private:
  class Wait final : public Event {
   public:
    explicit Wait(const IdleClock& clock) : clock_(clock), timer_(io) {}
    void notify() override {
      notified_ = true;
      timer_.cancel();
    }
    asio::awaitable<bool> wait_until(Instant when) override {
      if (!notified_ && when > clock_.now()) {
        const std::pair<Instant, Wait*> entry{when, this};
        if (when != Instant::max()) clock_.waits_.insert(entry);
        asio::error_code ignored;
        timer_.expires_at(asio::steady_timer::time_point::max());
        co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
        clock_.waits_.erase(entry);
      }
      co_return std::exchange(notified_, false);
    }
    void end() {
      clock_.waits_.erase(clock_.waits_.begin());
      timer_.cancel();
    }

   private:
    const IdleClock& clock_;
    asio::steady_timer timer_;
    bool notified_ = false;
  };

  Instant now_{};
  mutable std::set<std::pair<Instant, Wait*>> waits_;
};

/// What the servers of this input send, one connection after the other.
struct Servers {
  std::string_view rest;
  std::size_t piece = 1;

  std::string_view next() {
    const std::size_t end = std::min(rest.find(end_of_connection), rest.size());
    const std::string_view sent = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return sent;
  }
};
Servers servers;

class FuzzedTransport final : public Transport {
 public:
  explicit FuzzedTransport(const Endpoint& endpoint) : name_(endpoint.name()) {}

  asio::awaitable<std::optional<Fault>> open(Instant) override {
    co_await asio::post(io, asio::use_awaitable);
    if (servers.rest.empty()) co_return Fault{FaultKind::silent, "cannot connect: refused"};
    incoming_ = servers.next();
    co_return std::nullopt;
  }

  asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer,
                                         asio::error_code& error) override {
    for (int turn = 0; turn < turns; ++turn) co_await asio::post(io, asio::use_awaitable);
    while (!closed_ && incoming_.starts_with(after_question)) {
      for (int turn = 0; turn < turns && !asked_; ++turn)
        co_await asio::post(io, asio::use_awaitable);
      asked_ = false;
      incoming_.remove_prefix(1);
    }
    if (closed_ || incoming_.empty()) {
      error = closed_ ? asio::error_code(asio::error::operation_aborted) : asio::error::eof;
      co_return 0;
    }
    const std::size_t length =
        std::min({incoming_.find(after_question), incoming_.size(), servers.piece, buffer.size()});
    std::memcpy(buffer.data(), incoming_.data(), length);
    incoming_.remove_prefix(length);
    co_return length;
  }

  asio::awaitable<void> write(asio::const_buffer, asio::error_code&) override {
    asked_ = true;
    co_await asio::post(io, asio::use_awaitable);
  }
  /// Every other command waits to be written.
  std::size_t try_write(asio::const_buffer buffer) override {
    asked_ = true;
    return ++writes_ % 2 == 1 ? buffer.size() : buffer.size() / 2;
  }
  void end_sending() override {}
  void close() override { closed_ = true; }
  [[nodiscard]] std::string awaited() const override { return "connection"; }
  [[nodiscard]] Fault explain(const asio::error_code& error) const override {
    return {FaultKind::silent, "the connection broke: " + error.message()};
  }
  [[nodiscard]] bool stays_on_this_host() const override { return true; }

 private:
  std::string name_;
  std::string_view incoming_;
  bool asked_ = false;
  bool closed_ = false;
  unsigned writes_ = 0;
};

/// Every connection to this kind of server sends the password, so any error reply may repeat it.
/// Sentinels and clusters also name hosts, and those of an input may be called like the password.
constexpr unsigned with_password = 1;
constexpr std::string_view password = "hunter22";
bool sends_password = false;

Endpoint endpoint_of(unsigned kind) {
  constexpr const char* urls[] = {"redis://a", "redis://user:hunter22@a:6379/3",
                                  "sentinel://a,b/mymaster", "cluster://a,b",
                                  "sentinel://:hunter22@a/m/1?sentinel-user=u&sentinel-password=p"};
  sends_password = kind % std::size(urls) == with_password;
  return *parse_endpoint(urls[kind % std::size(urls)]);
}

/// Whether the server's words, which may follow our advice in brackets, begin as a redirect does.
bool quotes_redirect(const std::string& text) {
  constexpr std::string_view redirects[] = {"MOVED ", "ASK ", "TRYAGAIN"};
  return std::ranges::any_of(redirects, [&](std::string_view redirect) {
    return text.starts_with(redirect) ||
           text.find(std::string(" (").append(redirect)) != std::string::npos;
  });
}

void check_fault(const Fault& fault) {
  check(!fault.text.empty() && is_printable_utf8(fault.text));
  // Nothing is masked in a redirect: its words are an address.
  check(!sends_password || quotes_redirect(fault.text) ||
        fault.text.find(password) == std::string::npos);
}

template <class Vote>
void check_vote(const Vote& vote) {
  if (const auto* fault = std::get_if<Fault>(&vote)) check_fault(*fault);
}

const Resource key = *Resource::from("demo");
const Token token = *Token::from_text("0123456789abcdef0123456789abcdef");
const Ttl ttl = *Ttl::from(Milliseconds(10'000));

asio::awaitable<void> ask(RedisVote& vote, const Clock& clock, unsigned question) {
  const Instant deadline = clock.now() + server_timeout;
  switch (question) {
    case 0: {
      const AcquireVote acquired = co_await vote.acquire({key, token, ttl, Owner()}, deadline);
      check_vote(acquired);
      if (!std::holds_alternative<Granted>(acquired)) vote.undo(key, token);
      break;
    }
    case 1:
      check_vote(co_await vote.extend({key, token, ttl}, deadline));
      break;
    case 2:
      check_vote(co_await vote.release({key, token}, deadline));
      break;
    case 3:
      check_vote(co_await vote.inspect(key, std::nullopt, deadline));
      break;
    case 4: {
      const auto list = co_await vote.list(
          {.listed = Listed::used, .answer_timeout = server_timeout, .until = deadline});
      if (!list) check_fault(list.error());
      break;
    }
    default: {
      const auto fault = co_await vote.subscribe(
          key, "w", [](Notification) {}, deadline);
      if (fault) check_fault(*fault);
      for (int turn = 0; turn < 8 * turns; ++turn) co_await asio::post(io, asio::use_awaitable);
      vote.unsubscribe();
      break;
    }
  }
  check(clock.now() <= deadline);
}

asio::awaitable<void> ask_all(const Clock& clock, Endpoint endpoint, unsigned question,
                              RedisServerOptions options) {
  constexpr unsigned questions = 6;
  if (question % (questions + 1) == questions) {
    const Diagnosis diagnosis =
        co_await diagnose(io.get_executor(), clock, endpoint, options, {{}, server_timeout, {}});
    for (const Finding& finding : diagnosis.findings)
      check(is_printable_utf8(finding.text) && is_printable_utf8(finding.advice));
    co_return;
  }
  const auto vote = make_server(io.get_executor(), clock, endpoint, options);
  // The second question finds what the first one left behind.
  co_await ask(*vote, clock, question % (questions + 1));
  co_await ask(*vote, clock, (question / (questions + 1)) % questions);
  co_await vote->close(clock.now() + server_timeout);
}

}  // namespace

namespace redlock::redis {

/// Takes the place of the product's.
std::unique_ptr<Transport> make_plain_transport(asio::any_io_executor, const Clock&,
                                                Endpoint endpoint) {
  return std::make_unique<FuzzedTransport>(endpoint);
}

}  // namespace redlock::redis

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  servers = {text_of(data + 3, size - 3), 1U + data[2] % 128U};
  RedisServerOptions options;
  options.identifies_itself = (data[0] & 0x80U) != 0;
  options.replicas = data[0] >> 6U & 1U;

  IdleClock clock;
  bool answered = false;
  spawn(io.get_executor(), [&]() -> asio::awaitable<void> {
    co_await ask_all(clock, endpoint_of(data[0] & 0x3fU), data[1], options);
    answered = true;
  });
  io.restart();
  for (int moment = 0; !io.stopped(); ++moment) {
    check(moment < max_moments);
    if (io.poll() == 0 && !io.stopped() && !clock.advance()) break;
  }
  // Every question has its answer, and nothing is left that waits for ever.
  check(answered && io.stopped());
  return 0;
}
