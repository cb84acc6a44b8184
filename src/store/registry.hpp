#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/diagnosis.hpp"
#include "store/lock_server.hpp"
#include "store/password_file.hpp"
#include "support/clock.hpp"
#include "support/result.hpp"

namespace redlock {

// The stores of this program, found by the URLs of their servers.
//
// A store is a folder below store/ with one row, a `Store`. Only src/stores.cpp includes these
// folders, and combines the rows. Everything else uses what is declared here:
//
//   URLs of the user      stores().read(url)      -> ServerAddress, or what is wrong with the URL
//   TLS settings          Store::load_tls(...)    -> Tls, or which setting is wrong and why
//   a command's session   ServerAddress::connect  -> LockServer, which is not connected yet
//   doctor                ServerAddress::diagnose -> Diagnosis
//
// To add a store: its folder, a row, the row's name in src/stores.cpp, the URL in the manual. Its
// servers pass the contract tests in tests/unit/store/contract_test.cpp.

/// The user's TLS settings. Files are PEM.
struct TlsSettings {
  /// The CAs to trust. Without a file and a directory: the system's CAs.
  std::optional<std::string> ca_file;
  std::optional<std::string> ca_directory;  ///< with names as c_rehash(1) makes them
  std::optional<std::string> certificate;   ///< our own, with its chain
  std::optional<std::string> key;  ///< its private key; nullopt: it is in the certificate's file

  /// The server name to request and verify, instead of the URL's host.
  std::optional<std::string> name;

  bool insecure = false;  ///< verify neither the issuer of the certificate nor its name
};

/// Which setting is wrong, and why.
struct TlsSettingError {
  std::string setting;  ///< the name of its option; empty if the TLS library itself failed
  std::string text;     ///< one clause for the user, escaped for the terminal
};

/// The state that all TLS connections of one store share. Opaque outside the store.
class Tls {
 public:
  virtual ~Tls() = default;
};

/// The user and password for servers whose URLs have none.
struct DefaultLogin {
  std::optional<std::string> user;
  std::optional<std::string> password;

  /// The password was not set for these servers in particular, so a server without a password is
  /// used all the same.
  bool password_is_general = false;

  std::shared_ptr<PasswordFile> password_file{};  ///< used instead of `password` unless null
};

/// How to connect to servers, the same for all servers of a session. A store ignores what it does
/// not need.
struct LinkOptions {
  DefaultLogin login;
  std::shared_ptr<Tls> tls;  ///< from the store's load_tls(), if the server uses TLS
  unsigned replicas = 0;  ///< a grant or an extension counts only when this many replicas have it
  bool identifies_itself = false;  ///< ask the server for its identity and uptime (ServerFacts)
  Duration server_timeout{};       ///< to be named in messages; zero: unknown

  /// Called with the name of a server that does not report whether it is a replica, although the
  /// answer to a question depends on it; may be null.
  std::function<void(const std::string& server)> unknown_role{};

  /// Called with the name of a server that has no password although there is a general one; may be
  /// null.
  std::function<void(const std::string& server)> needless_password;
};

struct Store;

/// The address of a server, which has one vote. Immutable. Reading it connects to nothing.
class ServerAddress {
 public:
  virtual ~ServerAddress() = default;

  /// The store that read the URL.
  [[nodiscard]] virtual const Store& store() const = 0;

  /// The URL without users and passwords, in one spelling per server: for messages and
  /// fingerprints.
  [[nodiscard]] virtual std::string name() const = 0;

  /// The part of the name that identifies the process. Addresses with the same part fail together,
  /// so they must not both be configured.
  [[nodiscard]] virtual std::string process() const { return name(); }

  /// Whether the URL has a user or a password; whether it has a password, which should not be on a
  /// command line.
  [[nodiscard]] virtual bool has_login() const { return false; }
  [[nodiscard]] virtual bool has_password() const { return false; }

  /// Whether connections are encrypted. If so, `connect` requires LinkOptions::tls.
  [[nodiscard]] virtual bool uses_tls() const { return false; }

