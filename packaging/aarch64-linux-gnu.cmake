# For `cmake --toolchain`: builds for 64-bit ARM on a machine of another kind, with Debian's cross
# compiler and its libraries for arm64. docs/packaging.md says how; tests/cross.sh tries it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# The cross compiler brings a libc of its own, to which Debian's security updates do not come. This
# finds libc6-dev:arm64, to which they do.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-B/usr/lib/aarch64-linux-gnu")
# Another one would find hiredis and OpenSSL as this machine has them.
set(PKG_CONFIG_EXECUTABLE aarch64-linux-gnu-pkg-config)
# The build runs tools that it has built, such as compile-scripts.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
