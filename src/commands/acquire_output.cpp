#include "commands/acquire_output.hpp"

#include <unistd.h>

#include <utility>

#include "commands/lease_file.hpp"
#include "core/lease_handle.hpp"
#include "core/validity.hpp"
#include "output/outcome_json.hpp"

namespace redlock::commands {

Demands demands_of(const AcquireOptions& options) {
  Demands demands{options.command()};
  demands.needed_validity = margin(options.ttl);
  // Some leases may be much older than the last one.
  demands.renews_all = true;
  if (options.is_hold()) {
    demands.own_for = "hold";
    demands.own_advice = "hold it outside of that, or hold another key";
  }
  if (!options.background) return demands;
  if (options.background->process) {
    demands.needed_validity += options.background->stop.grace;
  } else {
    // It promises to keep the lock. An inherited lease would not: it ends with its parent run, and
    // `release` has no effect on it.
    demands.own_for = "--detach";
    demands.own_advice = "use --detach outside of that, or with another key";
  }
  return demands;
}

ScriptListeners::ScriptListeners(Session& session, const AcquireOptions& options, pid_t job_group)
    : printer_(session.console(), session.clock(), options.resources, job_group, session.json(),
               /*reports_end=*/true) {
  if (options.background && options.background->process)
    printer_.speak_to(*options.background->process);
  session.events().add(printer_);
  if (!options.events_fd) return;
  event_writer_.emplace(*options.events_fd, options.resources);
  session.events().add(*event_writer_);
}

Result<std::string, std::string> AcquireOutput::write(const std::vector<Lease>& leases) {
  const LeaseHandle handle = handle_of(leases, fingerprint(options_.servers));
  if (options_.token_file) {
    const auto written = write_lease_file(*options_.token_file, handle);
    if (!written) return unexpected("cannot write the lease to " + written.error());
    wrote_file_ = true;
  }
  if (json_) {
    const output::Outcome outcome = output::outcome_of(options_.command(), options_.resources,
                                                       output::CommandResult::acquired, {});
    return output::lease_json(outcome, leases, handle.text()) + "\n";
  }
  if (options_.prints_export) return export_line(handle);
  if (options_.is_hold() || options_.token_file) return std::string();
  std::string tokens;
  for (const Lease& lease : leases) tokens += lease.token.secret() + "\n";
  return tokens;
}

void AcquireOutput::take_back() {
  if (std::exchange(wrote_file_, false)) ::unlink(options_.token_file->c_str());
}

AcquireOutput::FailureText AcquireOutput::failure_text(const output::Outcome& outcome) const {
  if (options_.prints_export) {
    const std::string line = failed_export_line(outcome.exit_code);
    return {line, line};
  }
  if (!json_) return {};
  output::Outcome without_keys = outcome;
  without_keys.resources.clear();
  return {output::outcome_json(outcome) + "\n", output::outcome_json(without_keys) + "\n"};
}

}  // namespace redlock::commands
