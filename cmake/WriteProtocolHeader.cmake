# Writes what C++ knows of core/protocol.txt:
# cmake -DPROTOCOL=… -DOUTPUT=… -P WriteProtocolHeader.cmake
include(${CMAKE_CURRENT_LIST_DIR}/Protocol.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/WriteIfChanged.cmake)
load_protocol("${PROTOCOL}")

function(write_positions names result)
  set(constants "")
  set(position 0)
  foreach(name IN LISTS ${names} ITEMS count)
    string(APPEND constants "inline constexpr std::size_t ${name} = ${position};\n")
    math(EXPR position "${position} + 1")
  endforeach()
  set(${result} "${constants}" PARENT_SCOPE)
endfunction()

set(source "")
foreach(name IN LISTS protocol_numbers)
  string(APPEND source "inline constexpr std::uint64_t ${name} = ${protocol_number_${name}};\n")
endforeach()
foreach(name IN LISTS protocol_times)
  string(APPEND source "inline constexpr Milliseconds ${name}{${protocol_time_${name}}};\n")
endforeach()

write_positions(protocol_keys positions)
list(JOIN protocol_keys "\", \"" names)
string(APPEND source "\nnamespace key {\n${positions}"
  "inline constexpr std::array<std::string_view, count> names{\"${names}\"};\n"
  "}  // namespace key\n")

string(APPEND source "\nnamespace argument {\n")
foreach(script IN LISTS protocol_scripts)
  write_positions(protocol_arguments_${script} positions)
  string(APPEND source "namespace ${script} {\n${positions}}\n")
endforeach()
string(APPEND source "}  // namespace argument\n\nnamespace reply {\n")
foreach(reply IN LISTS protocol_replies)
  write_positions(protocol_reply_${reply} positions)
  string(APPEND source "namespace ${reply} {\n${positions}}\n")
endforeach()
string(APPEND source "}  // namespace reply\n\nnamespace line {\n")
foreach(line IN LISTS protocol_texts)
  write_positions(protocol_line_${line} positions)
  string(APPEND source "namespace ${line} {\n${positions}}\n")
endforeach()
string(APPEND source "}  // namespace line\n\nnamespace word {\n")
foreach(name IN LISTS protocol_words)
  string(APPEND source
    "inline constexpr std::string_view ${name} = \"${protocol_word_${name}}\";\n")
endforeach()
string(APPEND source "}  // namespace word\n")

set(header "// Made from core/protocol.txt by cmake/WriteProtocolHeader.cmake.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include \"support/boot_clock.hpp\"

namespace redlock::protocol {

${source}
}  // namespace redlock::protocol
")

# Nearly everything includes it, so it stays as it is when only a comment has changed.
write_if_changed("${OUTPUT}" "${header}")
