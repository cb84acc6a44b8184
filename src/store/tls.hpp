#pragma once

#include <optional>
#include <string>

namespace redlock {

/// The user's TLS settings. Files are PEM.
struct TlsSettings {
  /// The CAs to trust; neither this nor the directory: the system's CAs.
  std::optional<std::string> ca_file;
  std::optional<std::string> ca_directory;  ///< with names as c_rehash(1) makes them
  std::optional<std::string> certificate;   ///< our own, with its chain
  std::optional<std::string> key;  ///< its private key; nothing: it is in the certificate's file

  /// Ask for this server name and verify it, instead of the URL's host.
  std::optional<std::string> name;

  bool insecure = false;  ///< verify nothing: neither the issuer of the certificate nor its name
};

/// Which setting is wrong, and why.
struct TlsSettingError {
  std::string setting;  ///< its option's name; empty when it is the TLS library itself
  std::string text;     ///< one clause for the user, escaped for the terminal
};

/// What all TLS connections of one store share. Only the store knows its contents.
class Tls {
 public:
  virtual ~Tls() = default;
};

}  // namespace redlock
