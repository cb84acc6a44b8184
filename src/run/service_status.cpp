#include "run/service_status.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "output/describe.hpp"

namespace redlock::run {

namespace event = output::event;

ServiceStatus::ServiceStatus(const std::vector<Resource>& resources, Tell tell)
    : key_(output::keys_text(resources)), tell_(std::move(tell)) {}

void ServiceStatus::on(const event::Any& event, Milliseconds) {
  if (const auto* waiting = std::get_if<event::Waiting>(&event)) {
    status(
        fmt::format("waiting for {}: {}", output::key_text(waiting->resource), waiting->obstacle));
  } else if (const auto* acquired = std::get_if<event::Acquired>(&event)) {
    std::string text = "holds " + key_;
    if (acquired->leases.size() == 1)
      text += fmt::format(", fence {}", acquired->leases.front().fence.value());
    status(std::move(text));
    tell_("READY", "1");
  } else if (const auto* fresh = std::get_if<event::Fresh>(&event)) {
    // It had the lock and has done its work: without READY=1 systemd would call an exit with 0 a
    // breach of the protocol.
    status(key_ + " already ran " + output::past_run_text(fresh->last));
    tell_("READY", "1");
    tell_("STOPPING", "1");
  } else if (const auto* lost = std::get_if<event::Lost>(&event)) {
    status(fmt::format("lost {}: {}", key_, lost->reason));
  } else if (const auto* awaiting = std::get_if<event::Awaiting>(&event)) {
    status(fmt::format("keeps {} until what a signal left of the command has ended: {}", key_,
                       fmt::join(awaiting->pids, " ")));
    tell_("STOPPING", "1");
  } else if (std::holds_alternative<event::Stopping>(event) ||
             std::holds_alternative<event::Ended>(event)) {
    tell_("STOPPING", "1");
  }
}

}  // namespace redlock::run
