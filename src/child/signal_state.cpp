#include "child/signal_state.hpp"

#include <signal.h>

#include <cstdlib>
#include <string_view>

#include "child/process_stat.hpp"

namespace redlock::child {
namespace {

/// Signals that end a process which neither blocks nor handles them: KILL, and the errors of its
/// own code, which we leave to their default action everywhere.
constexpr SignalMask deadly = mask_of(SIGKILL) | mask_of(SIGILL) | mask_of(SIGTRAP) |
                              mask_of(SIGABRT) | mask_of(SIGBUS) | mask_of(SIGFPE) |
                              mask_of(SIGSEGV) | mask_of(SIGSYS);

/// The usual ones of which a process ends that does nothing about them. A stopped one keeps them
/// pending.
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

  // KILL wakes a stopped process.
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

}  // namespace redlock::child
