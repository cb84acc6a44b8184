#include "store/redis/connection.hpp"

#include <array>

#include "store/redis/error_reply.hpp"
#include "support/duration.hpp"
#include "support/spawn.hpp"

namespace redlock::redis {

namespace {

/// The fault in this reply to ROLE from a server that must be a master; nullopt if it is one.
std::optional<Fault> objection_to(const Reply& role) {
  if (role.type == Reply::Type::error) return fault_of_error(role.text);
  if (role.type != Reply::Type::array || role.elements.empty())
    return Fault{FaultKind::garbage, "malformed ROLE reply"};
  if (role.elements[0].text == "master") return std::nullopt;
  return Fault{FaultKind::unavailable,
               "it reports that it is not a master; is a failover under way?"};
}

Fault default_user_is_off(std::string_view error_text) {
  return {FaultKind::denied,
          "its default user is off: name another user with --user (" + quote_of(error_text) + ")"};
}

/// The password that an AUTH among these commands sends.
std::string password_in(const std::vector<Command>& login) {
  for (const Command& command : login) {
    if (command.front() == "AUTH") return command.back();
  }
  return {};
}

/// Masks the password in an error reply, as users see the text, and a server or a proxy may repeat
/// its input there. Leaves very short passwords, which occur in any text, and passwords that are
/// words of the server's own text, as the reply must keep its meaning.
std::string without_password(const std::string& error_text, const std::string& password) {
  constexpr std::size_t shortest = 4;
  constexpr std::string_view mask = "***";
  if (password.size() < shortest) return error_text;
  std::string text = error_text;
  for (std::size_t at = text.find(password); at != std::string::npos;
       at = text.find(password, at + mask.size())) {
    text.replace(at, password.size(), mask);
  }
  return means_the_same(text, error_text) ? text : error_text;
}

}  // namespace

struct Connection::Open {
  /// What to do with the reply.
  void (Connection::*take)(Open&, Reply) = &Connection::take_answer;

  ReplyLimits limits{};
  std::unique_ptr<Event> answered{};  ///< null: no coroutine waits
  Answered then{};                    ///< null: no callback
  std::optional<Result<Reply, Fault>> answer{};
};

Connection::Connection(asio::any_io_executor executor, const Clock& clock,
                       std::unique_ptr<Transport> transport, const std::vector<Command>& login,
                       const std::optional<Command>& greeting, bool demands_master)
    : executor_(std::move(executor)),
      clock_(clock),
      transport_(std::move(transport)),
      password_(password_in(login)),
      progress_(clock.make_event()),
      greeting_command_(greeting) {
  const auto begin_with = [this](const Command& command, void (Connection::*take)(Open&, Reply),
                                 const ReplyLimits& limits = {}) {
    auto open = std::make_shared<Open>();
    open->take = take;
    open->limits = limits;
    enqueue(command, std::move(open));
  };
  for (const Command& command : login) begin_with(command, &Connection::take_login);
  if (demands_master) begin_with(Command{"ROLE"}, &Connection::take_role, role_limits);
  if (greeting) begin_with(*greeting, &Connection::take_greeting);
}

void Connection::start(Instant deadline) {
  spawn(executor_, [self = shared_from_this(), deadline] { return self->serve(deadline); });
}

asio::awaitable<Result<Reply, Fault>> Connection::request(EncodedCommand command,
                                                          ReplyLimits limits, Instant deadline,
                                                          Answered late) {
  std::vector<Question> one;
  one.push_back(Question{std::move(command), limits});
  auto replies = co_await request_all(std::move(one), deadline, std::move(late));
  if (!replies) co_return unexpected(std::move(replies.error()));
  co_return std::move(replies->front());
}

asio::awaitable<Result<std::vector<Reply>, Fault>> Connection::request_all(
    std::vector<Question> questions, Instant deadline, Answered late) {
  const auto self = shared_from_this();
  const Instant asked = clock_.now();
  asked_ = true;
  std::vector<std::shared_ptr<Open>> all;
  std::vector<bool> may_fail;
  for (Question& question : questions) {
    all.push_back(std::make_shared<Open>());
    all.back()->limits = question.limits;
    may_fail.push_back(question.may_fail);
    if (&question == &questions.back()) all.back()->answered = clock_.make_event();
    enqueue(std::move(question.command), all.back());
  }
  flush();
  const std::shared_ptr<Open> last = all.back();
  Instant end = deadline;
  while (!last->answer) {
    if (co_await last->answered->wait_until(end)) continue;
    if (end > deadline || !opened_at_ || *opened_at_ <= asked) break;
    end = later(deadline, *opened_at_ - asked);
  }
  if (last->answer) {
    std::vector<Reply> replies;
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto& answer = *all[i]->answer;
      if (!answer && !may_fail[i]) co_return unexpected(std::move(answer.error()));
      replies.push_back(answer ? std::move(*answer) : error_reply(std::move(answer.error().text)));
    }
    co_return replies;
  }

