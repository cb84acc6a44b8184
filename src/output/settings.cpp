#include "output/settings.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "output/one_line.hpp"
#include "support/text.hpp"

namespace redlock::output {

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
  nlohmann::ordered_json json;
  json["command"] = "doctor";
  json["settings"] = nlohmann::ordered_json::array();
  for (const ShownSetting& setting : settings) {
    nlohmann::ordered_json entry{
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
