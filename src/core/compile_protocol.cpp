// A build tool, not part of the program. From core/protocol.txt, which describes itself, it writes
// the names that scripts and program share, as a header; and, with these names and those of
// constants resolved, the scripts as one text:
//   compile-protocol header PROTOCOL OUTPUT
//   compile-protocol scripts PROTOCOL OUTPUT UNDO SCRIPT…
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <regex>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/digest.hpp"

namespace {

using Words = std::vector<std::string>;
/// In the order of the file.
using Lists = std::vector<std::pair<std::string, Words>>;
using Values = std::vector<std::pair<std::string, std::string>>;

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

Words lines_of(const std::string& text) {
  Words lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

Words words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || c == '_';
}

// --- core/protocol.txt ---

struct Protocol {
  Words keys;
  Lists arguments, replies, lines;
  Values words, numbers, times;

  explicit Protocol(const std::string& path);

 private:
  bool take(Words line);
};

/// The words of each statement. A line that is indented continues the one before it.
std::vector<Words> statements_of(const std::string& path) {
  std::vector<Words> statements;
  for (const std::string& line : lines_of(content_of(path))) {
    if (line.empty() || line[0] == '#') continue;
    Words words = words_of(line);
    if (line[0] == ' ' && !statements.empty()) {
      std::ranges::move(words, std::back_inserter(statements.back()));
    } else {
      statements.push_back(std::move(words));
    }
  }
  return statements;
}

Protocol::Protocol(const std::string& path) {
  for (Words& statement : statements_of(path)) {
    const std::string first = statement[0] + " " + (statement.size() > 1 ? statement[1] : "");
    if (!take(std::move(statement))) throw std::runtime_error(path + ": not understood: " + first);
  }
}

bool Protocol::take(Words line) {
  const std::string kind = line[0];
  if (line.size() < 3) return false;
  if (kind == "keys") {
    keys.assign(line.begin() + 1, line.end());
    return true;
  }
  const std::map<std::string, Values*> values{
      {"word", &words}, {"number", &numbers}, {"time", &times}};
  if (const auto found = values.find(kind); found != values.end() && line.size() == 3) {
    found->second->emplace_back(line[1], line[2]);
    return true;
  }
  const std::map<std::string, Lists*> lists{
      {"arguments", &arguments}, {"reply", &replies}, {"line", &lines}};
  const auto found = lists.find(kind);
  if (found == lists.end() || line[1].back() != ':') return false;
  line[1].pop_back();
  found->second->emplace_back(line[1], Words(line.begin() + 2, line.end()));
  return true;
}

// --- Lines of words: `name`, `number#` and `rest...` ---

std::string name_of(const std::string& field) {
  return field.substr(0, field.find_first_of("#."));
}

Words names_of(const Words& fields) {
  Words names;
  std::ranges::transform(fields, std::back_inserter(names), name_of);
  return names;
}

/// The Lua pattern that captures the fields.
std::string pattern_of(const Words& fields) {
  std::string pattern = "'^";
  for (const std::string& field : fields) {
    if (&field != &fields.front()) pattern += ' ';
    pattern += field.ends_with("#") ? "(%d+)" : field.ends_with("...") ? "(.*)" : "(%S+)";
  }
  return pattern + "'";
}

// --- The header ---

void write_positions(std::ostream& out, const Words& names) {
  std::size_t position = 0;
  for (const std::string& name : names)
    out << "inline constexpr std::size_t " << name << " = " << position++ << ";\n";
  out << "inline constexpr std::size_t count = " << position << ";\n";
}

void write_positions(std::ostream& out, const std::string& space, const Lists& lists) {
  out << "\nnamespace " << space << " {\n";
  for (const auto& [name, fields] : lists) {
    out << "namespace " << name << " {\n";
    write_positions(out, names_of(fields));
    out << "}\n";
  }
  out << "}  // namespace " << space << "\n";
}

std::string header_of(const Protocol& protocol) {
  std::ostringstream out;
  out << R"(// Made from core/protocol.txt by core/compile_protocol.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "support/boot_clock.hpp"

namespace redlock::protocol {

)";
  for (const auto& [name, value] : protocol.numbers)
    out << "inline constexpr std::uint64_t " << name << " = " << value << ";\n";
  for (const auto& [name, value] : protocol.times)
    out << "inline constexpr Milliseconds " << name << "{" << value << "};\n";

  out << "\nnamespace key {\n";
  write_positions(out, protocol.keys);
  out << "inline constexpr std::array<std::string_view, count> names{";
  for (const std::string& name : protocol.keys) out << '"' << name << "\", ";
  out << "};\n}  // namespace key\n";

  write_positions(out, "argument", protocol.arguments);
  write_positions(out, "reply", protocol.replies);
  write_positions(out, "line", protocol.lines);

  out << "\nnamespace word {\n";
  for (const auto& [name, value] : protocol.words)
    out << "inline constexpr std::string_view " << name << " = \"" << value << "\";\n";
  out << "}  // namespace word\n\n}  // namespace redlock::protocol\n";
  return out.str();
}

// --- The scripts ---

/// The names of a script, `KEYS.lock`, and what they stand for.
using Names = std::map<std::string, std::string>;

void add_positions(Names& names, const std::string& prefix, const Words& fields,
                   const std::string& before = {}, const std::string& after = {}) {
  for (std::size_t i = 0; i < fields.size(); ++i)
    names[prefix + "." + fields[i]] = before + std::to_string(i + 1) + after;
}

/// Without arguments: ARGV has those of one script.
Names shared_names(const Protocol& protocol) {
  Names names;
  add_positions(names, "KEYS", protocol.keys, "KEYS[", "]");
  for (const auto& [reply, fields] : protocol.replies)
    add_positions(names, "REPLY." + reply, fields);
  for (const auto& [line, fields] : protocol.lines) {
    add_positions(names, "LINE." + line, names_of(fields));
    names["LINE." + line] = pattern_of(fields);
  }
  for (const auto& [name, value] : protocol.words) names["WORD." + name] = "'" + value + "'";
  for (const auto& [name, value] : protocol.numbers) names["NUMBER." + name] = value;
  for (const auto& [name, value] : protocol.times) names["TIME." + name] = value;
  return names;
}

/// The end of the name that begins at `at`: words with a dot between two of them.
std::size_t end_of_name(const std::string& text, std::size_t at) {
  while (at < text.size() &&
         (is_name_character(text[at]) ||
          (text[at] == '.' && at + 1 < text.size() && is_name_character(text[at + 1]))))
    ++at;
  return at;
}

void resolve(std::string& text, const Names& names, const std::string& path) {
  constexpr std::array<std::string_view, 7> prefixes{"KEYS.", "ARGV.",   "REPLY.", "LINE.",
                                                     "WORD.", "NUMBER.", "TIME."};
  for (const std::string_view prefix : prefixes) {
    for (auto at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at)) {
      const std::size_t end = end_of_name(text, at + prefix.size());
      const auto found = names.find(text.substr(at, end - at));
      if (found == names.end()) {
        throw std::runtime_error(path + ": core/protocol.txt has no " + text.substr(at, end - at));
      }
      text.replace(at, end - at, found->second);
      at += found->second.size();
    }
  }
}