  late_ = true;
  last->answered.reset();
  last->then = std::move(late);
  // A server that has answered remains the master until no new connection opens, or the sentinels
  // name another.
  if (!answered_) transport_->disown();
  if (was_open()) co_return unexpected(missed_deadline("answer", deadline - asked));
  Fault fault = missed_deadline(transport_->awaited(), deadline - asked);
  if (const std::string advice = transport_->advice(); !advice.empty()) fault.text += "; " + advice;
  // Nothing was sent yet, so the only thing to undo would be that of an earlier connection.
  if (!carries_undo_) abort();
  co_return unexpected(std::move(fault));
}

Fault Connection::missed_deadline(const std::string& awaited, Duration time_given) const {
  // Rounded: the question begins a moment after its deadline is set.
  const auto given = std::chrono::ceil<Milliseconds>(time_given);
  std::string why = "within " + format_duration(given);
  if (given <= Milliseconds::zero()) {
    why = "within 0s: this host was too busy to ask in time";
  } else if (server_timeout_ > Duration::zero()) {
    const bool is_rest = given < server_timeout_ - server_timeout_ / 10;
    why = (is_rest ? "in what was left of " : "within ") + format_duration(server_timeout_) +
          " (--server-timeout)";
  }
  return of_server({FaultKind::silent, "no " + awaited + " " + why});
}

bool Connection::greeting_was_refused() const {
  if (!greeting_ || greeting_->reply.type != Reply::Type::error) return false;
  return fault_of_error(greeting_->reply.text).refused;
}

asio::awaitable<std::optional<Fault>> Connection::greet_again(Instant deadline) {
  auto reply = co_await request(*greeting_command_, ReplyLimits{}, deadline);
  if (!reply) co_return reply.error();
  greeting_ = Greeting{std::move(*reply), clock_.now()};
  if (greeting_was_refused()) co_return fault_of_error(greeting_->reply.text);
  co_return std::nullopt;
}

void Connection::post(EncodedCommand command, Answered answered) {
  if (!asked_) carries_undo_ = true;
  auto open = std::make_shared<Open>();
  open->then = std::move(answered);
  enqueue(std::move(command), std::move(open));
  flush();
}

asio::awaitable<void> Connection::close(Instant deadline, bool answered) {
  const auto self = shared_from_this();
  // A connection that never opened delivered nothing. It is only kept if it carries the undo for
  // another connection.
  // No `while (… && co_await …)`: GCC 12 would wait even if the part before the && is false.
  if (!broken_ && !open_.empty() && (was_open() || carries_undo_)) {
    while (!broken_ && !(was_open() && unsent_.empty() && being_written_.empty())) {
      if (!co_await progress_->wait_until(deadline)) break;
    }
    while (answered && !broken_ && !open_.empty()) {
      if (!co_await progress_->wait_until(deadline)) answered = false;
    }
    if (!broken_ && was_open()) transport_->end_sending();
    while (!broken_) {
      if (!co_await progress_->wait_until(deadline)) break;
    }
  }
  abort();
}

void Connection::abort() {
  aborted_ = !broken_;
  fail(Fault{FaultKind::silent, "the connection was closed"});
}

asio::awaitable<void> Connection::serve(Instant deadline) {
  const auto self = shared_from_this();
  if (auto fault = co_await transport_->open(deadline)) {
    fail(of_server(std::move(*fault)));
    co_return;
  }
  if (broken_) co_return;
  opened_at_ = clock_.now();
  flush();
  progress_->notify();
  std::array<char, 4096> buffer;
  while (!broken_) {
    asio::error_code error;
    const std::size_t length = co_await transport_->read_some(asio::buffer(buffer), error);
    if (error) {
      fail(of_server(transport_->explain(error)));
      co_return;
    }
    reader_.feed({buffer.data(), length});
    while (!broken_) {
      auto reply = reader_.next(open_.empty() ? ReplyLimits{} : open_.front()->limits);
      if (!reply) {
        fail(of_server({FaultKind::garbage, reply.error()}));
      } else if (*reply) {
        deliver(std::move(**reply));
      } else {
        break;
      }
    }
  }
}

