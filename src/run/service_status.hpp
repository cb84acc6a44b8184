#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "output/event.hpp"

namespace redlock::run {

/// --sd-notify: what the service manager is to know of us, so that a standby can be told from the
/// leader. READY=1 at the grant, STOPPING=1 when the command is stopped or has ended; both when it
/// has run already (--once-per).
class ServiceStatus final : public output::EventListener {
 public:
  /// `tell(name, value)` brings it to the front process.
  using Tell = std::function<void(const std::string& name, std::string value)>;
  ServiceStatus(const std::vector<Resource>& resources, Tell tell);

  void on(const output::event::Any& event, Milliseconds at) override;

 private:
  void status(std::string text) const { tell_("STATUS", std::move(text)); }

  std::string key_;
  Tell tell_;
};

}  // namespace redlock::run
