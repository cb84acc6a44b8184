# Everything comes from the distribution; nothing is downloaded.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tl-expected REQUIRED)
pkg_check_modules(hiredis REQUIRED IMPORTED_TARGET hiredis>=0.14)
set(hiredis_linkage shared)
if(REDLOCK_STATIC_HIREDIS)
  find_library(HIREDIS_STATIC_LIBRARY libhiredis.a REQUIRED)
  set_property(TARGET PkgConfig::hiredis
    PROPERTY INTERFACE_LINK_LIBRARIES ${HIREDIS_STATIC_LIBRARY})
  set(hiredis_linkage "linked in")
endif()
pkg_check_modules(openssl REQUIRED openssl>=3.0)
find_path(ASIO_INCLUDE_DIR asio.hpp REQUIRED)
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)
# Both statically, as Debian offers them, so that the loader has nothing to do for them. Lua as
# built with a C++ compiler: its errors are exceptions then, which destroy what lies on our stack.
find_path(LUA_INCLUDE_DIR lua5.1/lua.hpp REQUIRED)
find_library(LUA_LIBRARY liblua5.1-c++.a REQUIRED)
find_path(MD_INCLUDE_DIR sha2.h REQUIRED)
find_library(MD_LIBRARY libmd.a REQUIRED)

add_library(redlock-lua INTERFACE)
target_include_directories(redlock-lua SYSTEM INTERFACE ${LUA_INCLUDE_DIR})
target_link_libraries(redlock-lua INTERFACE ${LUA_LIBRARY} ${CMAKE_DL_LIBS} m)

add_library(redlock-md INTERFACE)
target_include_directories(redlock-md SYSTEM INTERFACE ${MD_INCLUDE_DIR})
target_link_libraries(redlock-md INTERFACE ${MD_LIBRARY})

add_library(redlock-asio INTERFACE)
target_include_directories(redlock-asio SYSTEM INTERFACE ${ASIO_INCLUDE_DIR})
# Whether it takes coroutine frames from std::aligned_alloc hangs on what a source includes before
# it, so it would differ between sources that free each other's; operator new aligns enough for all
# that we give it.
target_compile_definitions(redlock-asio
  INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED ASIO_DISABLE_STD_ALIGNED_ALLOC)
target_link_libraries(redlock-asio INTERFACE Threads::Threads)
# Asio 1.22 looks for <experimental/coroutine> under Clang, which libstdc++ never had and Clang no
# longer needs.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_definitions(redlock-asio INTERFACE ASIO_HAS_CO_AWAIT=1 ASIO_HAS_STD_COROUTINE=1)
endif()

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
version_in(toml_version ${TOMLPLUSPLUS_INCLUDE_DIR}/toml++/impl/version.h
  "TOML_LIB_MAJOR +([0-9]+)" "TOML_LIB_MINOR +([0-9]+)" "TOML_LIB_PATCH +([0-9]+)")
version_in(lua_version ${LUA_INCLUDE_DIR}/lua5.1/lua.h "LUA_RELEASE[\t ]+\"Lua ([0-9.]+)\"")
pkg_check_modules(md QUIET libmd)
redlock_component(hiredis "${hiredis_VERSION}" "${hiredis_linkage}" BSD-3-Clause)
redlock_component(OpenSSL "${openssl_VERSION}" "loaded when a server wants TLS" Apache-2.0)
redlock_component(Lua "${lua_version}" "linked in" MIT)
redlock_component(libmd "${md_VERSION}" "linked in" BSD-3-Clause)
redlock_component(Asio "${asio_version}" "linked in" BSL-1.0)
redlock_component(fmt "${fmt_VERSION}" "${redlock_runtime}" MIT)
redlock_component(nlohmann-json "${nlohmann_json_VERSION}" "linked in" MIT)
redlock_component(CLI11 "${CLI11_VERSION}" "linked in" BSD-3-Clause)
redlock_component(toml++ "${toml_version}" "linked in" MIT)
redlock_component(expected "${tl-expected_VERSION}" "linked in" CC0-1.0)
redlock_component(libstdc++ "${CMAKE_CXX_COMPILER_VERSION}" "${redlock_runtime}"
  "GPL-3.0-or-later WITH GCC-exception-3.1")
