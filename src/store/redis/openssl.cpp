#include "store/redis/openssl.hpp"

#ifdef REDLOCK_STATIC

namespace redlock::redis {
namespace {

Result<OpenSsl, std::string> load_all() {
  OpenSsl functions;
#define REDLOCK_LINK(name) functions.name = &::name;
  REDLOCK_OPENSSL_FUNCTIONS(REDLOCK_LINK)
#undef REDLOCK_LINK
  // The host's configuration may have engines and providers loaded, which were made for another
  // OpenSSL and another libc. OpenSSL need not clean up at exit: the kernel does so sooner.
  functions.OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, nullptr);
  return functions;
}

}  // namespace

SystemAuthorities OpenSsl::system_authorities() const {
  return find_system_authorities();
}

}  // namespace redlock::redis

#else

#include <dlfcn.h>

#include <cstdlib>

#include "support/text.hpp"

#define REDLOCK_TEXT_OF(macro) #macro
#define REDLOCK_TEXT(macro) REDLOCK_TEXT_OF(macro)

// Lets packagers' tools find a library that is only loaded on demand: a note with the owner FDO, as
// described by systemd's "ELF dlopen metadata".
asm(".pushsection .note.dlopen, \"a\", %note\n"
    ".balign 4\n"
    ".long 4, 2f - 1f, 0x407c0c0a\n"
    ".asciz \"FDO\"\n"
    "1: .asciz \"[{\\\"feature\\\":\\\"tls\\\",\\\"description\\\":\\\"TLS to servers\\\","
    "\\\"priority\\\":\\\"recommended\\\",\\\"soname\\\":[\\\"libssl.so." REDLOCK_TEXT(
        OPENSSL_SHLIB_VERSION) "\\\"]}]\"\n"
    "2: .balign 4\n"
    ".popsection\n");

namespace redlock::redis {
namespace {

/// The version whose headers we were built with: another version has another ABI.
constexpr const char* library_name = "libssl.so." REDLOCK_TEXT(OPENSSL_SHLIB_VERSION);

std::string last_error() {
  const char* error = ::dlerror();
  return escape_for_terminal(error != nullptr ? error : "unknown error");
}

Result<OpenSsl, std::string> load_all() {
  // libcrypto is loaded with libssl, and dlsym() finds its functions, too.
  void* const library = ::dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return unexpected("TLS needs OpenSSL, which cannot be loaded: " + last_error());
  OpenSsl functions;
#define REDLOCK_LOAD(name)                                                              \
  functions.name = reinterpret_cast<decltype(functions.name)>(::dlsym(library, #name)); \
  if (functions.name == nullptr) return unexpected("TLS needs OpenSSL 3; found: " + last_error());
  REDLOCK_OPENSSL_FUNCTIONS(REDLOCK_LOAD)
#undef REDLOCK_LOAD
  // OpenSSL need not clean up at exit: the kernel does so sooner.
  functions.OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
  return functions;
}

}  // namespace

SystemAuthorities OpenSsl::system_authorities() const {
  const auto named_or = [](const char* variable, const char* fallback) {
    const char* const named = std::getenv(variable);
    return std::string(named != nullptr ? named : fallback);
  };
  return {named_or(X509_get_default_cert_file_env(), X509_get_default_cert_file()),
          named_or(X509_get_default_cert_dir_env(), X509_get_default_cert_dir())};
}

}  // namespace redlock::redis

#endif

namespace redlock::redis {

Result<const OpenSsl*, std::string> OpenSsl::load() {
  static const Result<OpenSsl, std::string> loaded = load_all();
  if (!loaded) return unexpected(loaded.error());
  return &*loaded;
}

}  // namespace redlock::redis
