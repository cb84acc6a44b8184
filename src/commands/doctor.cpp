#include "commands/doctor.hpp"

#include <unistd.h>

#include <string>
#include <utility>

#include "output/doctor.hpp"
#include "output/terminal.hpp"

namespace redlock::commands {
namespace {

/// The servers are usable, but with warnings, or not all could be checked. No other command's exit
/// code means that.
constexpr int exit_with_warnings = 1;

int code_of(const SetDiagnosis& set) {
  if (set.has_duplicate) return to_int(ExitCode::config);
  if (!set.has_quorum()) return to_int(ExitCode::unavailable);
  return set.is_fit() && set.unknown == 0 ? to_int(ExitCode::done) : exit_with_warnings;
}

asio::awaitable<ExitAs> diagnose_all(Session& session, DoctorOptions options) {
  const ServerSet& server_set = session.server_set();
  DiagnosisRequest request{std::move(options.key), server_set.server_timeout(),
                           server_set.restart_guard()};
  const SetDiagnosis set = co_await diagnose(session.io().get_executor(), session.clock(),
                                             std::move(options.links), std::move(request));
  const int code = code_of(set);
  const std::string text =
      session.json() ? output::diagnosis_json(set, code) + "\n"
                     : output::diagnosis_text(set, output::width_of_output(STDOUT_FILENO));
  if (options.prints) print_result(text);
  co_return ExitAs{code};
}

}  // namespace

ExitAs doctor(Session& session, DoctorOptions options) {
  return session.run(diagnose_all(session, std::move(options)));
}

}  // namespace redlock::commands
