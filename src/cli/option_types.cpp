#include "cli/option_types.hpp"

#include <fmt/format.h>

#include <set>

#include "guard/signals.hpp"
#include "support/duration.hpp"
#include "support/number.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

/// The largest plausible count of a repeated flag.
constexpr unsigned max_count = 9;

constexpr int max_exit_status = 255;

/// Of a value, usually from an unset variable.
constexpr std::string_view is_empty = "is empty";

constexpr std::string_view form_of_names =
    "1 to 64 letters, digits, '.', '_', ':' or '-', not digits alone and not beginning with '-'";

bool is_digits(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

/// Such as `3` or `3.0`.
bool is_number(std::string text) {
  if (const std::size_t point = text.find('.'); point != std::string::npos) text.erase(point, 1);
  return is_digits(text);
}

}  // namespace

std::vector<std::string_view> spellings_of(const OptionRow& option) {
  std::vector<std::string_view> spellings;
  std::string_view rest = option.spec().flags;
  while (!rest.empty()) spellings.push_back(next_word(rest, ','));
  return spellings;
}

std::string shown_name(const OptionRow& option, std::string_view typed) {
  const bool is_alias = typed.starts_with("--") && typed != option.spelling();
  return is_alias ? fmt::format("{} ({})", typed, option.spelling()) : option.spelling();
}

ReadValue<bool> FlagType::read(const std::string& text, const std::string&) const {
  for (const std::string_view yes : {"1", "true", "yes", "on"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"0", "false", "no", "off"}) {
    if (text == no) return false;
  }
  return unexpected(std::string("must be true or false"));
}

ReadValue<unsigned> CounterType::read(const std::string& text, const std::string& shown) const {
  if (const auto number = whole_number<std::uint64_t>(text); number && *number <= max_count) {
    return static_cast<unsigned>(*number);
  }
  const auto flag = FlagType().read(text, shown);
  if (!flag) return unexpected(fmt::format("{}, or a number up to {}", flag.error(), max_count));
  return *flag ? 1U : 0U;
}

ReadValue<std::string> TextType::read(const std::string& text, const std::string&) const {
  return shortened(text, max_bytes);
}

std::string DurationType::text(Duration value) const {
  return exact_duration(value);
}

ReadValue<Duration> DurationType::read(const std::string& text, const std::string& shown) const {
  const auto value = parse_duration(text);
  if (!value) return unexpected(describe(value.error(), shown));
  if (*value == infinite_duration && !may_be_infinite)
    return unexpected(std::string("cannot be infinite"));
  if (*value < min) return unexpected("must be at least " + format_duration(min));
  if (*value > max) return unexpected("must be at most " + format_duration(max));
  return *value;
}

bool OptionalDurationType::has_form(const std::string& text) {
  const auto value = parse_duration(text);
  return value || value.error() == DurationError::too_large;
}

ReadValue<std::uint64_t> NumberType::read(const std::string& text, const std::string&) const {
  if (text.empty()) return unexpected(std::string(is_empty));
  const auto number = whole_number<std::uint64_t>(text);
  if (number && *number >= min && *number <= max) return *number;
  if (number && *number < min)
    return unexpected(fmt::format("must be at least {}{}", min, below_min));
  return unexpected(fmt::format("must be a whole number from {} to {}", min, max));
}

bool OptionalNumberType::has_form(const std::string& text) {
  return is_digits(text);
}

ReadValue<Pool> PoolType::read(const std::string& text, const std::string& shown) const {
  if (text.empty()) return unexpected(std::string(is_empty));
  // A fraction is no pool of one slot with that name.
  if (is_number(text)) {
    const auto size = NumberType{1, Mode::max_slots}.read(text, shown);
    if (!size) return unexpected(size.error());
    return Pool{static_cast<std::size_t>(*size)};
  }
  Pool pool;
  const std::string list = text + ',';
  std::set<std::string> names;
  for (std::string_view rest = list; !rest.empty();) {
    pool.names.emplace_back(next_word(rest, ','));
    const std::string& name = pool.names.back();
    if (!is_slot_name(name)) {
      return unexpected(
          fmt::format("must be a number, or names separated by commas: {}", form_of_names));
    }
    if (!names.insert(name).second) return unexpected(fmt::format("has the name {} twice", name));
  }
  pool.size = pool.names.size();
  if (pool.size > Mode::max_slots)
    return unexpected(fmt::format("must be at most {} names", Mode::max_slots));
  return pool;
}

ReadValue<std::string> SlotType::read(const std::string& text, const std::string& shown) const {
  if (text.empty()) return unexpected(std::string(is_empty));
  if (is_slot_name(text)) return text;
  const auto number = NumberType{0, Mode::max_slots - 1}.read(text, shown);
  if (number) return std::to_string(*number);
  if (is_digits(text)) return unexpected(number.error());
  return unexpected(fmt::format("must be a number, or a name: {}", form_of_names));
}

ReadValue<std::vector<int>> StatusesType::read(const std::string& text, const std::string&) const {
  if (text.empty()) return unexpected(std::string(is_empty));
  std::vector<int> statuses;
  const std::string list = text + ',';
  for (std::string_view rest = list; !rest.empty();) {
    const auto status = whole_number<int>(next_word(rest, ','));
    if (!status || *status < 0 || *status > max_exit_status) {
      return unexpected(
          fmt::format("must be exit statuses from 0 to {}, separated by commas", max_exit_status));
    }
    statuses.push_back(*status);
  }
  return statuses;
}

std::string SignalType::text(int value) const {
  return guard::signal_name(value);
}

ReadValue<int> SignalType::read(const std::string& text, const std::string& shown) const {
  if (const auto signal = guard::parse_signal(text)) return *signal;
  return unexpected(fmt::format("unknown signal '{}'; write one like TERM, INT or 15",
                                escape_for_terminal(shown)));
}

}  // namespace redlock::cli
