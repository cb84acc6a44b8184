#include "cli/ci_job.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "store/owner_record.hpp"
#include "support/environment.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

/// GitHub, Forgejo and Gitea have no variable for the URL, but for its parts.
std::string github_url() {
  const std::string server = environment_value("GITHUB_SERVER_URL");
  const std::string repository = environment_value("GITHUB_REPOSITORY");
  const std::string run = environment_value("GITHUB_RUN_ID");
  if (server.empty() || repository.empty() || run.empty()) return {};
  return server + "/" + repository + "/actions/runs/" + run;
}

std::string buildkite_url() {
  const std::string build = environment_value("BUILDKITE_BUILD_URL");
  const std::string job = environment_value("BUILDKITE_JOB_ID");
  return build.empty() || job.empty() ? build : build + "#" + job;
}

std::string azure_url() {
  const std::string collection = environment_value("SYSTEM_COLLECTIONURI");
  const std::string project = environment_value("SYSTEM_TEAMPROJECTID");
  const std::string build = environment_value("BUILD_BUILDID");
  if (collection.empty() || project.empty() || build.empty()) return {};
  return collection + (collection.ends_with('/') ? "" : "/") + project +
         "/_build/results?buildId=" + build;
}

/// BUILD_URL counts only beside JENKINS_URL: its name alone is too general.
std::string jenkins_url() {
  return environment_value("JENKINS_URL").empty() ? std::string() : environment_value("BUILD_URL");
}

/// Whether the URL may be shown to everyone who can see the lock.
bool is_presentable(std::string_view url) {
  std::string_view rest;
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (url.starts_with(scheme)) rest = url.substr(scheme.size());
  }
  const std::string_view host = rest.substr(0, rest.find_first_of("/?#"));
  const bool is_one_word = std::ranges::all_of(url, [](char c) { return c > ' ' && c < '\x7f'; });
  return !host.empty() && host.find('@') == std::string_view::npos && is_one_word;
}

}  // namespace

std::string ci_job_url() {
  const std::array candidates{
      github_url(),
      environment_value("CI_JOB_URL"),  // GitLab
      buildkite_url(),
      environment_value("CIRCLE_BUILD_URL"),
      azure_url(),
      environment_value("DRONE_BUILD_LINK"),
      environment_value("CI_PIPELINE_URL"),  // Woodpecker, and also GitLab
      jenkins_url(),
  };
  const auto* const found =
      std::find_if(candidates.begin(), candidates.end(),
                   [](const std::string& url) { return is_presentable(url); });
  return found == candidates.end() ? std::string() : shortened(*found, max_owner_field);
}

}  // namespace redlock::cli
