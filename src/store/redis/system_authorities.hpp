#pragma once

#include <string>

namespace redlock::redis {

/// Where a system keeps the CAs that it trusts.
struct SystemAuthorities {
  std::string file;         ///< a bundle; empty: none
  std::string directories;  ///< separated by colons; empty: none
};

/// Those of this system, for an OpenSSL that was built for another: what SSL_CERT_FILE and
/// SSL_CERT_DIR name; without them, the first bundle and all directories that are there, of those
/// that distributions use. `root`: where the system is mounted.
SystemAuthorities find_system_authorities(const std::string& root = "");

}  // namespace redlock::redis
