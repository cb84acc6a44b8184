# Writes which commit this is, as C++:
# cmake -DSOURCE=… -DCOMPONENTS=a|1.0|linked in|MIT;… -DCOMPILER=… -DOUTPUT=… -P WriteBuild.cmake
include(${CMAKE_CURRENT_LIST_DIR}/WriteIfChanged.cmake)

# An archive that git made has no repository, but git wrote the commit into this file.
file(STRINGS "${SOURCE}/cmake/commit.txt" commit LIMIT_COUNT 1)
if(commit MATCHES "Format")
  set(commit "")
  # The source may lie within a repository of something else.
  if(EXISTS "${SOURCE}/.git")
    execute_process(
      COMMAND git -C "${SOURCE}" describe --always --abbrev=12 --exclude=* --dirty=+changes
      OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
if(NOT commit)
  set(commit unknown)
endif()

set(rows "")
foreach(component IN LISTS COMPONENTS)
  string(REPLACE "|" "\", \"" row "${component}")
  string(APPEND rows "    {\"${row}\"},\n")
endforeach()
set(header "// Made by cmake/WriteBuild.cmake.
#pragma once

#include \"cli/version.hpp\"

namespace redlock::cli::build {

inline constexpr std::string_view commit = \"${commit}\";
inline constexpr std::string_view compiler = \"${COMPILER}\";
inline constexpr Component components[] = {
${rows}};

}  // namespace redlock::cli::build
")

# It is made anew by each build; nothing is compiled unless it has changed.
write_if_changed("${OUTPUT}" "${header}")
