#include "output/terminal.hpp"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <string>

#include "output/table.hpp"
#include "support/environment.hpp"

namespace redlock::output {
namespace {

constexpr TerminalSize usual_size{24, 80};

}  // namespace

bool can_draw_on(int fd) {
  const std::string term = environment_value("TERM");
  return ::isatty(fd) == 1 && !term.empty() && term != "dumb";
}

std::size_t width_of_output(int fd) {
  return ::isatty(fd) == 1 ? terminal_size(fd).columns : any_width;
}

TerminalSize terminal_size(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0) return usual_size;
  return {size.ws_row == 0 ? usual_size.rows : size.ws_row,
          size.ws_col == 0 ? usual_size.columns : size.ws_col};
}

std::string lines_for(int fd, std::string_view lines) {
  constexpr tcflag_t returns = OPOST | ONLCR;
  termios modes{};
  std::string text(lines);
  if (::tcgetattr(fd, &modes) != 0 || (modes.c_oflag & returns) == returns) return text;
  for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', end + 2))
    text.insert(end, 1, '\r');
  return text;
}

}  // namespace redlock::output
