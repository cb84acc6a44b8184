# Writes one C++ source with all scripts as one text, and its SHA-1:
#   cmake -DPROTOCOL=… -DSCRIPTS=a.lua;b.lua -DUNDO=… -DOUTPUT=… -P EmbedScripts.cmake
# Comment lines, indentation, spaces around assignments and comparisons and behind commas, and the
# names of core/protocol.txt are for readers of the source; they do not travel to the servers. So no
# string in a script may hold such a space.
cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/Protocol.cmake)
load_protocol("${PROTOCOL}")

function(load_script file result)
  file(READ "${file}" text)
  string(REGEX REPLACE "(^|\n)[ \t]+" "\\1" text "${text}")
  string(REGEX REPLACE "(^|\n)--[^\n]*" "\\1" text "${text}")
  string(REGEX REPLACE "[ \t]+--[^\n]*" "" text "${text}")
  string(REGEX REPLACE "\n\n+" "\n" text "${text}")
  string(REGEX MATCHALL "'[^'\n]*'" strings "${text}")
  if("${strings}" MATCHES ", | (=|==|~=|<|<=|>|>=) ")
    message(FATAL_ERROR "${file}: a string has a space that would not be sent")
  endif()
  string(REGEX REPLACE " (=|==|~=|<|<=|>|>=) " "\\1" text "${text}")
  string(REPLACE ", " "," text "${text}")
  string(REGEX REPLACE "^\n" "" text "${text}")
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

# What is a script runs if it is the one that is called; the others are for all that follow.
# No function for each script: a closure that uses thirty locals of the others takes longer to make
# than most scripts to run.
set(text "local script = ARGV[#ARGV]\n")
set(names "")
foreach(file IN LISTS SCRIPTS)
  get_filename_component(name "${file}" NAME_WE)
  string(REGEX REPLACE "_uncontended$" "" name ${name})
  load_script("${file}" body)
  if(name IN_LIST protocol_scripts)
    resolve_protocol(${name} body)
    string(APPEND text "if script == '${name}' then\n${body}end\n")
    list(APPEND names ${name})
  else()
    resolve_protocol("" body)
    string(APPEND text "${body}")
  endif()
endforeach()
list(REMOVE_DUPLICATES names)
set(source "")
foreach(name IN LISTS names)
  string(APPEND source "extern const Script ${name};\nconst Script ${name}{\"${name}\"};\n\n")
endforeach()
string(SHA1 digest "${text}")
load_script("${UNDO}" undo)
resolve_protocol("" undo)
file(WRITE "${OUTPUT}" "// Made from src/store/scripts by cmake/EmbedScripts.cmake.
#include \"store/script.hpp\"

namespace redlock::scripts {

extern const std::string_view text;
const std::string_view text = R\"lua(${text})lua\";

extern const std::string_view undo;
const std::string_view undo = R\"lua(${undo})lua\";

extern const std::string_view sha1;
const std::string_view sha1 = \"${digest}\";

${source}}  // namespace redlock::scripts
")
