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

add_library(redlock-asio INTERFACE)
target_include_directories(redlock-asio SYSTEM INTERFACE ${ASIO_INCLUDE_DIR})
target_compile_definitions(redlock-asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED)
target_link_libraries(redlock-asio INTERFACE Threads::Threads)
# Asio 1.22 looks for <experimental/coroutine> under Clang, which libstdc++ never had and Clang no longer needs.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_definitions(redlock-asio INTERFACE ASIO_HAS_CO_AWAIT=1 ASIO_HAS_STD_COROUTINE=1)
endif()

# The shared libfmt would bring the shared C++ library back in, and Debian has no static one.
add_library(redlock-fmt INTERFACE)
target_link_libraries(redlock-fmt INTERFACE $<IF:$<BOOL:${REDLOCK_STATIC_RUNTIME}>,fmt::fmt-header-only,fmt::fmt>)
