#include "run/run.hpp"

#include "cli/command_session.hpp"
#include "cli/commands.hpp"
#include "cli/read_run_options.hpp"

namespace redlock::cli {

run::Finish run_command(const Settings& settings, const run::Start& start) {
  return run::run(read_run_options(settings), session_options(settings), start);
}

}  // namespace redlock::cli
