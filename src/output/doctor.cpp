#include "output/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "output/json_parts.hpp"
#include "output/one_line.hpp"
#include "output/table.hpp"
#include "support/text.hpp"

namespace redlock::output {
namespace {

using Row = std::vector<std::string>;

double fractional_ms(Duration span) {
  // Microseconds are precise enough and stay readable.
  return static_cast<double>(std::chrono::duration_cast<std::chrono::microseconds>(span).count()) /
         1000;
}

/// The distinct names of the elements of all servers, in order of first appearance.
template <class Element>
std::vector<std::string> names_in(const SetDiagnosis& set,
                                  std::vector<Element> Diagnosis::*elements,
                                  std::string Element::*name) {
  std::vector<std::string> names;
  for (const Diagnosis& server : set.servers) {
    for (const Element& element : server.*elements) {
      if (std::ranges::find(names, element.*name) == names.end()) names.push_back(element.*name);
    }
  }
  return names;
}

Row row_of(const std::string& name, const Diagnosis& server,
           const std::vector<std::string>& headings) {
  Row row{escape_for_terminal(name), server.votes ? "yes" : "no",
          server.latency ? fmt::format("{:.1f}ms", fractional_ms(*server.latency)) : "-"};
  for (const std::string& heading : headings) {
    const auto cell = std::ranges::find(server.cells, heading, &Cell::heading);
    row.push_back(cell == server.cells.end() ? "-" : escape_for_terminal(cell->text));
  }
  return row;
}

std::string_view word_of(Level level) {
  switch (level) {
    case Level::good:
      return "good";
    case Level::unknown:
      return "unknown";
    case Level::warning:
      return "warning";
    case Level::bad:
      break;
  }
  return "bad";
}

std::string text_of(const Finding& finding) {
  return finding.advice.empty() ? finding.text : finding.text + ": " + finding.advice;
}

std::string_view result_of(const SetDiagnosis& set) {
  if (set.has_duplicate) return "config";
  if (!set.has_quorum()) return "no_quorum";
  if (!set.is_fit()) return "warnings";
  return set.unknown == 0 ? "fit" : "unknown";
}

std::string summary_of(const SetDiagnosis& set) {
  const std::string votes = fmt::format("{} of {} servers can vote now, {} needed", set.voting,
                                        set.servers.size(), set.needed);
  if (set.has_duplicate) {
    return "refused: two of the servers are the same; name each server once; " + votes;
  }
  if (!set.has_quorum()) return "no quorum: " + votes;
  if (set.is_fit() && set.unknown > 0) {
    return fmt::format("fit as far as can be seen, {} {} unknown: {}", set.unknown,
                       set.unknown == 1 ? "check" : "checks", votes);
  }
  return fmt::format("{}: {}", set.is_fit() ? "fit" : "fit, with warnings", votes);
}

struct JsonOf {
  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(bool value) const { return value; }
  Json operator()(std::int64_t value) const { return value; }
  Json operator()(const std::string& value) const { return to_valid_utf8(value); }
};

Json milliseconds_json(const std::optional<Duration>& span) {
  return span ? Json(fractional_ms(*span)) : Json(nullptr);
}

Json server_json(const std::string& name, const Diagnosis& server,
                 const std::vector<std::string>& facts) {
  Json json;
  json["server"] = to_valid_utf8(name);
  json["votes"] = server.votes;
  json["reachable"] = server.reachable;
  json["latency_ms"] = milliseconds_json(server.latency);
  for (const std::string& fact : facts) {
    const auto reported = std::ranges::find(server.facts, fact, &Fact::name);
    json[fact] =
        reported == server.facts.end() ? Json(nullptr) : std::visit(JsonOf(), reported->value);
  }
  json["clock_offset_ms"] = milliseconds_json(server.clock_offset);
  json["findings"] = Json::array();
  for (const Finding& finding : server.findings) {
    json["findings"].push_back({{"grade", word_of(finding.level)},
                                {"check", finding.probe},
                                {"text", to_valid_utf8(text_of(finding))}});
  }
  return json;
}

}  // namespace

std::string diagnosis_text(const SetDiagnosis& set, std::size_t width) {
  const std::vector<std::string> headings = names_in(set, &Diagnosis::cells, &Cell::heading);
  Row all_headings{"SERVER", "VOTES", "ANSWERS"};
  all_headings.insert(all_headings.end(), headings.begin(), headings.end());
  Table table(std::move(all_headings));
  for (std::size_t i = 0; i < set.servers.size(); ++i) {
    table.add(row_of(set.names[i], set.servers[i], headings));
  }
  std::string text;
  const Table::Layout layout = table.layout(width);
  for (const std::string& line : table.headings(layout)) text += line + "\n";
  for (std::size_t i = 0; i < table.size(); ++i) {
    for (const std::string& line : table.row(i, layout)) text += line + "\n";
  }

  for (const Level level : {Level::bad, Level::warning, Level::unknown}) {
    for (std::size_t i = 0; i < set.servers.size(); ++i) {
      for (const Finding& finding : set.servers[i].findings) {
        if (finding.level != level) continue;
        text += fmt::format("{}: {}: {}\n", word_of(level), escape_for_terminal(set.names[i]),
                            text_of(finding));
      }
    }
  }
  return text + summary_of(set) + "\n";
}

std::string diagnosis_json(const SetDiagnosis& set, int exit_code) {
  const std::vector<std::string> facts = names_in(set, &Diagnosis::facts, &Fact::name);
  Json json;
  json["command"] = "doctor";
  json["result"] = result_of(set);
  json["exit_code"] = exit_code;
  json["voting"] = set.voting;
  json["needed"] = set.needed;
  json["servers"] = Json::array();
  for (std::size_t i = 0; i < set.servers.size(); ++i) {
    json["servers"].push_back(server_json(set.names[i], set.servers[i], facts));
  }
  return one_line(json);
}

std::string settings_text(const std::vector<ShownSetting>& settings) {
  std::string text;
  for (const ShownSetting& setting : settings) {
    std::string shown = " (not set)";
    if (setting.value) {
      shown =
          fmt::format(" = {} ({})", escape_for_terminal(setting.value->text), setting.value->where);
    } else if (!setting.fallback.empty()) {
      shown = fmt::format(" = {} (default)", setting.fallback);
    }
    text += fmt::format("{}{}\n", setting.name, shown);
  }
  return text;
}

std::string settings_json(const std::vector<ShownSetting>& settings) {
  Json json;
  json["command"] = "doctor";
  json["settings"] = Json::array();
  for (const ShownSetting& setting : settings) {
    Json entry{
        {"name", setting.name}, {"value", nullptr}, {"where", nullptr}, {"default", nullptr}};
    if (setting.value) {
      entry["value"] = to_valid_utf8(setting.value->text);
      entry["where"] = to_valid_utf8(setting.value->where);
    }
    if (!setting.fallback.empty()) entry["default"] = setting.fallback;
    json["settings"].push_back(std::move(entry));
  }
  return one_line(json);
}

}  // namespace redlock::output
