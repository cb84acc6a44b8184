#include "proc/signal_state.hpp"

#include <signal.h>

#include <cstdlib>
#include <string_view>

#include "proc/process_stat.hpp"

namespace redlock::proc {
namespace {

/// Signals that always end a process of ours: KILL, and those for errors of its own code, which
/// keep their default action.
constexpr SignalMask deadly = mask_of(SIGKILL) | mask_of(SIGILL) | mask_of(SIGTRAP) |
                              mask_of(SIGABRT) | mask_of(SIGBUS) | mask_of(SIGFPE) |
                              mask_of(SIGSEGV) | mask_of(SIGSYS);

/// Other common signals that end a process by default. In a stopped process they stay pending.
constexpr SignalMask ending = mask_of(SIGHUP) | mask_of(SIGINT) | mask_of(SIGQUIT) |
                              mask_of(SIGPIPE) | mask_of(SIGALRM) | mask_of(SIGTERM);

SignalMask mask_in(const std::string& status, std::string_view name) {
  const auto line = status.find(name);
  if (line == std::string::npos) return 0;
  return std::strtoull(status.c_str() + line + name.size(), nullptr, 16);
}

}  // namespace

std::optional<SignalState> signal_state_in(const std::string& stat,
                                           const std::function<std::string()>& status) {
  const auto process = process_stat_in(stat);
  if (!process) return std::nullopt;
  SignalState state;
  state.is_dying = process->ending || !process->living;
  const bool sleeps = process->state == 'S';
  if (state.is_dying || sleeps) return state;

  // A stopped process is settled, but may have a KILL pending, which will wake it.
  state.is_settled = process->state == 'T' || process->state == 't';
  const std::string text = status();
  state.pending = mask_in(text, "\nSigPnd:") | mask_in(text, "\nShdPnd:");
  const SignalMask survived =
      mask_in(text, "\nSigBlk:") | mask_in(text, "\nSigIgn:") | mask_in(text, "\nSigCgt:");
  const SignalMask fatal = state.is_settled ? deadly : deadly | ending;
  state.is_dying = (state.pending & ~survived & fatal) != 0;
  return state;
}

std::optional<SignalState> signal_state(pid_t pid) {
  const std::string directory = "/proc/" + std::to_string(pid);
  const auto stat = read_proc_file(directory + "/stat");
  if (!stat) return std::nullopt;
  return signal_state_in(*stat, [&] { return read_proc_file(directory + "/status").value_or(""); });
}

}  // namespace redlock::proc
