# Everything comes from the distribution; nothing is downloaded.
include(CheckCXXSymbolExists)
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
# The oldest that are tested: Debian 12's.
find_package(fmt 9 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(tl-expected 1.0 REQUIRED)
pkg_check_modules(hiredis REQUIRED IMPORTED_TARGET hiredis>=0.14)
set(hiredis_linkage shared)
if(REDLOCK_STATIC_HIREDIS)
  find_library(HIREDIS_STATIC_LIBRARY libhiredis.a REQUIRED)
  set_property(TARGET PkgConfig::hiredis
    PROPERTY INTERFACE_LINK_LIBRARIES ${HIREDIS_STATIC_LIBRARY})
  set(hiredis_linkage "linked in")
endif()
pkg_check_modules(openssl REQUIRED openssl>=3.0)
set(openssl_linkage "loaded when a server wants TLS")
if(REDLOCK_STATIC)
  set(openssl_linkage "linked in")
  foreach(library ssl crypto)
    find_library(OPENSSL_${library}_STATIC_LIBRARY lib${library}.a PATHS ${openssl_LIBDIR}
      NO_DEFAULT_PATH REQUIRED)
  endforeach()
endif()
find_path(ASIO_INCLUDE_DIR asio.hpp REQUIRED)
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)

# redlock_library(NAME STATIC PACKAGE…): the target redlock-NAME is what the first PACKAGE that
# pkg-config knows offers, and NAME_linkage how it comes. As the library STATIC, if it is there: the
# loader has nothing to do for it then.
function(redlock_library name static)
  pkg_search_module(${name} REQUIRED IMPORTED_TARGET ${ARGN})
  add_library(redlock-${name} INTERFACE)
  set(linkage shared)
  if(REDLOCK_STATIC_LUA_MD)
    find_library(${name}_STATIC_LIBRARY ${static} PATHS ${${name}_LIBDIR} NO_DEFAULT_PATH)
  endif()
  if(REDLOCK_STATIC_LUA_MD AND ${name}_STATIC_LIBRARY)
    set(linkage "linked in")
    target_include_directories(redlock-${name} SYSTEM INTERFACE ${${name}_INCLUDE_DIRS})
    target_link_libraries(redlock-${name}
      INTERFACE ${${name}_STATIC_LIBRARY} ${CMAKE_DL_LIBS} m)
  else()
    target_link_libraries(redlock-${name} INTERFACE PkgConfig::${name})
  endif()
  set(${name}_linkage ${linkage} PARENT_SCOPE)
  set(${name}_version ${${name}_VERSION} PARENT_SCOPE)
endfunction()
# Lua's names are those of Debian and Alpine, Fedora, Arch, and where there is no other version.
redlock_library(lua liblua5.1.a lua5.1 lua-5.1 lua51 lua<5.2)
redlock_library(md libmd.a libmd)

add_library(redlock-asio INTERFACE)
target_include_directories(redlock-asio SYSTEM INTERFACE ${ASIO_INCLUDE_DIR})
# Whether it takes coroutine frames from std::aligned_alloc hangs on what a source includes before
# it, so it would differ between sources that free each other's; operator new aligns enough for all
# that we give it.
target_compile_definitions(redlock-asio
  INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED ASIO_DISABLE_STD_ALIGNED_ALLOC)
# Asio 1.22 looks for <experimental/coroutine> under Clang, which libstdc++ never had and Clang no
# longer needs. For all compilers: clangd reads what is compiled with GCC.
target_compile_definitions(redlock-asio INTERFACE ASIO_HAS_CO_AWAIT=1 ASIO_HAS_STD_COROUTINE=1)
target_link_libraries(redlock-asio INTERFACE Threads::Threads)

# The headers alone: only a command with a configuration file needs them, and every start would load
# the shared library.
add_library(redlock-toml INTERFACE)
target_include_directories(redlock-toml SYSTEM INTERFACE ${TOMLPLUSPLUS_INCLUDE_DIR})

# The shared libfmt would bring the shared C++ library back in, and Debian has no static one.
add_library(redlock-fmt INTERFACE)
target_link_libraries(redlock-fmt
  INTERFACE $<IF:$<BOOL:${REDLOCK_STATIC_RUNTIME}>,fmt::fmt-header-only,fmt::fmt>)

