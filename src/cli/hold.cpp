#include <unistd.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "cli/lease_output.hpp"
#include "cli/option_rows.hpp"
#include "cli/read_lock_options.hpp"
#include "cli/read_server_options.hpp"
#include "commands/acquire.hpp"
#include "commands/command_error.hpp"
#include "support/moment.hpp"

namespace redlock::cli {
namespace {

/// How long the hold is to last from now on, and whether it ends at a given time.
struct Length {
  Setting setting;
  Duration span;
  bool has_fixed_end;
};

Length read_length(const Settings& settings) {
  const auto span = settings.find(option::hold_for);
  const auto until = settings.find(option::hold_until);
  if (span && until) Settings::refuse_both(*span, *until);
  if (span) return {*span, *settings.get(option::hold_for), false};
  if (!until) {
    throw CommandError(ExitCode::usage,
                       "hold needs --for DUR or --until TIME: when it ends by itself");
  }
  const Milliseconds now = wall_clock_now();
  const auto moment = parse_moment(*settings.get(option::hold_until), now);
  if (!moment) Settings::refuse(*until, moment.error());
  return {*until, *moment - now, true};
}

/// The lease ends with the hold, so its ttl is the hold's length. Nothing renews it, so it may be
/// short.
Ttl ttl_of(const Length& length) {
  const auto ttl = Ttl::from(length.span);
  if (!ttl) Settings::refuse(length.setting, "a hold lasts for at most a year");
  return *ttl;
}

commands::AcquireOptions read_hold_options(const Settings& settings) {
  std::vector<Resource> resources = read_keys(settings);
  if (resources.size() > 1)
    throw CommandError(ExitCode::usage,
                       "hold is for one key at a time; --for DUR says for how long");
  check_lease_output(settings);
  const Length length = read_length(settings);
  const Instant began = BootClock::now();
  commands::ServerOptions servers = read_server_options(settings);
  const Ttl ttl = ttl_of(length);
  Owner owner = read_owner(settings);
  owner.pid = ::getppid();
  owner.renewed_for = Duration::zero();
  owner.hold_for = ttl.length();
  commands::AcquireOptions options{
      read_lock_options(settings, std::move(resources), ttl, std::move(servers), std::move(owner))};
  if (length.has_fixed_end) {
    options.until = began + length.span;
    options.wait.wait = std::min(options.wait.wait.value_or(length.span), length.span);
  }
  read_lease_output(settings, options);
  return options;
}

}  // namespace

commands::ExitAs hold_command(const Settings& settings, const commands::Start& start) {
  commands::AcquireOptions options = read_hold_options(settings);
  return commands::acquire(std::move(options), lease_session_options(settings), start);
}

}  // namespace redlock::cli
