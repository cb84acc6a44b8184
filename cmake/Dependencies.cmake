# Everything comes from the distribution; nothing is downloaded.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tl-expected REQUIRED)
pkg_check_modules(hiredis REQUIRED IMPORTED_TARGET hiredis>=0.14)
pkg_check_modules(openssl REQUIRED openssl>=3.0)
find_path(ASIO_INCLUDE_DIR asio.hpp REQUIRED)
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)
# Both statically, as Debian offers them, so that the loader has nothing to do for them. Lua as built with a C++ compiler: its errors are
# exceptions then, which destroy what lies on our stack.
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
# Whether it takes coroutine frames from std::aligned_alloc hangs on what a source includes before it, so it would differ between sources that
# free each other's; operator new aligns enough for all that we give it.
target_compile_definitions(redlock-asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED ASIO_DISABLE_STD_ALIGNED_ALLOC)
target_link_libraries(redlock-asio INTERFACE Threads::Threads)
# Asio 1.22 looks for <experimental/coroutine> under Clang, which libstdc++ never had and Clang no longer needs.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_definitions(redlock-asio INTERFACE ASIO_HAS_CO_AWAIT=1 ASIO_HAS_STD_COROUTINE=1)
endif()

# The headers alone: only a command with a configuration file needs them, and every start would load the shared library.
add_library(redlock-toml INTERFACE)
target_include_directories(redlock-toml SYSTEM INTERFACE ${TOMLPLUSPLUS_INCLUDE_DIR})

# The shared libfmt would bring the shared C++ library back in, and Debian has no static one.
add_library(redlock-fmt INTERFACE)
target_link_libraries(redlock-fmt INTERFACE $<IF:$<BOOL:${REDLOCK_STATIC_RUNTIME}>,fmt::fmt-header-only,fmt::fmt>)
