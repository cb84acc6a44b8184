#include "output/printer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "core/protocol.hpp"
#include "guard/notice.hpp"
#include "guard/signals.hpp"
#include "output/failure_text.hpp"
#include "output/past_runs.hpp"
#include "output/request_text.hpp"
#include "output/text_parts.hpp"
#include "proc/process_stat.hpp"
#include "support/duration.hpp"

namespace redlock::output {
namespace {

namespace event = output::event;
using output::key_text;

constexpr int mebibyte_shift = 20;

/// `; fence 17; 2 of 3 servers; redis://c: connection refused`.
std::string grant_text(const event::Acquired& acquired) {
  std::string text;
  if (acquired.leases.size() == 1)
    text = fmt::format("; fence {}", acquired.leases.front().fence.value());
  text += fmt::format("; {} of {} server{}", acquired.votes, acquired.servers,
                      acquired.servers == 1 ? "" : "s");
  const std::string faults = output::faults_text(acquired.faults);
  return faults.empty() ? text : text + "; " + faults;
}

/// `demo: lost: it has expired`. `keys`: all keys of the command.
std::string lost_text(const std::string& keys, const event::Lost& lost) {
  return lost.resource ? fmt::format("{}: lost: {}", key_text(*lost.resource), lost.reason)
                       : fmt::format("{}: {}", keys, lost.reason);
}

}  // namespace

Printer::Printer(const output::Console& console, const Clock& clock,
                 const std::vector<Resource>& resources, pid_t job_group, bool json,
                 bool reports_end)
    : console_(console),
      clock_(clock),
      key_(output::keys_text(resources)),
      job_group_(job_group),
      json_(json),
      reports_end_(reports_end) {}

void Printer::on(const event::Any& event, Milliseconds) {
  std::visit([this](const auto& what) { print(what); }, event);
}

// --- The wait ---

void Printer::print(const event::Waiting& waiting) {
  const AttemptFailure& failure = waiting.failure;
  const std::string key = key_text(waiting.resource);
  const std::string obstacle = output::failure_text(waiting.resource, failure, waiting.servers);
  console_.debug(fmt::format("{}: {}{}", key, obstacle,
                             failure.queue.queued
                                 ? fmt::format("; {} before us in the queue", failure.queue.ahead)
                                 : std::string()));
  if (!failure.unsubscribed.empty() && !std::exchange(reported_unsubscribed_, true)) {
    console_.detail(fmt::format("{}: cannot subscribe to notifications; polling: {}", key,
                                output::faults_text(failure.unsubscribed)));
  }
  if (failure.queue.cannot_publish && !std::exchange(reported_cannot_publish_, true)) {
    console_.detail(fmt::format(
        "{}: the holder cannot notify waiters (it lacks +publish or the channels &{}*); polling",
        key, protocol::word::wake_prefix));
  }
  const Instant now = clock_.now();
  if (!wait_) {
    wait_.emplace(now - waiting.waited, waiting.servers, waiting.priority, waiting.replaces);
    if (!console_.is_quiet() && !console_.is_verbose() && !json_) line_.emplace(job_group_);
  }
  wait_->learn(waiting.resource, failure, now);
  if (waiting.news) status(fmt::format("waiting for {}: {}", key, obstacle));
}

void Printer::print(const event::StillWaiting&) {
  const Instant now = clock_.now();
  // Without our name, which every other message begins with: at 80 columns it would cost the pid.
  const std::string line = line_ ? wait_->line(now, line_->width()) : std::string();
  if (!line.empty() && line_->draw(line)) {
    if (const auto news = wait_->news_beside_line(now, line_->width())) {
      line_->erase();
      console_.notice(*news);
      line_->draw(line);
    }
    wait_shown_ = true;
  } else if (const auto news = wait_->news(now)) {
    console_.notice(*news);
    wait_shown_ = true;
  }
}

void Printer::print(const event::HeldAroundUs& held) {
  console_.notice(
      fmt::format("{}: {}", key_text(held.resource), output::held_around_us_text(held.owner)));
}

void Printer::print(const event::WaitEnded&) {
  line_.reset();
  wait_.reset();
  reported_unsubscribed_ = reported_cannot_publish_ = false;
}

/// The run got the lock and was skipped. READY=1 is still needed: systemd treats an exit with 0
/// without it as a protocol error.
void Printer::print(const event::Fresh& fresh) {
  status(key_ + " already ran " + output::past_run_text(fresh.last));
  notify_service("READY", "1");
  notify_service("STOPPING", "1");
}

void Printer::print(const event::Acquired& acquired) {
  const std::string text =
      fmt::format("{}: acquired after {}", key_, format_duration(acquired.waited));
  if (console_.is_verbose()) {
    console_.detail(text + grant_text(acquired));
  } else if (std::exchange(wait_shown_, false)) {
    console_.notice(text);
  }
  std::string holds = "holds " + key_;
  if (acquired.leases.size() == 1)
    holds += fmt::format(", fence {}", acquired.leases.front().fence.value());
  status(std::move(holds));
  notify_service("READY", "1");
}

// --- The lease ---

void Printer::print(const event::ReleasedWhilePaused&) {
  console_.detail(fmt::format("{}: stopped (^Z): lock released", key_));
}

void Printer::print(const event::Renewed& renewed) {
  renewed.after_trouble ? console_.detail(fmt::format("{}: renewed again", key_))
                        : console_.debug(fmt::format("{}: extended", key_));
}

/// An outage shorter than the lease is only a detail; a longer one is reported when the command is
/// stopped.
void Printer::print(const event::RenewalFailed& failed) {
  console_.detail(fmt::format("{}: cannot renew; retrying: {}", key_text(failed.resource),
                              output::faults_text(failed.faults)));
}

void Printer::print(const event::VotesChanged& changed) {
  const std::string missing = output::missing_votes_text(changed.faults, changed.servers);
  console_.detail(
      fmt::format("{}: {}", key_, missing.empty() ? "all servers vote again" : missing));
}

void Printer::print(const event::Lost& lost) {
  if (script_ != nullptr) return;  // print(ScriptStopping) has reported it
  const std::string text = lost_text(key_, lost);
  console_.error(text);
  console_.audit(text);
  status(fmt::format("lost {}: {}", key_, lost.reason));
}

// --- The command ---

void Printer::print(const event::Strained& strained) {
  console_.notice(
      fmt::format("{}: stopping the command's {} processes ({} MiB) may take {}, more than --ttl "
                  "{} leaves; use a longer --ttl",
                  key_, strained.cost.processes, strained.cost.private_bytes >> mebibyte_shift,
                  format_duration(strained.needed), format_duration(strained.ttl.length())));
}

void Printer::print(const event::Stopping& stopping) {
  if (script_ != nullptr) return;  // print(ScriptStopping) has reported it
  notify_service("STOPPING", "1");
  if (stopping.why == StopReason::parent_gone) {
    return console_.error(fmt::format(
        "{}: the process that started redlock-cli has ended; stopping the command", key_));
  }
  if (stopping.request) {
    const std::string asked = output::asked_text(*stopping.request);
    status(fmt::format("stops the command under {}: {}", key_, asked));
    const std::string text = fmt::format("{}: {}; stopping the command", key_, asked);
    console_.audit(text);
    stop_logged_ = true;
    return console_.error(text);
  }
  if (stopping.why != StopReason::max_hold) return;  // print(Lost) has reported the loss
  console_.error(fmt::format("{}: held for {}, the limit of --max-hold; stopping the command", key_,
                             format_duration(*stopping.max_hold)));
}

void Printer::print(const event::ScriptStopping& script) {
  std::string text;
  if (script.lost) {
    const std::string_view what_next =
        script.on_lost == OnLost::kill   ? "stopping it and its descendants"
        : script.on_lost == OnLost::term ? "sending it the stop signal"
                                         : "it runs on without the lock";
    text = fmt::format("{}; process {} relies on the lock: {}", lost_text(key_, *script.lost),
                       script.pid, what_next);
  } else {
    const event::Stopping& stopping = script.stopping;
    const std::string why = stopping.request ? output::asked_text(*stopping.request)
                                             : fmt::format("held for {}, the limit of --max-hold",
                                                           format_duration(*stopping.max_hold));
    text = fmt::format("{}: {}; stopping process {} and its descendants", key_, why, script.pid);
  }
  guard::post_notice(*script_, text);
}

void Printer::print(const event::ScriptUnsafe& unsafe) {
  const std::string time = format_duration(std::chrono::ceil<Milliseconds>(unsafe.late));
  guard::post_notice(
      *script_,
      unsafe.left.empty()
          ? fmt::format(
                "{}: UNSAFE: the descendants of process {} were seen dead only {} after the "
                "end of the lease",
                key_, unsafe.pid, time)
          : fmt::format("{}: UNSAFE: processes could not be killed and still run, {} after the end "
                        "of the lease: {}",
                        key_, time, proc::processes_text(unsafe.left)));
}

void Printer::print(const event::Unkillable& unkillable) {
  console_.error(
      fmt::format("{}: cannot kill all processes; keeping the lock as long as possible: {}", key_,
                  proc::processes_text(unkillable.pids)));
}

void Printer::print(const event::Awaiting& awaiting) {
  const std::string processes = proc::processes_text(awaiting.pids);
  console_.notice(
      fmt::format("{}: a signal ended the command; keeping the lock until the rest of its process "
                  "group has ended: {}",
                  key_, processes));
  status(fmt::format("keeps {} until the rest of the command's process group has ended: {}", key_,
                     processes));
  notify_service("STOPPING", "1");
}

void Printer::print(const event::Ended& ended) {
  if (ended.exit_code) status_ = fmt::format("; exit status {}", *ended.exit_code);
  if (ended.signal) status_ = "; died of SIG" + guard::signal_name(*ended.signal);
  notify_service("STOPPING", "1");
}

// --- The end ---

void Printer::print(const event::Released& released) {
  const std::string held = format_duration(released.held);
  if (released.inherited) {
    console_.detail(
        fmt::format("{}: done after {}{}; the lock is that of an enclosing run or acquire", key_,
                    held, status_));
  } else if (released.expire_in > Duration::zero()) {
    console_.detail(fmt::format("{}: done after {}{}; kept for another {} (--min-hold)", key_, held,
                                status_, format_duration(released.expire_in)));
  } else if (released.confirmed && released.left_to_users) {
    console_.detail(
        fmt::format("{}: done after {}{}; other runs use the lock", key_, held, status_));
  } else if (released.confirmed) {
    console_.detail(fmt::format("{}: released after {}{}", key_, held, status_));
  }
}

void Printer::print(const event::ReleasePending& pending) {
  const auto is_lasting = [](const ServerFault& server) {
    return server.fault.kind == FaultKind::denied || server.fault.kind == FaultKind::misconfigured;
  };
  const bool is_refused =
      !pending.faults.empty() && std::ranges::all_of(pending.faults, is_lasting);
  console_.notice(
      fmt::format("{}: {} until the lock expires, within {}; {}", key_,
                  is_refused ? "no quorum allows the release: other processes have to wait"
                             : "no quorum confirmed the release yet; retrying in the background",
                  format_duration(pending.ttl.length()), output::faults_text(pending.faults)));
}

void Printer::print(const event::NotRecorded& unrecorded) {
  console_.error(
      fmt::format("{}: the command succeeded, but no quorum of servers has recorded it yet: it may "
                  "run again within --once-per {}",
                  key_, format_duration(unrecorded.once_per)));
}

void Printer::print(const event::Interrupted& interrupted) {
  console_.notice(fmt::format(
      "{}: a signal asked the command to end{}; not recorded as a success: it may run again "
      "within --once-per {}",
      key_, status_, format_duration(interrupted.once_per)));
}

/// Printed even with -q, because work that continues without the lock is what a lock must prevent.
void Printer::print(const event::LeftRunning& left) {
  std::string text =
      fmt::format("{}: processes that the command left running{}: {}", key_,
                  left.killed ? ", killed with its pid namespace" : "", left.processes);
  if (left.unprotected) {
    text += fmt::format("; they run on without the lock{} (see --descendants)",
                        left.left_to_users ? ", except in nested runs" : "");
  }
  left.expected ? console_.notice(text) : console_.error(text);
}

/// A busy lock and a skipped run are expected results; any other failure is an error.
void Printer::print(const event::Concluded& concluded) {
  using output::CommandResult;
  const output::Outcome& outcome = concluded.outcome;
  if (outcome.message.empty()) return;
  const std::string line =
      fmt::format("{}: {}", output::keys_text(outcome.resources), outcome.message);
  // A request that ends a wait stops no command, so print(Stopping) has not logged it.
  const bool is_unlogged = outcome.result == CommandResult::stopped && !stop_logged_;
  if (!reports_end_) {
    if (is_unlogged) console_.log(line);
    return;
  }
  if (is_unlogged) console_.audit(line);
  const bool expected =
      outcome.result == CommandResult::busy || outcome.result == CommandResult::fresh;
  expected ? console_.notice(line) : console_.error(line);
}

}  // namespace redlock::output