# What the program is made of, for --version, the software bill of materials and the licences:
# `NAME|VERSION|how it comes|SPDX licence`.
set(redlock_components "")
function(redlock_component name version how licence)
  if(NOT version)
    set(version unknown)
  endif()
  list(APPEND redlock_components "${name}|${version}|${how}|${licence}")
  set(redlock_components "${redlock_components}" PARENT_SCOPE)
endfunction()

# version_in(RESULT FILE REGEX…): what the groups of the expressions match there, with dots between.
function(version_in result file)
  set(version "")
  file(READ "${file}" text)
  foreach(pattern IN LISTS ARGN)
    if(text MATCHES "${pattern}")
      list(APPEND version "${CMAKE_MATCH_1}")
    endif()
  endforeach()
  list(JOIN version "." version)
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

set(redlock_runtime shared)
if(REDLOCK_STATIC_RUNTIME)
  set(redlock_runtime "linked in")
endif()
version_in(asio_version ${ASIO_INCLUDE_DIR}/asio/version.hpp "ASIO_VERSION [0-9]+ // ([0-9.]+)")
pkg_check_modules(toml QUIET tomlplusplus)
redlock_component(hiredis "${hiredis_VERSION}" "${hiredis_linkage}" BSD-3-Clause)
redlock_component(OpenSSL "${openssl_VERSION}" "${openssl_linkage}" Apache-2.0)
redlock_component(Lua "${lua_version}" "${lua_linkage}" MIT)
redlock_component(libmd "${md_version}" "${md_linkage}" BSD-3-Clause)
redlock_component(Asio "${asio_version}" "linked in" BSL-1.0)
redlock_component(fmt "${fmt_VERSION}" "${redlock_runtime}" MIT)
redlock_component(nlohmann-json "${nlohmann_json_VERSION}" "linked in" MIT)
redlock_component(CLI11 "${CLI11_VERSION}" "linked in" BSD-3-Clause)
redlock_component(toml++ "${toml_VERSION}" "linked in" MIT)
redlock_component(expected "${tl-expected_VERSION}" "linked in" CC0-1.0)
# Each of the two comes with its own compiler; Clang may use the other's, of whatever version: that
# one says which it is.
check_cxx_symbol_exists(_LIBCPP_VERSION cstddef REDLOCK_HAS_LIBCXX)
set(runtime_library libstdc++)
set(runtime_licence "GPL-3.0-or-later WITH GCC-exception-3.1")
set(runtime_compiler GNU)
if(REDLOCK_HAS_LIBCXX)
  set(runtime_library libc++)
  set(runtime_licence "Apache-2.0 WITH LLVM-exception")
  set(runtime_compiler Clang)
endif()
set(runtime_version "")
if(CMAKE_CXX_COMPILER_ID MATCHES "${runtime_compiler}")
  set(runtime_version "${CMAKE_CXX_COMPILER_VERSION}")
else()
  separate_arguments(flags NATIVE_COMMAND "${CMAKE_CXX_FLAGS}")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} ${flags} -dM -E -x c++ -include cstddef /dev/null
    OUTPUT_VARIABLE macros ERROR_QUIET)
  if(macros MATCHES "_GLIBCXX_RELEASE ([0-9]+)")
    set(runtime_version ${CMAKE_MATCH_1})
  endif()
endif()
redlock_component(${runtime_library} "${runtime_version}" "${redlock_runtime}"
  "${runtime_licence}")
if(REDLOCK_STATIC)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -dM -E -x c++ -include features.h /dev/null
    OUTPUT_VARIABLE macros ERROR_QUIET)
  if(NOT macros MATCHES "define __GLIBC__ ([0-9]+)")
    message(FATAL_ERROR "REDLOCK_STATIC is for glibc, whose name services it keeps out")
  endif()
  set(glibc_version ${CMAKE_MATCH_1})
  string(REGEX MATCH "define __GLIBC_MINOR__ ([0-9]+)" matched "${macros}")
  redlock_component(glibc "${glibc_version}.${CMAKE_MATCH_1}" "linked in" LGPL-2.1-or-later)
endif()
