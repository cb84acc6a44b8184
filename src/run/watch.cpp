#include "run/watch.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>
#include <optional>

#include "run/command_error.hpp"
#include "support/text.hpp"

namespace redlock::run {
namespace {

/// Those that end us; the terminal is restored first.
constexpr std::array ending_signals{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// What happens between two refreshments, for the one coroutine that draws.
struct News {
  explicit News(const Clock& clock) : event(clock.make_event()) {}

  std::unique_ptr<Event> event;
  int ended_by = 0;
  bool quit = false;
  bool redraw = false;
  bool refreshing = false;
};

/// Collects signals as long as the executor runs.
asio::awaitable<void> listen(asio::any_io_executor executor,
                             const child::InheritedSignals& inherited, Screen& screen,
                             std::shared_ptr<News> news) {
  asio::signal_set signals(executor);
  for (const int signal : ending_signals) {
    if (!inherited.ignored(signal)) signals.add(signal);
  }
  for (const int signal : {SIGWINCH, SIGCONT}) signals.add(signal);
  const bool stops = !inherited.ignored(SIGTSTP);
  if (stops) signals.add(SIGTSTP);
  for (;;) {
    const int signal = co_await signals.async_wait(asio::use_awaitable);
    if (signal == SIGTSTP) {
      screen.leave();
      signals.remove(SIGTSTP);  // its default action stops us here
      ::raise(SIGTSTP);
      signals.add(SIGTSTP);
    }
    const bool ends = signal != SIGTSTP && signal != SIGWINCH && signal != SIGCONT;
    if (ends) news->ended_by = signal;
    news->redraw = true;
    news->event->notify();
  }
}

/// Ends the watch when q is typed, as pagers and top(1) end.
asio::awaitable<void> read_keys(asio::any_io_executor executor, const Screen& screen,
                                std::shared_ptr<News> news) {
  asio::posix::stream_descriptor input(executor, ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
  asio::steady_timer pause(executor);
  for (;;) {
    co_await input.async_wait(asio::posix::stream_descriptor::wait_read, asio::use_awaitable);
    const std::optional<char> key = screen.key();
    if (key == 'q' || key == 'Q') break;
    if (key) continue;
    // Another job's input, or none any more.
    pause.expires_after(std::chrono::seconds(1));
    co_await pause.async_wait(asio::use_awaitable);
  }
  news->quit = true;
  news->event->notify();
}

asio::awaitable<void> refresh(std::shared_ptr<News> news,
                              std::function<asio::awaitable<void>()> what) {
  co_await what();
  news->refreshing = false;
  news->redraw = true;
  news->event->notify();
}

}  // namespace

asio::awaitable<Finish> watch(Session& session, const child::InheritedSignals& inherited,
                              Duration interval, Watched watched) {
  const Clock& clock = session.clock();
  const asio::any_io_executor executor = session.server_set().executor();
  Screen screen(STDOUT_FILENO);
  const auto news = std::make_shared<News>(clock);
  spawn(executor, [&] { return listen(executor, inherited, screen, news); });
  if (::isatty(STDIN_FILENO) == 1)
    spawn(executor, [&] { return read_keys(executor, screen, news); });

  bool has_lines = false;
  Instant due = clock.now();
  for (;;) {
    if (!news->refreshing && clock.now() >= due) {
      news->refreshing = true;
      due = clock.now() + interval;
      spawn(executor, [&] { return refresh(news, watched.refresh); });
    }
    const Instant next = news->refreshing ? Instant::max() : due;
    co_await news->event->wait_until(next);
    if (news->quit) co_return Finish{};
    if (news->ended_by != 0) co_return Finish{0, news->ended_by};
    if (!news->redraw) continue;
    has_lines = has_lines || !news->refreshing;
    news->redraw = false;
    if (has_lines && !screen.draw(watched.lines(screen.size())))
      throw CommandError(ExitCode::os_error, "cannot write to stdout: " + errno_text(errno));
  }
}

}  // namespace redlock::run
