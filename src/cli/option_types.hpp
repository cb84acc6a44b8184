#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"
#include "support/duration.hpp"
#include "support/result.hpp"
#include "support/text.hpp"

namespace redlock::cli {

/// The commands, as bits: an option lists the commands that accept it.
enum Commands : unsigned {
  for_run = 1U << 0U,
  for_acquire = 1U << 1U,
  for_extend = 1U << 2U,
  for_release = 1U << 3U,
  for_status = 1U << 4U,
  for_doctor = 1U << 5U,
  for_help = 1U << 6U,
  for_version = 1U << 7U,
  for_completion = 1U << 8U,
  without_command = 1U << 9U,  ///< before the command's name
  for_stop = 1U << 10U,
  for_hold = 1U << 11U,
};
inline constexpr unsigned takes_lock = for_run | for_acquire;
inline constexpr unsigned waits = takes_lock | for_hold;
inline constexpr unsigned has_lease = for_extend | for_release;
inline constexpr unsigned asks_servers = waits | has_lease | for_status | for_doctor | for_stop;
inline constexpr unsigned everywhere =
    asks_servers | for_help | for_version | for_completion | without_command;

/// Where an option may be set in addition to the command line.
enum class OptionSource {
  line,      ///< nowhere else
  variable,  ///< REDLOCK_NAME too
  anywhere,  ///< REDLOCK_NAME and the configuration files
};

/// The headings under which --help shows options, in this order.
enum class Section { lock, command, servers, tls, output };

enum class OptionKind {
  flag,            ///< no value
  value,           ///< one value; given twice is an error
  optional_value,  ///< one value or none; the next word is the value if it has the form of one
  list,            ///< may be repeated
};

/// The properties of an option that do not depend on its type.
struct OptionSpec {
  std::string_view flags;  ///< all spellings, e.g. "-t,--ttl"; the first long one is its name
  unsigned commands;
  OptionSource source;
  Section section;
  /// Without the default and the choices, which the type provides. --help shows the first clause; a
  /// clause that begins with names of commands, `acquire, hold: written`, is shown for these alone.
  std::string_view help;

  /// Describes the default if it is not a fixed value; the command then determines it.
  std::string (*default_words)() = nullptr;
};

/// One option of any type: a row of option_rows.hpp.
class OptionRow {
 public:
  constexpr OptionRow(const OptionSpec& spec, OptionKind kind)
      : spec_(spec), kind_(kind), name_(long_name_in(spec.flags)) {
    std::string_view prefix = "REDLOCK_";
    std::size_t length = 0;
    for (const char c : prefix) variable_.at(length++) = c;
    for (const char c : name_) {
      variable_.at(length++) = c == '-' ? '_' : static_cast<char>(c - 'a' + 'A');
    }
  }
  OptionRow(const OptionRow&) = delete;
  OptionRow& operator=(const OptionRow&) = delete;

  [[nodiscard]] constexpr const OptionSpec& spec() const noexcept { return spec_; }
  [[nodiscard]] constexpr OptionKind kind() const noexcept { return kind_; }

  /// The long name, as in configuration files: `server-timeout`.
  [[nodiscard]] constexpr std::string_view name() const noexcept { return name_; }

  /// `REDLOCK_SERVER_TIMEOUT`.
  [[nodiscard]] constexpr const char* variable() const noexcept { return variable_.data(); }

  /// `--server-timeout`.
  [[nodiscard]] std::string spelling() const { return "--" + std::string(name_); }

  /// The name of the value in --help: `DUR`, `kill|term|warn`; empty for a flag.
  [[nodiscard]] virtual std::string operand() const = 0;

  /// The value that applies if an optional value is left out; empty for other kinds.
  [[nodiscard]] virtual std::string bare_value() const { return {}; }

  /// Whether `text` may be meant as the value of an optional_value: it is one, or would be if it
  /// were not out of range. False for other kinds.
  [[nodiscard]] virtual bool has_form(const std::string&) const { return false; }

  /// The default; empty if there is none.
  [[nodiscard]] virtual std::string default_text() const = 0;

  /// Why `text` is not a valid value, in one clause that shows it as `shown`; empty if it is valid.
  [[nodiscard]] virtual std::string problem(const std::string& text,
                                            const std::string& shown) const = 0;

 protected:
  constexpr ~OptionRow() = default;

 private:
  static constexpr std::string_view long_name_in(std::string_view flags) noexcept {
    const std::string_view name = flags.substr(flags.find("--") + 2);
    return name.substr(0, name.find(','));
  }