void Connection::enqueue(EncodedCommand command, std::shared_ptr<Open> open) {
  if (broken_) {
    finish(*open, unexpected(*broken_));
    return;
  }
  open_.push_back(std::move(open));
  if (unsent_.empty()) {
    unsent_ = std::move(command).bytes();
  } else {
    unsent_ += command.bytes();
  }
}

void Connection::flush() {
  if (!was_open() || broken_ || !being_written_.empty() || unsent_.empty()) return;
  unsent_.erase(0, transport_->try_write(asio::buffer(unsent_)));
  if (unsent_.empty()) return;
  spawn(executor_, [self = shared_from_this()] { return self->write_rest(); });
}

asio::awaitable<void> Connection::write_rest() {
  while (being_written_.empty() && !unsent_.empty() && !broken_) {
    being_written_.swap(unsent_);
    asio::error_code error;  // the reader gets the error, too, and reports it better
    co_await transport_->write(asio::buffer(being_written_), error);
    being_written_.clear();
    progress_->notify();
  }
}

void Connection::deliver(Reply reply) {
  answered_ = true;
  if (open_.empty() && on_message_) return on_message_(&reply);
  if (open_.empty()) return fail(Fault{FaultKind::garbage, "unexpected reply"});
  const std::shared_ptr<Open> open = std::move(open_.front());
  open_.pop_front();
  if (open_.empty()) progress_->notify();
  if (reply.type == Reply::Type::error) read_error(reply);
  if (std::exchange(seems_needless_, false)) judge_needless_password(reply);
  (this->*open->take)(*open, std::move(reply));
}

void Connection::read_error(Reply& reply) {
  reply.text = without_password(reply.text, password_);
  if (!refuses_connection(reply.text)) return;
  // The server closes the connection, so later questions get this answer.
  login_fault_ = of_server(fault_of_error(reply.text));
  retire();
}

void Connection::judge_needless_password(const Reply& next) {
  // A disabled default user has no password either.
  if (next.type != Reply::Type::error || !wants_login(next.text)) {
    needless_password_();
  } else if (!login_fault_) {
    login_fault_ = of_server(default_user_is_off(next.text));
  }
}

void Connection::take_login(Open& /*open*/, Reply reply) {
  if (reply.type != Reply::Type::error || login_fault_) return;
  seems_needless_ = needless_password_ && is_needless_password(reply.text);
  if (seems_needless_) return;
  login_fault_ = of_server(fault_of_error(reply.text));
  if (login_fault_->refused) retire();  // the server may accept the login by the next question
}

void Connection::take_role(Open& /*open*/, Reply reply) {
  if (login_fault_) return;
  auto objection = objection_to(reply);
  if (!objection) return;
  login_fault_ = of_server(std::move(*objection));
  retire();
  found_no_master_ = login_fault_->kind == FaultKind::unavailable;
  if (found_no_master_) transport_->disown();
}

void Connection::take_greeting(Open& /*open*/, Reply reply) {
  greeting_ = Greeting{std::move(reply), clock_.now()};
}

void Connection::take_answer(Open& open, Reply reply) {
  if (!login_fault_) return finish(open, std::move(reply));
  // The default user may have executed the commands after a refused login; so may a replica that
  // became a master meanwhile. They do not count, but can be undone on this connection.
  acted_without_login_ = acted_without_login_ || reply.type != Reply::Type::error;
  finish(open, unexpected(*login_fault_));
}

Fault Connection::of_server(Fault fault) const {
  fault.text.insert(0, transport_->subject());
  return fault;
}

void Connection::finish(Open& open, Result<Reply, Fault> answer) {
  open.answer = std::move(answer);
  if (open.answered) open.answered->notify();
  if (open.then) std::exchange(open.then, nullptr)(*open.answer);
}

void Connection::fail(Fault fault) {
  if (broken_) return;
  broken_ = std::move(fault);
  transport_->close();
  for (const auto& open : std::exchange(open_, {}))
    finish(*open, unexpected(login_fault_ ? *login_fault_ : *broken_));
  unsent_.clear();
  progress_->notify();
  const auto disconnected = std::exchange(disconnected_, nullptr);
  if (disconnected && was_open() && !aborted_ && !late_) disconnected();
  if (const auto notified = std::exchange(on_message_, nullptr)) notified(nullptr);
}

}  // namespace redlock::redis
