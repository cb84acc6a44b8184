#pragma once

#include <string>

namespace redlock::cli {

/// The URL of the CI job that runs this process, from its environment. Empty outside of CI, and if
/// the URL is unfit to be shown: it contains a login, or is not a single printable word. Shortened
/// to the maximum length of a note.
std::string ci_job_url();

}  // namespace redlock::cli
