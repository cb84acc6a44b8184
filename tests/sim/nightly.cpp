#include "nightly.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "core/validity.hpp"
#include "virtual/random.hpp"

namespace redlock::sim {
namespace {

using Kind = Mishap::Kind;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr hours a_day{24};
constexpr hours period{20};
/// The crontab's time, so that no clock starts before the schedule does.
constexpr minutes first_start{5};
constexpr seconds clock_error{90};
constexpr seconds job_ttl{30};
constexpr minutes max_mishap{3};

/// Servers measure the period, by clocks that run wrong by half a percent, in milliseconds.
constexpr Duration tolerance = Duration(period) / 100;

/// How long a session waits while the others of its day run one after the other.
constexpr hours wait_timeout{4};

class DrawNightly {
 public:
  DrawNightly(const Profile& profile, std::uint64_t seed)
      : profile_(profile), random_(seed), extra_(seed ^ 0x5059) {}

  Schedule make() {
    schedule_.shape = Schedule::Shape::nightly;
    schedule_.servers = std::array<std::size_t, 5>{1, 3, 3, 3, 5}[random_.below(5)];
    const bool full = random_.below(60) == 0;
    days_ = full ? 20 : 2 + random_.below(3);
    hosts_ = full ? 40 : 3 + random_.below(5);
    // A server that forgets is the only mishap then: two at a time are outside of the promise.
    forgets_ = schedule_.servers >= min_guarded_servers && random_.chance(250);
    if (forgets_) schedule_.restart_guard = job_ttl;
    for (std::size_t i = 0; i < schedule_.servers; ++i) {
      schedule_.configured.push_back(i);
      schedule_.server_plans.push_back(machine());
    }
    for (std::size_t i = 0; i < hosts_; ++i) schedule_.hosts.push_back(machine());
    for (std::size_t i = 0; i < hosts_ * schedule_.servers; ++i) {
      const Duration delay =
          random_.between(Duration(std::chrono::microseconds(50)), Duration(milliseconds(3)));
      schedule_.paths.push_back({delay, delay / 2, 0});
    }
    for (std::size_t day = 0; day < days_; ++day) add_day(day);
    schedule_.calm = days_ * a_day;
    schedule_.progress_from = schedule_.calm;
    schedule_.bound = seconds(10);
    return std::move(schedule_);
  }

 private:
  MachinePlan machine() {
    MachinePlan plan;
    plan.clock_origin = random_.between(Duration(seconds(1)), Duration(seconds(1'000'000)));
    const std::int64_t max_ppm = profile_.rate_ppm;
    plan.ppm = std::array{-max_ppm, max_ppm, random_.between(-max_ppm, max_ppm)}[random_.below(3)];
    plan.wall_offset = random_.between(-clock_error.count(), clock_error.count()) * seconds(1);
    return plan;
  }

  void add_day(std::size_t day) {
    const Duration start = day * a_day + Duration(first_start);
    const bool quiet = random_.chance(400);
    schedule_.quiet_days.push_back(quiet);
    for (std::size_t host = 0; host < hosts_; ++host) add_session(host, start, quiet);
    if (quiet) return;
    const std::size_t count = 1 + random_.below(3);
    for (std::size_t i = 0; i < count; ++i) add_mishap(start);
    const bool has_minority = schedule_.servers > 1;
    if (has_minority && !forgets_ && extra_.chance(150)) have_a_minority_record();
  }

  void add_session(std::size_t host, Duration start, bool quiet) {
    SessionPlan plan;
    plan.host = host;
    plan.start = start - schedule_.hosts[host].wall_offset;
    plan.ttl = job_ttl;
    plan.server_timeout = default_server_timeout(Ttl::from(plan.ttl).value());
    plan.wait.wait = random_.chance(300) ? Duration::zero() : Duration(wait_timeout);
    plan.wait.unavailable_wait = seconds(10);
    plan.wait.retry_delay = milliseconds(100);
    plan.work = random_.between(Duration(milliseconds(1)),
                                Duration(random_.chance(500) ? seconds(1) : seconds(100)));
    plan.once_per = period;
    plan.fails = random_.chance(300);
    if (random_.chance(100))
      plan.dies_at = plan.start + random_.between(Duration::zero(), 2 * plan.work);
    plan.undisturbed = quiet && !plan.fails && !plan.dies_at && plan.wait.wait > Duration::zero();
    schedule_.sessions.push_back(plan);
  }

