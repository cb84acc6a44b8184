#include "commands/key_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "output/outcome_json.hpp"
#include "output/text_parts.hpp"

namespace redlock::commands {
namespace {

/// Whether nothing was done for the key, so that the result of any other key takes precedence.
bool is_weak(output::CommandResult result) {
  return result == output::CommandResult::inherited || result == output::CommandResult::free;
}

}  // namespace

void KeyReport::add(output::Outcome outcome) {
  const std::string line =
      fmt::format("{}: {}", output::keys_text(outcome.resources), outcome.message);
  const bool worked = outcome.exit_code == 0;
  if (!outcome.message.empty())
    worked ? session_.console().notice(line) : session_.console().error(line);
  resources_.insert(resources_.end(), outcome.resources.begin(), outcome.resources.end());
  const bool takes_precedence =
      !whole_ || (whole_->exit_code == 0 && (outcome.exit_code != 0 || is_weak(whole_->result)));
  if (takes_precedence) whole_ = std::move(outcome);
}

ExitAs KeyReport::finish() {
  if (whole_->exit_code == 0 && resources_.size() > 1) {
    std::sort(resources_.begin(), resources_.end());
    whole_->resources = resources_;
    whole_->message.clear();
    whole_->holder.reset();  // it is that of one key
  }
  if (session_.json()) print_result(output::outcome_json(*whole_) + "\n");
  return ExitAs{whole_->exit_code};
}

}  // namespace redlock::commands
