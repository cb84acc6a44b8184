#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/boot_clock.hpp"

namespace redlock::proc {

/// The fields of /proc/PID/stat that we use. Source: proc(5).
struct ProcessStat {
  pid_t parent;
  char state;    ///< R, S, D, T, Z, ...
  bool living;   ///< not a zombie; true also if the first thread has ended but others run
  int terminal;  ///< the device number of its controlling terminal; 0: none
  bool ending;   ///< it was killed or has begun to exit
  unsigned long long started;  ///< in clock ticks since boot; distinguishes a process from a later
                               ///< one with the same pid
};

/// Nullopt when there is no such process, it is hidden from us, or it could not be read (see
/// errno).
std::optional<ProcessStat> read_process_stat(pid_t pid);

/// The name of a process in `comm`, at most 15 bytes of any kind; empty when there is no such
/// process.
std::string process_name(pid_t pid);

/// `deploy.sh 4711`, escaped for the terminal; only the number when there is no such process.
std::string process_text(pid_t pid);

/// `gpg-agent 3377, postgres 32005`, escaped for the terminal; of many the first few, `and 5 more`.
std::string processes_text(const std::vector<pid_t>& pids);

/// The bytes of private memory that a process has in RAM, without files and shared memory; 0 when
/// there is no such process. Source: proc(5), statm.
std::uint64_t private_bytes(pid_t pid);

/// The CPU time of a process's first thread since its start.
struct CpuTime {
  Duration ran{};
  Duration waited{};       ///< time spent ready to run, without a CPU
  long long timeslices{};  ///< how often it got a CPU
};

/// The parsers of these files, used by read_process_stat(), private_bytes() and cpu_time().
std::optional<ProcessStat> process_stat_in(const std::string& stat_text);
std::uint64_t private_bytes_in(const std::string& statm);
CpuTime cpu_time_in(const std::string& schedstat);

/// The pids in a list separated by blanks or newlines. Leaves out 0, which stands for a process
/// outside our pid namespace: kill(2) and cgroup files would take it to mean ourselves.
std::vector<pid_t> pids_in(std::string_view list);

/// The CPU time of a process; zero when there is no such process, or the kernel does not count it.
/// Source: the kernel's sched-stats.rst, /proc/PID/schedstat.
CpuTime cpu_time(pid_t pid);

/// Whether /proc is mounted and uses the same pids as kill(2): seen from an inner pid namespace,
/// the numbers in an outer /proc denote other processes.
bool proc_is_ours();

/// Whether /proc shows the processes that kill(2) reaches: proc_is_ours(), and it does not hide our
/// parent.
bool proc_shows_processes();

/// The numeric entries of a directory of /proc, in its order; nullopt when it cannot be read (see
/// errno).
std::optional<std::vector<int>> numbers_in(const std::string& path);

/// The whole content of a file; nullopt when it cannot be read (see errno).
std::optional<std::string> read_proc_file(const std::string& path);

}  // namespace redlock::proc
