#include "output/fitness.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "support/duration.hpp"
#include "support/text.hpp"

namespace redlock::output {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t columns = 8;
using Row = std::array<std::string, columns>;

std::string or_unknown(const std::string& text) {
  return text.empty() ? "?" : escape_for_terminal(text);
}

double milliseconds(Duration span) {
  // Microseconds are more than anybody needs, and stay readable.
  return static_cast<double>(std::chrono::duration_cast<std::chrono::microseconds>(span).count()) / 1000;
}

std::string persistence_of(const ServerReport& report) {
  if (!report.append_only) return "?";
  if (*report.append_only) return "aof " + or_unknown(report.append_fsync);
  if (!report.save) return "no aof";
  return report.save->empty() ? "none" : "rdb";
}

Row row_of(const std::string& name, const Checkup& checkup, bool votes) {
  if (checkup.fault) return {escape_for_terminal(name), "no", "-", "-", "-", "-", "-", "-"};
  const ServerReport& report = checkup.report;
  if (report.is_ours) return {escape_for_terminal(name), votes ? "yes" : "no", "-", "-", "-", "-", "-", "-"};
  return {escape_for_terminal(name),
          votes ? "yes" : "no",
          report.latency ? fmt::format("{:.1f}ms", milliseconds(*report.latency)) : "?",
          or_unknown(report.version.empty() ? "" : report.software + " " + report.version),
          or_unknown(report.role),
          report.facts.up ? format_duration(*report.facts.up) : "?",
          persistence_of(report),
          or_unknown(report.eviction_policy)};
}

std::string table(const std::vector<Row>& rows) {
  std::array<std::size_t, columns> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < columns; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < columns; ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string_view word_of(Grade grade) {
  switch (grade) {
    case Grade::good:
      return "good";
    case Grade::unknown:
      return "unknown";
    case Grade::warning:
      return "warning";
    case Grade::bad:
      break;
  }
  return "bad";
}

std::string_view result_of(const Fitness& fitness) {
  if (!fitness.has_quorum()) return "no_quorum";
  return fitness.worst == Grade::good ? "fit" : "warnings";
}

std::string sum_of(const Fitness& fitness) {
  const std::string votes = fmt::format("{} of {} servers can vote now, {} must", fitness.voting, fitness.servers.size(), fitness.needed);
  if (!fitness.has_quorum()) return "no quorum: " + votes;
  return fmt::format("{}: {}", fitness.worst == Grade::good ? "fit" : "fit, with warnings", votes);
}

Json server_json(const std::string& name, const Checkup& checkup, const ServerFitness& fitness) {
  const ServerReport& report = checkup.report;
  const auto text = [](const std::string& value) { return value.empty() ? Json(nullptr) : Json(to_valid_utf8(value)); };
  Json json;
  json["server"] = to_valid_utf8(name);
  json["votes"] = fitness.votes;
  json["reachable"] = !checkup.fault;
  json["latency_ms"] = report.latency ? Json(milliseconds(*report.latency)) : Json(nullptr);
  json["software"] = report.version.empty() ? Json(nullptr) : text(report.software);
  json["version"] = text(report.version);
  json["role"] = text(report.role);
  json["run_id"] = text(report.facts.run_id);
  json["up_s"] = report.facts.up ? Json(std::chrono::duration_cast<std::chrono::seconds>(*report.facts.up).count()) : Json(nullptr);
  json["append_only"] = report.append_only ? Json(*report.append_only) : Json(nullptr);
  json["append_fsync"] = text(report.append_fsync);
  json["save"] = report.save ? Json(to_valid_utf8(*report.save)) : Json(nullptr);
  json["eviction_policy"] = text(report.eviction_policy);
  json["clock_offset_ms"] = report.clock_offset ? Json(milliseconds(*report.clock_offset)) : Json(nullptr);
  json["findings"] = Json::array();
  for (const Finding& finding : fitness.findings) {
    json["findings"].push_back({{"grade", word_of(finding.grade)}, {"check", finding.check}, {"text", to_valid_utf8(finding.text)}});
  }
  return json;
}

}  // namespace

std::string fitness_text(const std::vector<std::string>& names, const std::vector<Checkup>& checkups, const Fitness& fitness) {
  std::vector<Row> rows{{"SERVER", "VOTES", "ANSWERS", "SOFTWARE", "ROLE", "UP", "KEEPS", "EVICTS"}};
  for (std::size_t i = 0; i < names.size(); ++i) rows.push_back(row_of(names[i], checkups[i], fitness.servers[i].votes));
  std::string text = table(rows);
  for (const Grade grade : {Grade::bad, Grade::warning, Grade::unknown}) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      for (const Finding& finding : fitness.servers[i].findings) {
        if (finding.grade == grade) text += fmt::format("{}: {}: {}\n", word_of(grade), escape_for_terminal(names[i]), finding.text);
      }
    }
  }
  return text + sum_of(fitness) + "\n";
}

std::string fitness_json(const std::vector<std::string>& names, const std::vector<Checkup>& checkups, const Fitness& fitness,
                         int exit_code) {
  Json json;
  json["command"] = "doctor";
  json["result"] = result_of(fitness);
  json["exit_code"] = exit_code;
  json["voting"] = fitness.voting;
  json["needed"] = fitness.needed;
  json["servers"] = Json::array();
  for (std::size_t i = 0; i < names.size(); ++i) json["servers"].push_back(server_json(names[i], checkups[i], fitness.servers[i]));
  return json.dump();
}

}  // namespace redlock::output
