#include "commands/watch.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <asio/posix/stream_descriptor.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>
#include <optional>

#include "commands/command_error.hpp"
#include "support/open_anew.hpp"
#include "support/text.hpp"

namespace redlock::commands {
namespace {

/// What has happened since the last redraw, for the one coroutine that draws.
struct WatchState {
  explicit WatchState(const Clock& clock) : event(clock.make_event()) {}

  std::unique_ptr<Event> event;
  int ended_by = 0;
  bool quit = false;
  bool redraw = false;
  bool refreshing = false;
};

/// Collects signals while the executor runs.
asio::awaitable<void> listen(asio::any_io_executor executor,
                             const guard::InheritedSignals& inherited, output::Screen& screen,
                             std::shared_ptr<WatchState> state) {
  asio::signal_set signals(executor);
  // Those that end the watch; the terminal is restored first.
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (guard::ends_a_wait(signal) && !inherited.ignored(signal)) signals.add(signal);
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
    if (ends) state->ended_by = signal;
    state->redraw = true;
    state->event->notify();
  }
}

/// Ends the watch when q is typed, as pagers and top(1) end.
asio::awaitable<void> read_keys(asio::any_io_executor executor, const output::Screen& screen,
                                std::shared_ptr<WatchState> state) {
  UniqueFd terminal = open_anew(STDIN_FILENO, O_RDONLY);
  if (!terminal) co_return;  // signals still end it
  asio::posix::stream_descriptor input(executor, terminal.release());
  asio::steady_timer pause(executor);
  for (;;) {
    co_await input.async_wait(asio::posix::stream_descriptor::wait_read, asio::use_awaitable);
    const std::optional<char> key = screen.key(input.native_handle());
    if (key == 'q' || key == 'Q') break;
    if (key) continue;
    // The input is for another job, or has ended: try again later.
    pause.expires_after(std::chrono::seconds(1));
    co_await pause.async_wait(asio::use_awaitable);
  }
  state->quit = true;
  state->event->notify();
}

asio::awaitable<void> refresh(std::shared_ptr<WatchState> state,
                              std::function<asio::awaitable<void>()> what) {
  co_await what();
  state->refreshing = false;
  state->redraw = true;
  state->event->notify();
}

}  // namespace

asio::awaitable<ExitAs> watch(Session& session, const guard::InheritedSignals& inherited,
                              Duration interval, Watched watched) {
  const Clock& clock = session.clock();
  const asio::any_io_executor executor = session.server_set().executor();
  output::Screen screen(STDOUT_FILENO);
  const auto state = std::make_shared<WatchState>(clock);
  spawn(executor, [&] { return listen(executor, inherited, screen, state); });
  if (::isatty(STDIN_FILENO) == 1)
    spawn(executor, [&] { return read_keys(executor, screen, state); });

  bool has_lines = false;
  Instant due = clock.now();
  for (;;) {
    if (!state->refreshing && clock.now() >= due) {
      state->refreshing = true;
      due = clock.now() + interval;
      spawn(executor, [&] { return refresh(state, watched.refresh); });
    }

    const Instant next = state->refreshing ? Instant::max() : due;
    co_await state->event->wait_until(next);
    if (state->quit) co_return ExitAs{};
    if (state->ended_by != 0) co_return ExitAs{0, state->ended_by};

    if (!state->redraw) continue;
    has_lines = has_lines || !state->refreshing;
    state->redraw = false;
    if (has_lines && !screen.draw(watched.lines(screen.size())))
      throw CommandError(ExitCode::os_error, "cannot write to stdout: " + errno_text(errno));
  }
}

}  // namespace redlock::commands
