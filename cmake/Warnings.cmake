# Flags for our own code; libraries are SYSTEM includes and stay quiet.
add_library(redlock-flags INTERFACE)
# As hiredis asks for; everywhere, so that all can share one precompiled header.
target_compile_definitions(redlock-flags INTERFACE _FILE_OFFSET_BITS=64)
target_compile_options(redlock-flags
  INTERFACE -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -Wold-style-cast)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False alarms on string + char*: GCC bug 105651.
  target_compile_options(redlock-flags INTERFACE -Wno-restrict)
  # False alarms on the frames of coroutines, with -O1 and -O2.
  target_compile_options(redlock-flags INTERFACE -Wno-mismatched-new-delete)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # It takes the sources that a batch includes for headers.
  target_compile_options(redlock-flags INTERFACE -Wno-subobject-linkage)
  # One source's local name may shadow another source's global one.
  target_compile_options(redlock-flags INTERFACE -Wno-shadow -Wshadow=local)
  # A batch needs memory until its end: looking for some to free again and again takes a tenth of
  # the time.
  target_compile_options(redlock-flags INTERFACE --param=ggc-min-heapsize=524288)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # The same; Clang cannot tell them apart.
  target_compile_options(redlock-flags INTERFACE -Wno-shadow)
endif()
if(REDLOCK_WERROR)
  target_compile_options(redlock-flags INTERFACE -Werror)
endif()
if(REDLOCK_SANITIZE)
  target_compile_options(redlock-flags
    INTERFACE -fsanitize=${REDLOCK_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(redlock-flags INTERFACE -fsanitize=${REDLOCK_SANITIZE})
endif()
if(REDLOCK_SANITIZE AND REDLOCK_FAST_SANITIZERS)
  # What is read or written through a null pointer is reported all the same: it is a fault. An
  # access that is not aligned is no fault on the processors that we build for. Without debug
  # information reports name functions, but no lines. -O0 saves more time in the compiler than it
  # takes in the tests.
  target_compile_options(redlock-flags INTERFACE -fno-sanitize=null,alignment -g0 -O0)
endif()
if(REDLOCK_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # ThreadSanitizer does not know the fences in Asio, and GCC warns of it.
  target_compile_options(redlock-flags INTERFACE -Wno-tsan)
endif()
if(REDLOCK_FUZZ)
  # Coverage is libFuzzer's guide: all code that a target may reach reports it. A target that sets
  # REDLOCK_IS_TEST has neither that nor checks for undefined behaviour: both take Clang long, and
  # what is undefined is looked for in the layers. Clang 14 makes coroutines with the check of
  # function types that its assembler refuses. The check of vptr opens a pipe, which fails in tests
  # without descriptors.
  set(is_test "$<BOOL:$<TARGET_PROPERTY:REDLOCK_IS_TEST>>")
  target_compile_options(redlock-flags
    INTERFACE -fno-sanitize=function,vptr -fno-sanitize-recover=all
    "$<IF:${is_test},-fno-sanitize=undefined,-fsanitize=fuzzer-no-link>")
  target_link_options(redlock-flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