  /// The server. It connects when it is first asked. `clock` must outlive it.
  [[nodiscard]] virtual std::unique_ptr<LockServer> connect(asio::any_io_executor executor,
                                                            const Clock& clock,
                                                            const LinkOptions& options) const = 0;

  /// Diagnoses the server for `doctor`, over separate connections, and leaves no data on it. The
  /// default only tests whether a lock can be acquired. `clock` and the address must outlive the
  /// coroutine.
  [[nodiscard]] virtual asio::awaitable<Diagnosis> diagnose(asio::any_io_executor executor,
                                                            const Clock& clock, LinkOptions options,
                                                            DiagnosisRequest request) const;
};

/// The error is one clause for the user that never repeats a password.
using AddressResult = Result<std::unique_ptr<const ServerAddress>, std::string>;

/// A prefix of a store's URLs, in any case.
struct Scheme {
  std::string_view
      prefix;  ///< with its colon, and with the slashes if they are required: `redis://`
  bool has_hosts = false;  ///< a comma separates hosts of one vote, not servers
  bool is_alias = false;   ///< an alias of another scheme; messages use the other name
};

/// A row of the registry. Constant; lives as long as the program.
struct Store {
  std::span<const Scheme> schemes;
  std::string_view forms;  ///< the forms of its URLs, separated by commas, the usual one first

  /// Reads a URL that begins with one of the schemes.
  AddressResult (*read)(std::string_view url);

  /// Prepares the state that TLS connections share. Null in a store without an encrypted scheme.
  Result<std::shared_ptr<Tls>, TlsSettingError> (*load_tls)(const TlsSettings& settings) = nullptr;

  std::string_view encrypting{};  ///< its encrypted schemes, as `a, b or c`

  /// URLs may have a user and a password, so messages do not show text that looks like a login.
  bool has_logins = false;

  /// Why its server must be the only one, as a clause without a subject: `locks on this host
  /// alone`. Empty: its servers have one vote each, and may be combined with others.
  std::string_view stands_alone{};

  /// Why the store does not support `--replicas`, as a clause; empty: it does.
  std::string_view no_replicas{};
};

/// The rows of all stores, and what can be decided about a URL without reading it.
class StoreRegistry {
 public:
  /// `rows` must outlive it. No two rows have the same scheme.
  constexpr explicit StoreRegistry(std::span<const Store* const> rows) : rows_(rows) {}

  /// Reads a URL. For an unknown scheme the error lists the known ones.
  [[nodiscard]] AddressResult read(std::string_view url) const;

  /// Whether the text begins with a scheme, known or not, and so is a URL in a comma list.
  [[nodiscard]] bool begins_url(std::string_view text) const;

  /// Whether a comma in a URL with this beginning separates the hosts of one vote.
  [[nodiscard]] bool has_hosts(std::string_view url) const;

  /// Whether a URL of a store with logins may begin anywhere in the text.
  [[nodiscard]] bool may_hold_login(std::string_view text) const;

  /// The prefixes of all schemes except the aliases, in the order of the rows.
  [[nodiscard]] std::vector<std::string_view> prefixes() const;

  /// The schemes that encrypt, as `a, b or c`.
  [[nodiscard]] std::string_view encrypting_schemes() const;

  /// An example of a server URL, and the stores that stand alone: for a user who named no server.
  [[nodiscard]] std::string_view example() const;
  [[nodiscard]] std::string stand_alone_hint() const;

 private:
  struct Match {
    const Store* store;
    const Scheme* scheme;
  };
  [[nodiscard]] std::optional<Match> find(std::string_view url) const;

  /// The known scheme in one of another client, such as `redis+sentinel://`; nullopt: there is
  /// none.
  [[nodiscard]] std::optional<std::string_view> scheme_behind_prefix(std::string_view url) const;

  std::span<const Store* const> rows_;
};

/// The stores of this program. Defined in src/stores.cpp.
const StoreRegistry& stores();

}  // namespace redlock
