#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/boot_clock.hpp"

namespace redlock::child {

/// What /proc/PID/stat says of a process. Source: proc(5).
struct ProcessStat {
  pid_t parent;
  char state;                  ///< R, S, D, T, Z, ...
  bool living;                 ///< not a zombie; a process whose first thread has ended counts
                               ///< while other threads run
  int terminal;                ///< the device number of its controlling terminal; 0: none
  bool ending;                 ///< it was killed, or has begun to exit
  unsigned long long started;  ///< in clock ticks since boot: tells a process from a later one with
                               ///< the same pid
};

/// Nothing when there is no such process (any more), it is hidden from us, or errno says why it
/// could not be read.
std::optional<ProcessStat> read_process_stat(pid_t pid);

/// `4711 (deploy.sh)`, escaped for the terminal; the number alone when there is no such process.
std::string process_text(pid_t pid);

/// The private memory of a process in RAM, without files and shared memory; 0 when there is no such
/// process. Source: proc(5), statm.
std::uint64_t private_bytes(pid_t pid);

/// The CPU time of a process's first thread since its start.
struct CpuTime {
  Duration ran{};
  Duration waited{};       ///< ready to run, for a CPU
  long long timeslices{};  ///< how often it got a CPU
};

/// What these texts of /proc say: the parsers behind read_process_stat, private_bytes and cpu_time.
std::optional<ProcessStat> process_stat_in(const std::string& stat_text);
std::uint64_t private_bytes_in(const std::string& statm);
CpuTime cpu_time_in(const std::string& schedstat);

/// The processes in a list with blanks or newlines between them. Without 0, which stands for a
/// process outside of our pid namespace: kill(2) and cgroup files would take it for ourselves.
std::vector<pid_t> pids_in(std::string_view list);

/// Zero when there is no such process, or the kernel does not count it. Source: the kernel's
/// sched-stats.rst, /proc/PID/schedstat.
CpuTime cpu_time(pid_t pid);

/// Whether /proc is mounted and uses the same pids as kill(2): seen from an inner pid namespace,
/// the numbers of an outer /proc are other processes.
bool proc_is_ours();

/// Whether /proc shows the processes that kill(2) reaches: it is ours, and does not hide our
/// parent.
bool proc_shows_processes();

/// The entries of a directory of /proc that are numbers, in its order; nothing, and errno, when it
/// cannot be read.
std::optional<std::vector<int>> numbers_in(const std::string& path);

/// The whole of a file; nothing, and errno, when it cannot be read.
std::optional<std::string> read_proc_file(const std::string& path);

}  // namespace redlock::child