constexpr std::array<std::string_view, 7> operators{"=", "==", "~=", "<", "<=", ">", ">="};

/// A line without comment, indentation, and the spaces around operators and behind commas, which
/// are for readers of the source and do not travel to the servers.
std::string compact(std::string line, const std::string& path) {
  line.erase(0, line.find_first_not_of(" \t"));
  if (line.starts_with("--")) return {};
  if (const auto comment = line.find(" --"); comment != std::string::npos) {
    line.erase(comment);
    line.erase(line.find_last_not_of(" \t") + 1);
  }
  const std::string before = line;
  for (const std::string_view sign : operators)
    replace_all(line, " " + std::string(sign) + " ", sign);
  replace_all(line, ", ", ",");
  // A string, every second part between quotes, must not have lost any.
  const auto strings = [](const std::string& code) {
    std::string all;
    bool inside = false;
    for (const char c : code) {
      if (c == '\'') inside = !inside;
      if (inside) all += c;
    }
    return all;
  };
  if (strings(before) != strings(line))
    throw std::runtime_error(path + ": a string has a space that would not be sent: " + before);
  return line;
}

/// The text without the lines that define constants, such as `local NO_SLOT=-1`, and with their
/// values in place of their names. So constants are none of the 200 locals that Lua knows at a
/// time.
std::string inline_constants(const std::string& text) {
  static const std::regex definition("local ([A-Z_]+)=(-?[0-9]+|'[^']*')");
  static const std::regex token("'[^']*'|\\w+|.");
  std::map<std::string, std::string> values;
  std::string inlined;
  for (const std::string& line : lines_of(text)) {
    if (std::smatch constant; std::regex_match(line, constant, definition)) {
      values[constant[1]] = constant[2];
      continue;
    }
    for (std::sregex_iterator at(line.begin(), line.end(), token), end; at != end; ++at) {
      const auto value = values.find(at->str());
      inlined += value == values.end() ? at->str() : value->second;
    }
    inlined += '\n';
  }
  return inlined;
}

