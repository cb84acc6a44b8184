#include <fmt/format.h>
#include <sys/resource.h>

#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>

#include "world.hpp"

namespace redlock::sim {
namespace {

constexpr std::string_view usage =
    "usage: redlock_sim [--profile NAME] [--seeds FROM-TO | --seed N] [-v] [--expect-violation] "
    "[--rate] [--quiet]\n"
    "\n"
    "Runs the schedules of these seeds (default: 1-2000). Stops at the first one that violates a "
    "rule, prints its history, and exits 1.\n"
    "  --seed N             runs this seed and prints its history\n"
    "  -v                   prints the history of each seed\n"
    "  --expect-violation   exits 1 when no seed violates a rule\n"
    "  --rate               prints how many schedules ran, what happened in them, and how many ran "
    "per second of processor time\n"
    "  --quiet              prints one line for a violation, and no history\n"
    "profiles:\n";

struct Options {
  const Profile* profile = &profiles[0];
  std::uint64_t from = 1;
  std::uint64_t to = 2000;
  bool shows_history = false;
  bool expects_violation = false;
  bool shows_rate = false;
  bool quiet = false;
};

bool read_number(std::string_view text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_seeds(std::string_view text, Options& options) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos)
    return read_number(text, options.from) && read_number(text, options.to);
  return read_number(text.substr(0, dash), options.from) &&
         read_number(text.substr(dash + 1), options.to);
}

std::optional<Options> read(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    const std::string_view value = i + 1 < count ? words[i + 1] : "";
    if (word == "--help") return std::nullopt;
    if (word == "-v") {
      options.shows_history = true;
    } else if (word == "--expect-violation") {
      options.expects_violation = true;
    } else if (word == "--rate") {
      options.shows_rate = true;
    } else if (word == "--quiet") {
      options.quiet = true;
    } else if (word == "--seed" || word == "--seeds") {
      options.shows_history = options.shows_history || word == "--seed";
      if (!read_seeds(value, options)) return std::nullopt;
      ++i;
    } else if (word == "--profile") {
      options.profile = find_profile(value);
      if (options.profile == nullptr) return std::nullopt;
      ++i;
    } else {
      return std::nullopt;
    }
  }
  return options;
}

/// The processor time of this process, in seconds.
double processor_time() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto in_seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return in_seconds(used.ru_utime) + in_seconds(used.ru_stime);
}

void show_history(const Options& options, std::uint64_t seed, local::LuaHost& lua) {
  World world(*options.profile, seed, /*with_history=*/true, lua);
  world.run();
  for (const std::string& line : world.history().lines()) fmt::print("{}\n", line);
}

void show_rate(const Totals& totals, double taken) {
  const auto each = [&](std::size_t number) {
    return static_cast<double>(number) / static_cast<double>(totals.schedules);
  };
  fmt::print("{} schedules in {:.2f} s of processor time: {:.0f} a second\n", totals.schedules,
             taken, static_cast<double>(totals.schedules) / taken);
  fmt::print("each: {:.1f} scripts, {:.2f} grants, {:.1f} s of virtual time\n",
             each(totals.scripts), each(totals.grants),
             in_ms(totals.virtual_time) / 1000 / static_cast<double>(totals.schedules));
  std::string failures;
  for (std::size_t i = 0; i < totals.failures_by_why.size(); ++i) {
    if (totals.failures_by_why[i] > 0)
      failures += fmt::format(" {} {}", word_for(static_cast<AcquireDecision>(i)),
                              totals.failures_by_why[i]);
  }
  fmt::print("failed attempts:{}\n", failures);
}

int run(const Options& options) {
  local::LuaHost lua;
  Totals totals;
  bool violated = false;
  for (std::uint64_t seed = options.from; seed <= options.to && !violated; ++seed) {
    World world(*options.profile, seed, /*with_history=*/false, lua);
    const auto violation = world.run();
    world.add_to(totals);
    const bool wants_history =
        options.shows_history || (violation && !options.expects_violation && !options.quiet);
    if (wants_history) show_history(options, seed, lua);
    if (!violation) continue;
    violated = true;
    fmt::print("seed {} of {} violates {}: {}\n", seed, options.profile->name, violation->rule,
               violation->text);
    if (!options.expects_violation)
      fmt::print("again: redlock_sim --profile {} --seed {}\n", options.profile->name, seed);
  }
  if (options.shows_rate) show_rate(totals, processor_time());
  if (options.expects_violation && !violated)
    fmt::print("no violation in {} schedules of {}\n", totals.schedules, options.profile->name);
  return violated == options.expects_violation ? 0 : 1;
}

}  // namespace
}  // namespace redlock::sim

int main(int count, char** words) {
  const auto options = redlock::sim::read(count, words);
  if (options) return redlock::sim::run(*options);
  fmt::print(stderr, "{}", redlock::sim::usage);
  for (const auto& profile : redlock::sim::profiles)
    fmt::print(stderr, "  {:<20} {}\n", profile.name, profile.what);
  return 2;
}