  OptionSpec spec_;
  OptionKind kind_;
  std::string_view name_;
  std::array<char, 48> variable_{};
};

/// All spellings of an option.
std::vector<std::string_view> spellings_of(const OptionRow& option);

/// An option as messages name it if `typed` is its spelling on the command line: `--wait`, also for
/// -w; an alias with it: `--timeout (--wait)`.
std::string shown_name(const OptionRow& option, std::string_view typed);

/// The types of values follow. Each has a Value, its name in --help (operand), the spelling of a
/// value (text) and a parser (read), which returns the value, or one clause that explains why
/// `text` is invalid and shows it as `shown`.
template <class Value>
using ReadValue = Result<Value, std::string>;

struct FlagType {
  using Value = bool;
  static constexpr OptionKind kind = OptionKind::flag;
  [[nodiscard]] std::string operand() const { return {}; }
  [[nodiscard]] std::string text(bool value) const { return value ? "true" : "false"; }
  [[nodiscard]] ReadValue<bool> read(const std::string& text, const std::string& shown) const;
};

/// A flag that may be repeated, and counts its occurrences.
struct CounterType {
  using Value = unsigned;
  static constexpr OptionKind kind = OptionKind::flag;
  [[nodiscard]] std::string operand() const { return {}; }
  [[nodiscard]] std::string text(unsigned value) const { return std::to_string(value); }
  [[nodiscard]] ReadValue<unsigned> read(const std::string& text, const std::string& shown) const;
};

/// Text. One that is longer than `max_bytes` is shortened, not refused, because only people read
/// it.
struct TextType {
  using Value = std::string;
  static constexpr OptionKind kind = OptionKind::value;
  std::string_view shown_as = "TEXT";
  std::size_t max_bytes = std::numeric_limits<std::size_t>::max();
  [[nodiscard]] std::string operand() const { return std::string(shown_as); }
  [[nodiscard]] std::string text(std::string value) const { return value; }
  [[nodiscard]] ReadValue<std::string> read(const std::string& text,
                                            const std::string& shown) const;
};

/// Any number of texts. Every text is valid here; the code that uses the option checks it.
struct ListType {
  using Value = std::vector<std::string>;
  static constexpr OptionKind kind = OptionKind::list;
  std::string_view shown_as;
  [[nodiscard]] std::string operand() const { return std::string(shown_as); }
  [[nodiscard]] ReadValue<Value> read(const std::string& text, const std::string&) const {
    return Value{text};
  }
};

struct DurationType {
  using Value = Duration;
  static constexpr OptionKind kind = OptionKind::value;
  Duration min = Duration::zero();
  Duration max = infinite_duration;
  bool may_be_infinite = false;
  [[nodiscard]] std::string operand() const { return "DUR"; }
  [[nodiscard]] std::string text(Duration value) const;
  [[nodiscard]] ReadValue<Duration> read(const std::string& text, const std::string& shown) const;
};

/// A duration that may be left out.
struct OptionalDurationType : DurationType {
  static constexpr OptionKind kind = OptionKind::optional_value;
  Duration bare{};
  [[nodiscard]] std::string operand() const { return "[DUR]"; }
  [[nodiscard]] static bool has_form(const std::string& text);
};

struct NumberType {
  using Value = std::uint64_t;
  static constexpr OptionKind kind = OptionKind::value;
  std::uint64_t min;
  std::uint64_t max;
  std::string_view shown_as = "N";
  std::string_view below_min = "";  ///< what to use instead of a smaller number
  [[nodiscard]] std::string operand() const { return std::string(shown_as); }
  [[nodiscard]] std::string text(std::uint64_t value) const { return std::to_string(value); }
  [[nodiscard]] ReadValue<std::uint64_t> read(const std::string& text,
                                              const std::string& shown) const;
};

/// A number that may be left out.
struct OptionalNumberType : NumberType {
  static constexpr OptionKind kind = OptionKind::optional_value;
  std::uint64_t bare;
  [[nodiscard]] std::string operand() const { return "[N]"; }
  [[nodiscard]] static bool has_form(const std::string& text);
};

/// The slots of a lock: how many there are, or their names, separated by commas.
struct Pool {
  std::size_t size = 0;
  std::vector<std::string> names{};  ///< empty: the slots have numbers
};

struct PoolType {
  using Value = Pool;
  static constexpr OptionKind kind = OptionKind::value;
  [[nodiscard]] std::string operand() const { return "SLOTS"; }
  [[nodiscard]] ReadValue<Value> read(const std::string& text, const std::string& shown) const;
};

/// One slot of a lock, by number or name.
struct SlotType {
  using Value = std::string;
  static constexpr OptionKind kind = OptionKind::value;
  [[nodiscard]] std::string operand() const { return "SLOT"; }
  [[nodiscard]] ReadValue<Value> read(const std::string& text, const std::string& shown) const;
};

/// Exit statuses (0 to 255), separated by commas.
struct StatusesType {
  using Value = std::vector<int>;
  static constexpr OptionKind kind = OptionKind::value;
  [[nodiscard]] std::string operand() const { return "N,N"; }
  [[nodiscard]] ReadValue<Value> read(const std::string& text, const std::string& shown) const;
};

struct SignalType {
  using Value = int;
  static constexpr OptionKind kind = OptionKind::value;
  [[nodiscard]] std::string operand() const { return "SIG"; }
  [[nodiscard]] std::string text(int value) const;
  [[nodiscard]] ReadValue<int> read(const std::string& text, const std::string& shown) const;
};

template <class Enum>
struct Choice {
  std::string_view name;
  Enum value;
};

template <class Enum, std::size_t count>
struct ChoiceType {
  using Value = Enum;
  static constexpr OptionKind kind = OptionKind::value;
  std::array<Choice<Enum>, count> choices;

