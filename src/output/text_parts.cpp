#include "output/text_parts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "support/text.hpp"
#include "support/timestamp.hpp"

namespace redlock::output {
namespace {

std::string note_text(const Owner& owner) {
  return owner.note.empty() ? std::string()
                            : fmt::format(", \"{}\"", escape_for_terminal(owner.note));
}

}  // namespace

std::string key_text(const Resource& resource) {
  return escape_for_terminal(resource.key());
}

std::string keys_text(const std::vector<Resource>& resources) {
  std::vector<std::string> texts;
  std::ranges::transform(resources, std::back_inserter(texts), key_text);
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string key_option(const Resource& resource) {
  return (resource.key().starts_with('-') ? "--key=" : "-k ") + shell_word(resource.key());
}

std::string slot_option(const std::optional<std::string>& slot) {
  return slot ? " --slot " + *slot : std::string();
}

std::string person_text(const std::string& user, const std::string& host) {
  return fmt::format("{}@{}", user.empty() ? "?" : escape_for_terminal(user),
                     host.empty() ? "?" : escape_for_terminal(host));
}

std::string owner_text(const Owner& owner) {
  std::string text = fmt::format("{} ({}pid {}", person_text(owner.user, owner.host),
                                 owner.supervised ? "run "
                                 : owner.detached ? "detached holder "
                                                  : "",
                                 owner.pid);
  if (!owner.command.empty()) text += ": " + escape_for_terminal(owner.command);
  return text + ")" + note_text(owner);
}

std::string former_owner_text(const Owner& owner) {
  return person_text(owner.user, owner.host) +
         (owner.command.empty() ? "" : fmt::format(" ({})", escape_for_terminal(owner.command))) +
         note_text(owner);
}

std::string priority_text(unsigned priority) {
  return priority == 0 ? std::string() : fmt::format(", priority {}", priority);
}

std::string ordinal(std::size_t number) {
  const std::size_t last = number % 10;
  const bool is_teen = number % 100 / 10 == 1;
  const char* suffix = "th";
  if (!is_teen && last == 1) suffix = "st";
  if (!is_teen && last == 2) suffix = "nd";
  if (!is_teen && last == 3) suffix = "rd";
  return std::to_string(number) + suffix;
}

std::string moment_text(Milliseconds moment, Milliseconds now) {
  const bool is_today = local_time(moment, "%F") == local_time(now, "%F");
  return local_time(moment, is_today ? "%T" : "%F %T");
}

std::string end_text(Duration remaining) {
  const Milliseconds now = wall_clock_now();
  const auto end = std::chrono::round<std::chrono::seconds>(now + remaining);
  std::string text = moment_text(end, now);
  // Users choose full minutes.
  if (text.ends_with(":00")) text.resize(text.size() - 3);
  return text;
}

}  // namespace redlock::output
