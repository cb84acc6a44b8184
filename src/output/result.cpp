#include "output/result.hpp"

#include <algorithm>
#include <array>

namespace redlock::output {
namespace {

struct Meaning {
  Result result;
  std::string_view word;
  ExitCode code;
};

constexpr std::array meanings{
    Meaning{Result::acquired, "acquired", ExitCode::done},
    Meaning{Result::extended, "extended", ExitCode::done},
    Meaning{Result::released, "released", ExitCode::done},
    Meaning{Result::unreleased, "unreleased", ExitCode::done},
    Meaning{Result::fresh, "fresh", ExitCode::done},
    Meaning{Result::inherited, "inherited", ExitCode::done},
    Meaning{Result::broken, "broken", ExitCode::done},
    Meaning{Result::free, "free", ExitCode::done},
    Meaning{Result::interrupted, "interrupted", ExitCode::internal},
    Meaning{Result::usage, "usage", ExitCode::usage},
    Meaning{Result::unavailable, "unavailable", ExitCode::unavailable},
    Meaning{Result::internal, "internal", ExitCode::internal},
    Meaning{Result::os_error, "os_error", ExitCode::os_error},
    Meaning{Result::busy, "busy", ExitCode::busy},
    Meaning{Result::superseded, "superseded", ExitCode::busy},
    Meaning{Result::denied, "denied", ExitCode::denied},
    Meaning{Result::config, "config", ExitCode::config},
    Meaning{Result::lost, "lost", ExitCode::lost},
    Meaning{Result::unconfirmed, "unconfirmed", ExitCode::unconfirmed},
    Meaning{Result::timed_out, "timed_out", ExitCode::timed_out},
    Meaning{Result::not_started, "not_started", ExitCode::not_executable},
    Meaning{Result::not_started, "not_started", ExitCode::not_found},
};

const Meaning& meaning_of(Result result) {
  return *std::find_if(meanings.begin(), meanings.end(),
                       [=](const Meaning& meaning) { return meaning.result == result; });
}

}  // namespace

std::string_view word_of(Result result) {
  return meaning_of(result).word;
}

ExitCode code_of(Result result) {
  return meaning_of(result).code;
}

Result result_of(ExitCode code) {
  const auto* found = std::find_if(meanings.begin(), meanings.end(), [=](const Meaning& meaning) {
    return meaning.code == code && code != ExitCode::done && meaning.result != Result::interrupted;
  });
  return found == meanings.end() ? Result::internal : found->result;
}

}  // namespace redlock::output
