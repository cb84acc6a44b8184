#pragma once

#include <string>

namespace redlock::cli {

/// The URL of the CI job that we run in, as its environment names it; empty where we run in none,
/// or it is none to show: with a login, or not of one printable word. Shortened where it is longer
/// than a note may be.
std::string ci_job_url();

}  // namespace redlock::cli
