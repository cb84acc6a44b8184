# Everything comes from the distribution; nothing is downloaded.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tl-expected REQUIRED)
pkg_check_modules(hiredis REQUIRED IMPORTED_TARGET hiredis>=0.14)
find_path(ASIO_INCLUDE_DIR asio.hpp REQUIRED)

add_library(redlock-asio INTERFACE)
target_include_directories(redlock-asio SYSTEM INTERFACE ${ASIO_INCLUDE_DIR})
target_compile_definitions(redlock-asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED)
target_link_libraries(redlock-asio INTERFACE Threads::Threads)
