#include "support/trace.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>

#include "support/environment.hpp"
#include "support/line_writer.hpp"
#include "support/number.hpp"
#include "support/text.hpp"

namespace redlock {
namespace {

constexpr const char* trace_variable = "REDLOCK_TRACE";

struct Trace {
  std::optional<LineWriter> writer;
  Instant began;
  std::string_view name = "main";
};

constinit bool trace_is_on = false;

Trace& the_trace() {
  static Trace trace;
  return trace;
}

bool is_open_for_writing(int fd) {
  const int mode = ::fcntl(fd, F_GETFL);
  return mode >= 0 && (mode & O_ACCMODE) != O_RDONLY;
}

}  // namespace

Result<void, std::string> begin_trace() {
  const std::string text = environment_value(trace_variable);
  ::unsetenv(trace_variable);
  if (text.empty()) return {};

  const auto fd = whole_number<int>(text);
  if (!fd || *fd < 0 || !is_open_for_writing(*fd)) {
    return unexpected(std::string(trace_variable) + ": " + escape_for_terminal(text) +
                      ": not a descriptor that is open for writing");
  }
  try {
    the_trace().writer.emplace(*fd);
  } catch (const std::exception& error) {
    return unexpected(std::string(trace_variable) + ": " + error.what());
  }
  if (*fd > STDERR_FILENO) ::fcntl(*fd, F_SETFD, FD_CLOEXEC);
  the_trace().began = BootClock::now();
  trace_is_on = true;
  return {};
}

bool is_traced() noexcept {
  return trace_is_on;
}

void set_trace_name(std::string_view name) noexcept {
  if (trace_is_on) the_trace().name = name;
}

void trace(std::string_view topic, std::string_view text) {
  if (!trace_is_on) return;
  Trace& trace = the_trace();
  std::string line = trace_time(BootClock::now());
  line.append(" ").append(trace.name).append("[").append(std::to_string(::getpid())).append("] ");
  line.append(topic).append(": ").append(text).append("\n");
  trace.writer->write(line);
}

std::string trace_time(Instant when) {
  if (when == Instant::max()) return "never";
  const std::chrono::duration<double> since = when - the_trace().began;
  std::array<char, 32> text{};
  const int length = std::snprintf(text.data(), text.size(), "%.6f", since.count());
  return {text.data(), static_cast<std::size_t>(std::max(length, 0))};
}

}  // namespace redlock
