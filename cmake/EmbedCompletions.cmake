# Writes the completions of all shells as C++:
# cmake -DSCRIPTS=….bash;….zsh -DOUTPUT=… -P EmbedCompletions.cmake
set(rows "")
foreach(script IN LISTS SCRIPTS)
  file(READ "${script}" text)
  get_filename_component(shell "${script}" LAST_EXT)
  string(SUBSTRING "${shell}" 1 -1 shell)
  string(APPEND rows "    {\"${shell}\", R\"script(${text})script\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "// Made from completions/ by cmake/EmbedCompletions.cmake.
#include \"cli/suggestions.hpp\"

namespace redlock::cli {

std::span<const CompletionScript> completion_scripts() {
  static constexpr CompletionScript scripts[] = {
${rows}};
  return scripts;
}

}  // namespace redlock::cli
")
