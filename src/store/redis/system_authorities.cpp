#include "store/redis/system_authorities.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>

namespace redlock::redis {
namespace {

// The places, in the order in which Go's crypto/x509 looks for them (root_linux.go).
constexpr std::array bundles{
    "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Gentoo, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",                   // Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",                             // openSUSE
    "/etc/pki/tls/cacert.pem",                            // OpenELEC
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // CentOS, RHEL 7
    "/etc/ssl/cert.pem",                                  // Alpine
};
constexpr std::array directories{
    "/etc/ssl/certs",      // Debian, openSUSE
    "/etc/pki/tls/certs",  // Fedora, RHEL
};

bool is_readable(const std::string& path) {
  return ::access(path.c_str(), R_OK) == 0;
}

}  // namespace

SystemAuthorities find_system_authorities(const std::string& root) {
  SystemAuthorities found;
  if (const char* const file = std::getenv("SSL_CERT_FILE")) {
    found.file = file;
  } else {
    for (const char* const bundle : bundles) {
      if (!is_readable(root + bundle)) continue;
      found.file = root + bundle;
      break;
    }
  }
  if (const char* const named = std::getenv("SSL_CERT_DIR")) {
    found.directories = named;
    return found;
  }
  for (const char* const directory : directories) {
    if (!is_readable(root + directory)) continue;
    if (!found.directories.empty()) found.directories += ':';
    found.directories += root + directory;
  }
  return found;
}

}  // namespace redlock::redis