  [[nodiscard]] std::string operand() const {
    std::string names;
    for (const auto& choice : choices) names.append(names.empty() ? "" : "|").append(choice.name);
    return names;
  }
  [[nodiscard]] std::string text(Enum value) const {
    for (const auto& choice : choices) {
      if (choice.value == value) return std::string(choice.name);
    }
    return {};
  }
  [[nodiscard]] ReadValue<Enum> read(const std::string& text, const std::string&) const {
    std::vector<std::string_view> names;
    for (const auto& choice : choices) {
      if (choice.name == text) return choice.value;
      names.push_back(choice.name);
    }
    return unexpected("must be " + one_of(names));
  }
};

/// The common part of options with a value of this type.
template <class Type>
class TypedOption : public OptionRow {
 public:
  constexpr TypedOption(const OptionSpec& spec, Type type)
      : OptionRow(spec, Type::kind), type_(type) {}

  [[nodiscard]] std::string operand() const override { return type_.operand(); }
  [[nodiscard]] std::string bare_value() const override {
    if constexpr (Type::kind == OptionKind::optional_value) return type_.text(type_.bare);
    return {};
  }
  [[nodiscard]] bool has_form(const std::string& text) const override {
    if constexpr (Type::kind == OptionKind::optional_value) return Type::has_form(text);
    return false;
  }
  [[nodiscard]] std::string problem(const std::string& text,
                                    const std::string& shown) const override {
    const auto value = type_.read(text, shown);
    return value ? std::string() : value.error();
  }
  [[nodiscard]] constexpr const Type& type() const noexcept { return type_; }

 protected:
  constexpr ~TypedOption() = default;

 private:
  Type type_;
};

/// An option without a fixed default: it has no value unless it is set.
template <class Type>
class Option final : public TypedOption<Type> {
 public:
  using TypedOption<Type>::TypedOption;

  [[nodiscard]] std::string default_text() const override {
    const auto words = this->spec().default_words;
    return words != nullptr ? words() : std::string();
  }
};

/// An option with a fixed default.
template <class Type>
class DefaultOption final : public TypedOption<Type> {
 public:
  constexpr DefaultOption(const OptionSpec& spec, Type type, typename Type::Value fallback)
      : TypedOption<Type>(spec, type), fallback_(fallback) {}
  constexpr explicit DefaultOption(const OptionSpec& spec, typename Type::Value fallback = {})
      : DefaultOption(spec, Type{}, fallback) {}

  [[nodiscard]] std::string default_text() const override { return this->type().text(fallback_); }
  [[nodiscard]] constexpr typename Type::Value fallback() const noexcept { return fallback_; }

 private:
  typename Type::Value fallback_;
};

using Flag = DefaultOption<FlagType>;
using Counter = DefaultOption<CounterType>;
/// These have no fixed default, because a std::string is not constexpr with every compiler: the
/// code that reads the option supplies it, and default_words describes it.
using Text = Option<TextType>;
using List = Option<ListType>;

}  // namespace redlock::cli
