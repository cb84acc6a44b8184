# What a program that root runs from cron is expected to be compiled with. tests/hardening.sh looks
# for it in the program. All programs get it, in all presets, so that the tests run what users
# get; _FORTIFY_SOURCE alone needs an optimising compiler.
include(CheckCXXCompilerFlag)

# Not CMAKE_POSITION_INDEPENDENT_CODE: the layers are libraries only while building, and -fPIC would
# cost them what only shared ones need.
target_compile_options(redlock-flags INTERFACE -fPIE)
if(NOT REDLOCK_STATIC) # there src/CMakeLists.txt chooses
  target_link_options(redlock-flags INTERFACE -pie)
endif()

# Indirect jumps only where the compiler meant them to go: by processor.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|i[3-6]86)$")
  set(redlock_branch_protection -fcf-protection=full)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(redlock_branch_protection -mbranch-protection=standard)
endif()
foreach(flag -fstack-protector-strong -fstack-clash-protection ${redlock_branch_protection})
  string(MAKE_C_IDENTIFIER "REDLOCK_HAS${flag}" has_flag)
  check_cxx_compiler_flag(${flag} ${has_flag})
  if(${has_flag})
    target_compile_options(redlock-flags INTERFACE ${flag})
  endif()
endforeach()

target_compile_definitions(redlock-flags INTERFACE _GLIBCXX_ASSERTIONS)
# Level 3 also bounds what only the running program knows the size of; before GCC 12 it means 2.
# Some distributions' compilers define one themselves, and the sanitizers intercept the functions
# that it replaces.
if(NOT REDLOCK_SANITIZE)
  target_compile_options(redlock-flags INTERFACE
    $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=3>)
endif()
# All symbols are found at the start, and the tables of their addresses are read-only from then on.
target_link_options(redlock-flags INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
