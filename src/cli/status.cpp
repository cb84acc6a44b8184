#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/lock_options.hpp"
#include "cli/options.hpp"
#include "engine/ballot.hpp"
#include "engine/inspect.hpp"
#include "output/describe.hpp"
#include "output/json.hpp"
#include "output/outcome.hpp"
#include "run/command_error.hpp"
#include "run/session.hpp"

namespace redlock::cli {
namespace {

constexpr std::chrono::seconds watch_interval{1};

/// More lines would hide the locks that could be read.
constexpr std::size_t max_skipped_lines = 10;

/// Home and clear: each screen replaces the one before on a terminal.
constexpr std::string_view clear_screen = "\x1b[H\x1b[2J";

struct StatusOptions {
  std::vector<Resource> resources;  ///< empty: all locks
  bool exit_code;
  bool watch;
};

struct Picture {
  std::vector<output::KeyStatus> keys;
  std::vector<ServerFault> faults;   ///< of listing, or of the first key
  std::vector<ServerFault> skipped;  ///< keys that may be locks, too, but could not be read
};

asio::awaitable<Picture> take_picture(run::Session& session, std::vector<Resource> resources) {
  Picture picture;
  if (resources.empty()) {
    Listing listing = co_await list_resources(session.server_set());
    resources = std::move(listing.resources);
    picture.faults = std::move(listing.faults);
    picture.skipped = std::move(listing.skipped);
  }
  for (const Resource& resource : resources) {
    std::vector<InspectVote> votes = co_await inspect(session.server_set(), resource);
    if (picture.faults.empty())
      picture.faults = faults_among(session.server_set(), [&](std::size_t i) { return &votes[i]; });
    picture.keys.push_back(
        {resource, summarize(votes), session.server_set().names(), std::move(votes)});
  }
  co_return picture;
}

std::string text_of(const Picture& picture, std::size_t servers, bool listed) {
  std::string text;
  for (const output::KeyStatus& key : picture.keys) {
    text += fmt::format("{}: {}\n", output::key_text(key.resource),
                        output::inspection_text(key.resource, key.inspection));
    if (key.inspection.holder && key.inspection.holder->fence)
      text += fmt::format("  fence {}\n", key.inspection.holder->fence->text());
    for (const std::string& line : output::parties_lines(key.inspection.parties))
      text += fmt::format("  {}\n", line);
    if (servers == 1 && key.inspection.state != InspectState::unavailable) continue;
    for (std::size_t i = 0; i < key.votes.size(); ++i)
      text += fmt::format("  {}: {}\n", key.servers[i], output::vote_text(key.votes[i]));
  }
  for (std::size_t i = 0; i < std::min(picture.skipped.size(), max_skipped_lines); ++i) {
    text += fmt::format("not read: {}\n", output::faults_text({picture.skipped[i]}));
  }
  if (picture.skipped.size() > max_skipped_lines) {
    text += fmt::format("not read: {} more\n", picture.skipped.size() - max_skipped_lines);
  }
  if (listed && !picture.faults.empty())
    text += fmt::format("not asked in full: {}\n", output::faults_text(picture.faults));
  if (listed && picture.keys.empty() && picture.skipped.empty() && picture.faults.size() < servers)
    text += "no locks\n";
  return text;
}

ExitCode code_of(const Picture& picture, const StatusOptions& options, std::size_t servers) {
  const auto any = [&](auto test) {
    return std::any_of(picture.keys.begin(), picture.keys.end(), test);
  };
  const bool unknown = any([](const output::KeyStatus& key) {
    return key.inspection.state == InspectState::unavailable;
  });
  if (unknown || servers - picture.faults.size() < quorum_of(servers)) {
    return output::code_of(output::result_for_faults(picture.faults, servers));
  }
  const bool taken =
      any([](const output::KeyStatus& key) { return key.inspection.state != InspectState::free; });
  if (!options.exit_code) return ExitCode::done;
  if (taken) return ExitCode::busy;
  return picture.skipped.empty() ? ExitCode::done : ExitCode::unavailable;  // not known to be free
}

asio::awaitable<run::Finish> show(run::Session& session, const StatusOptions& options) {
  const std::size_t servers = session.server_set().size();
  const bool listed = options.resources.empty();
  for (;;) {
    const Picture picture = co_await take_picture(session, options.resources);
    const ExitCode code = code_of(picture, options, servers);
    std::string text = session.json() ? output::status_json(picture.keys, picture.faults,
                                                            picture.skipped, to_int(code)) +
                                            "\n"
                                      : text_of(picture, servers, listed);
    if (options.watch && !session.json() && ::isatty(STDOUT_FILENO) == 1)
      text.insert(0, clear_screen);
    if (!session.console().is_quiet()) print_result(text);
    if (options.watch) {
      co_await sleep_until(session.clock(), session.clock().now() + watch_interval);
      continue;
    }
    const bool no_quorum =
        code != ExitCode::done && code != ExitCode::busy && !picture.faults.empty();
    if (no_quorum) session.console().error("no quorum; " + output::faults_text(picture.faults));
    co_await session.server_set().close(CloseMode::immediate);
    co_return run::Finish{to_int(code)};
  }
}

StatusOptions read_options(const Settings& settings) {
  StatusOptions options;
  if (const auto keys = settings.find(option::key)) {
    for (const std::string& key : keys->values) {
      auto resource = Resource::from(key);
      if (!resource) throw CommandError(ExitCode::usage, "--key: " + describe(resource.error()));
      options.resources.push_back(std::move(*resource));
    }
  }
  options.exit_code = settings.get(option::exit_code);
  options.watch = settings.get(option::watch);
  return options;
}

}  // namespace

run::Finish status_command(const Settings& settings) {
  const StatusOptions options = read_options(settings);
  const run::ServerOptions servers = read_server_options(settings);
  // There is no ttl of ours to derive it from: use the longest default.
  run::Session session(session_options(settings), servers,
                       servers.timeout.value_or(default_server_timeout(*Ttl::from(Ttl::max))));
  return session.run(show(session, options));
}

}  // namespace redlock::cli