  void add_mishap(Duration start) {
    constexpr std::array kinds{Kind::crash,        Kind::freeze,         Kind::outage,
                               Kind::isolate_host, Kind::isolate_server, Kind::cut,
                               Kind::pause,        Kind::flush_scripts,  Kind::refuse};
    Mishap mishap;
    mishap.kind = forgets_ ? Kind::wipe : kinds[random_.below(kinds.size())];
    mishap.at = start + random_.between(-Duration(clock_error), Duration(2 * clock_error));
    // Half of them around the end of a command, where the record is written.
    if (random_.chance(500)) {
      const SessionPlan& victim =
          schedule_.sessions[schedule_.sessions.size() - 1 - random_.below(hosts_)];
      mishap.at = victim.start + victim.work +
                  random_.between(Duration::zero(), Duration(milliseconds(20)));
      mishap.host = victim.host;
    } else {
      mishap.host = random_.below(hosts_);
    }
    mishap.server = forgets_ ? 0 : random_.below(schedule_.servers);
    const bool stands_still = mishap.kind == Kind::freeze;
    mishap.span = random_.between(Duration(milliseconds(1)),
                                  stands_still ? Duration(job_ttl) / 2 : Duration(max_mishap));
    mishap.refusal = Refusal::busy;
    schedule_.mishaps.push_back(mishap);
  }

  /// The release of the day's first run reaches one server only. That server is isolated while the
  /// others, which know nothing of the first run, let the next one in.
  void have_a_minority_record() {
    const auto todays = std::span(schedule_.sessions).last(hosts_);
    SessionPlan& first = *std::ranges::min_element(todays, {}, &SessionPlan::start);
    first.work = seconds(1);
    first.fails = false;
    first.dies_at.reset();
    const std::size_t only = extra_.below(schedule_.servers);
    Mishap mishap;
    mishap.kind = Kind::outage;
    mishap.host = first.host;
    mishap.at = first.start + first.work / 2;
    mishap.span = 2 * job_ttl;
    for (mishap.server = 0; mishap.server < schedule_.servers; ++mishap.server)
      if (mishap.server != only) schedule_.mishaps.push_back(mishap);
    mishap.kind = Kind::isolate_server;
    mishap.server = only;
    mishap.at = first.start + 2 * first.work;
    mishap.span = max_mishap;
    schedule_.mishaps.push_back(mishap);
  }

  const Profile& profile_;
  Random random_;
  Random extra_;  ///< for later additions, as in Draw
  Schedule schedule_;
  std::size_t days_ = 0;
  std::size_t hosts_ = 0;
  bool forgets_ = false;
};

std::string hours_text(Duration span) {
  return fmt::format("{:.3f} h", std::chrono::duration<double, std::ratio<3600>>(span).count());
}

}  // namespace

Schedule draw_nightly(const Profile& profile, std::uint64_t seed) {
  return DrawNightly(profile, seed).make();
}

std::string Nights::recorded(Duration started) {
  const auto other = std::ranges::find_if(recorded_, [started](Duration one) {
    return std::chrono::abs(started - one) < Duration(period) - tolerance;
  });
  std::string violation;
  if (other != recorded_.end())
    violation = fmt::format("two runs succeeded that started {} apart",
                            hours_text(std::chrono::abs(started - *other)));
  recorded_.push_back(started);
  return violation;
}

std::string Nights::left_out(Duration now) const {
  const bool needless = std::ranges::any_of(ended_well_, [now](Duration started) {
    return now - started < Duration(period) + tolerance;
  });
  return needless ? std::string() : "a run was left out although none succeeded in the period";
}

std::string Nights::missing() const {
  for (std::size_t day = 0; day < schedule_.quiet_days.size(); ++day) {
    if (!schedule_.quiet_days[day]) continue;
    const auto is_of_day = [day](Duration when) {
      return when >= day * a_day - Duration(clock_error) && when < (day + 1) * a_day - hours(1);
    };
    const bool wanted = std::ranges::any_of(schedule_.sessions, [&](const SessionPlan& plan) {
      return plan.undisturbed && is_of_day(plan.start);
    });
    // A run that is killed right after its release may have been recorded although no process
    // learned of it.
    if (wanted && std::ranges::none_of(ended_well_, is_of_day))
      return fmt::format("no success on day {}", day + 1);
  }
  return {};
}

}  // namespace redlock::sim
