#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/vote.hpp"

namespace redlock::output {

/// The parts that all texts for people share: keys, people, times. The functions are pure, except
/// that some read the wall clock. Text from servers, keys and records is returned escaped for the
/// terminal.

/// The key, escaped for the terminal.
std::string key_text(const Resource& resource);

/// Several keys, separated by commas.
std::string keys_text(const std::vector<Resource>& resources);

/// The option that names the key, as a user would type it: `-k demo`, or `--key=-n` for a key that
/// looks like an option.
std::string key_option(const Resource& resource);

/// ` --slot phone2`, to follow the key; empty without a slot.
std::string slot_option(const std::optional<std::string>& slot);

/// `alice@web1`; `?` for what is not known.
std::string person_text(const std::string& user, const std::string& host);

/// `alice@web1 (run pid 4711: deploy.sh), "note"`. The word before `pid` identifies the process:
/// signalling a `run` ends its command, a detached holder is a process without one.
std::string owner_text(const Owner& owner);

/// `alice@db2 (backup), "release 1.2"`: the former holder of a lock. Without the pid: the process
/// has ended, and its pid may belong to another one.
std::string former_owner_text(const Owner& owner);

/// `, priority 5`; empty for 0, that of most waiters.
std::string priority_text(unsigned priority);

/// `1st`, `2nd`, `3rd`, `4th`, `11th`, `21st`.
std::string ordinal(std::size_t number);

/// A wall-clock time as local time: `08:12:01`, with the date if it is not today:
/// `2026-11-21 08:12:01`.
std::string moment_text(Milliseconds moment, Milliseconds now);

/// The end of a hold, as local time: `09:00`, with the date if it is not today.
std::string end_text(Duration remaining);

}  // namespace redlock::output