std::string load_script(const std::string& path) {
  std::string text;
  for (const std::string& line : lines_of(content_of(path))) {
    if (const std::string code = compact(line, path); !code.empty()) text += code + "\n";
  }
  return text;
}

/// `release_uncontended.lua` is a part of the script release.
std::string script_of(const std::string& path) {
  std::string name = std::filesystem::path(path).stem();
  constexpr std::string_view part = "_uncontended";
  if (name.ends_with(part)) name.erase(name.size() - part.size());
  return name;
}

/// What is a script runs if it is the one that is called; the others are for all that follow. No
/// function for each script: a closure that uses thirty locals of the others takes longer to make
/// than most scripts to run.
std::string source_of(const Protocol& protocol, const std::string& undo_path,
                      std::span<const std::string> paths) {
  const Names shared = shared_names(protocol);
  std::string text = "local script = ARGV[#ARGV]\n";
  Words scripts;
  for (const std::string& path : paths) {
    const std::string name = script_of(path);
    std::string body = load_script(path);
    const auto arguments = std::ranges::find(protocol.arguments, name, &Lists::value_type::first);
    Names names = shared;
    if (arguments == protocol.arguments.end()) {
      resolve(body, names, path);
      text += body;
      continue;
    }
    add_positions(names, "ARGV", arguments->second, "ARGV[", "]");
    resolve(body, names, path);
    text.append("if script == '").append(name).append("' then\n").append(body).append("end\n");
    if (std::ranges::find(scripts, name) == scripts.end()) scripts.push_back(name);
  }
  text = inline_constants(text);
  std::string undo = load_script(undo_path);
  resolve(undo, shared, undo_path);

  std::ostringstream out;
  out << "// Made from src/store/scripts by core/compile_protocol.cpp.\n"
         "#include \"store/script.hpp\"\n\nnamespace redlock::scripts {\n";
  const auto write = [&out](std::string_view name, const std::string& literal) {
    out << "\nextern const std::string_view " << name << ";\nconst std::string_view " << name
        << " = " << literal << ";\n";
  };
  write("text", "R\"lua(" + text + ")lua\"");
  write("undo", "R\"lua(" + undo + ")lua\"");
  write("sha1", "\"" + redlock::sha1_hex(text) + "\"");
  for (const std::string& name : scripts)
    out << "\nextern const Script " << name << ";\nconst Script " << name << "{\"" << name
        << "\"};\n";
  out << "\n}  // namespace redlock::scripts\n";
  return out.str();
}

/// Nearly everything includes the header, so it stays as it is when only a comment has changed.
void write_if_changed(const std::string& path, const std::string& text) {
  if (std::filesystem::exists(path) && content_of(path) == text) return;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream out(path);
  out << text;
  if (!out.flush()) throw std::runtime_error(path + ": cannot be written");
}

void compile(const Words& words) {
  const bool is_header = words.size() == 3 && words[0] == "header";
  const bool is_scripts = words.size() > 4 && words[0] == "scripts";
  if (!is_header && !is_scripts) throw std::runtime_error("see the head of its source");
  const Protocol protocol(words[1]);
  write_if_changed(words[2], is_header
                                 ? header_of(protocol)
                                 : source_of(protocol, words[3], std::span(words).subspan(4)));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    compile(Words(argv + 1, argv + argc));
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::cerr << "compile-protocol: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
}
