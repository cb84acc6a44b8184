# One precompiled header for all that has the same flags. The release preset does without, so a
# header that includes too little is found there.
set(redlock_headers <algorithm> <chrono> <functional> <map> <memory> <optional> <set> <string>
    <string_view> <variant> <vector>
    <asio/any_io_executor.hpp> <asio/awaitable.hpp> <asio/use_awaitable.hpp>)

# redlock_precompile(TARGET OWNER [HEADER…]): OWNER compiles the headers, and is named first; every
# other target uses what it made.
function(redlock_precompile target owner)
  if(NOT REDLOCK_PCH)
    return()
  endif()
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${redlock_headers} ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()
