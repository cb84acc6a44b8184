#include "run/holder.hpp"

#include <unistd.h>

#include "output/standard_error.hpp"
#include "run/job.hpp"
#include "run/leftovers.hpp"
#include "run/run_reporter.hpp"
#include "run/service_status.hpp"
#include "run/story.hpp"
#include "run/tenancy.hpp"
#include "support/text.hpp"

namespace redlock::run {
namespace {

asio::awaitable<int> live(Session& session, Job& job, RunReporter& reporter, Tenancy& tenancy) {
  job.listen();
  const Finish finish = co_await tenancy.live();
  reporter.report_not_acquired(finish);
  co_await session.server_set().close(reporter.was_granted() ? CloseMode::immediate
                                                             : CloseMode::drain);
  job.report(finish, reporter.write_report(finish));
  co_return 0;
}

}  // namespace

void hold(const SessionOptions& about, const RunOptions& options, HolderParts parts) {
  ::setpgid(0, 0);  // out of the job: ^Z and signals to its group are not for us
  child::ignore_all();
  try {
    Session session(about, options.servers, options.server_timeout);
    Job job(session, std::move(parts.channel), parts.gate, parts.page, parts.front, parts.job_group,
            std::move(parts.shield));
    RunReporter reporter(session, options);
    Story story(session.console(), options, options.stop.max_hold);
    session.events().add(story);
    if (parts.event_writer != nullptr) session.events().add(*parts.event_writer);
    ServiceStatus service(options.resources, [&job](const std::string& name, std::string value) {
      job.notify_service(name, std::move(value));
    });
    if (options.notifies_service) session.events().add(service);
    Tenancy tenancy({session, job, reporter, parts.page, parts.inherited,
                     parts.inherited_descriptors, parts.isolation},
                    options);
    session.run(live(session, job, reporter, tenancy));
    parts.isolation.clear_away();
    clear_away_behind(about, options.servers, session);
    output::StandardError::of_process().finish();
    // All that others could see is done: the kernel frees the rest faster than we.
    ::_exit(0);
  } catch (const std::exception& error) {
    // The front process learns of it from our end.
    about.console.error(escape_for_terminal(error.what()));
    ::_exit(to_int(ExitCode::internal));
  }
}

}  // namespace redlock::run
