# Writes one C++ source with all scripts as one text, and its SHA-1, in the namespace
# redlock::scripts or another one:
#   cmake -DPROTOCOL=… -DSCRIPTS=a.lua;b.lua -DUNDO=… -DOUTPUT=… [-DNAMESPACE=…]
#         [-DFUNCTIONS=once] -P EmbedScripts.cmake
# FUNCTIONS=once: a text that makes all functions once and returns a function, which does each time
# what the text of the servers does. Servers have no place to keep functions; the simulation has.
# Comment lines, indentation and the names of core/protocol.txt are for readers of the source; they
# do not travel to the servers.
cmake_minimum_required(VERSION 3.22)
include(${CMAKE_CURRENT_LIST_DIR}/Protocol.cmake)
load_protocol("${PROTOCOL}")
if(NOT NAMESPACE)
  set(NAMESPACE redlock::scripts)
endif()

function(load_script file result)
  file(READ "${file}" text)
  string(REGEX REPLACE "(^|\n)[ \t]+" "\\1" text "${text}")
  string(REGEX REPLACE "(^|\n)--[^\n]*" "\\1" text "${text}")
  string(REGEX REPLACE "[ \t]+--[^\n]*" "" text "${text}")
  string(REGEX REPLACE "\n\n+" "\n" text "${text}")
  string(REGEX REPLACE "^\n" "" text "${text}")
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

# What a file has outside of functions: constants, in capitals, and variables, which a script sets
# while it runs. Appends the variables to the list `result`.
function(find_variables file result)
  file(STRINGS "${file}" lines REGEX "^local ")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE " +--.*$" "" line "${line}")
    if(line MATCHES "^local ([a-z0-9_, ]+)$")
      list(APPEND ${result} "${CMAKE_MATCH_1}")
    elseif(line MATCHES "KEYS|ARGV" OR
           NOT line MATCHES "^local function |^local [A-Z0-9_]+ = [^{(]+$")
      message(FATAL_ERROR "${file}: neither a constant, nor a variable that begins as nil, so that "
        "it can begin anew: ${line}")
    endif()
  endforeach()
  set(${result} "${${result}}" PARENT_SCOPE)
endfunction()

# What is a script runs if it is the one that is called; the others are for all that follow.
# No function for each script: a closure that uses thirty locals of the others takes longer to make
# than most scripts to run.
set(text "local script = ARGV[#ARGV]\n")
set(names "")
set(functions "")
set(variables "")
foreach(file IN LISTS SCRIPTS)
  get_filename_component(name "${file}" NAME_WE)
  string(REGEX REPLACE "_uncontended$" "" name ${name})
  load_script("${file}" body)
  if(name IN_LIST protocol_scripts)
    resolve_protocol(${name} body)
    string(APPEND text "if script == '${name}' then\n${body}end\n")
    string(APPEND script_${name} "do\n${body}end\n")
    list(APPEND names ${name})
  else()
    resolve_protocol("" body)
    string(APPEND text "${body}")
    string(APPEND functions "${body}")
    find_variables("${file}" variables)
  endif()
endforeach()
list(REMOVE_DUPLICATES names)
if(FUNCTIONS STREQUAL "once")
  set(text "${functions}local scripts = {}\n")
  foreach(name IN LISTS names)
    string(APPEND text "scripts.${name} = function()\n${script_${name}}end\n")
  endforeach()
  list(JOIN variables ", " variables)
  string(APPEND text "return function()\n${variables} = nil\nlocal script = scripts[ARGV[#ARGV]]\n"
    "if script then return script() end\nend\n")
endif()
set(source "")
foreach(name IN LISTS names)
  string(APPEND source "extern const Script ${name};\nconst Script ${name}{\"${name}\"};\n\n")
endforeach()
string(SHA1 digest "${text}")
load_script("${UNDO}" undo)
file(WRITE "${OUTPUT}" "// Made from src/store/scripts by cmake/EmbedScripts.cmake.
#include \"store/script.hpp\"

namespace ${NAMESPACE} {

extern const std::string_view text;
const std::string_view text = R\"lua(${text})lua\";

extern const std::string_view undo;
const std::string_view undo = R\"lua(${undo})lua\";

extern const std::string_view sha1;
const std::string_view sha1 = \"${digest}\";

${source}}  // namespace ${NAMESPACE}
")
