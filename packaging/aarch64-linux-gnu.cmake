# For `cmake --toolchain`: builds for 64-bit ARM on a machine of another kind, with Debian's cross
# compiler and its libraries for arm64. docs/packaging.md says how; tests/cross.sh tries it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# Another one would find hiredis and OpenSSL as this machine has them.
set(PKG_CONFIG_EXECUTABLE aarch64-linux-gnu-pkg-config)
# The build runs tools that it has built, such as compile-scripts.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
