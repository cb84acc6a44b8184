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
#include "store/tls.hpp"
#include "support/clock.hpp"
#include "support/result.hpp"

namespace redlock {

// The stores of this program, by the URLs that name their servers.
//
// A store is a folder below store/ with one row, a `Store`. src/stores.cpp puts the rows together;
// it alone includes the folders. Everything else works with what is declared here:
//
//   words of the user     stores().read(url)      -> ServerAddress, or what is wrong with the URL
//   TLS settings          Store::load_tls(...)    -> Tls, or which setting is wrong and why
//   a command's session   ServerAddress::connect  -> LockServer, which asks nothing yet
//   doctor                ServerAddress::diagnose -> Diagnosis
//
// To add a store: its folder, a row, the row's name in src/stores.cpp, the URL in the manual. Its
// servers pass the contract tests in tests/unit/store/contract_test.cpp.

/// The user and password for servers whose URLs have none.
struct DefaultLogin {
  std::optional<std::string> user;
  std::optional<std::string> password;

  /// The password was not set for these servers, but for whatever server it may fit: one that has
  /// no password is used without it.
  bool password_is_general = false;
};

/// How to talk to servers: the same for all of a session. A store ignores what it has no use for.
struct LinkOptions {
  DefaultLogin login;
  std::shared_ptr<const Tls> tls;  ///< the store's own; where the server encrypts
  unsigned replicas = 0;  ///< a grant or an extension counts only when so many replicas have it
  bool identifies_itself = false;  ///< ask who it is and for how long it is up (ServerFacts)

  /// Told the name of a server that has no password although there is a general one; may be null.
  std::function<void(const std::string& server)> needless_password;
};

struct Store;

/// A server as its URL names it; one vote. Immutable, and nothing was asked of the server so far.
class ServerAddress {
 public:
  virtual ~ServerAddress() = default;

  /// The row that read it.
  [[nodiscard]] virtual const Store& store() const = 0;

  /// The URL without users and passwords, in one spelling per server: for people and fingerprints.
  [[nodiscard]] virtual std::string name() const = 0;

  /// The name as far as it tells what fails together: two addresses with the same are one vote, and
  /// must not both be configured.
  [[nodiscard]] virtual std::string process() const { return name(); }

  /// Whether the URL holds a user or a password; and a password, which is then no thing to be
  /// typed.
  [[nodiscard]] virtual bool has_login() const { return false; }
  [[nodiscard]] virtual bool has_password() const { return false; }

  /// Whether connections are encrypted; `connect` then needs LinkOptions::tls.
  [[nodiscard]] virtual bool uses_tls() const { return false; }

  /// The server, which connects when it is first asked. `clock` must outlive it.
  [[nodiscard]] virtual std::unique_ptr<LockServer> connect(asio::any_io_executor executor,
                                                            const Clock& clock,
                                                            const LinkOptions& options) const = 0;

  /// What `doctor` is to know of the server, over connections of its own; nothing that was tried is
  /// left there. As it stands here: whether it can be locked. `clock` and the address must outlive
  /// it.
  [[nodiscard]] virtual asio::awaitable<Diagnosis> diagnose(asio::any_io_executor executor,
                                                            const Clock& clock, LinkOptions options,
                                                            DiagnosisRequest request) const;
};

/// The error is one clause for the user that never repeats a password.
using AddressResult = Result<std::unique_ptr<const ServerAddress>, std::string>;

/// A way in which URLs of a store begin. Capitals do not matter.
struct Scheme {
  std::string_view prefix;  ///< with its colon, and slashes where there must be some: `redis://`

  /// The URL's form, for the list of all that can be used; empty: as another scheme's.
  std::string_view form{};

  bool has_hosts = false;  ///< a comma separates hosts of one vote, and not servers
  bool encrypts = false;
  bool is_alias = false;  ///< another scheme's meaning by another name: messages name that one

  /// What stands before the colon.
  [[nodiscard]] constexpr std::string_view word() const {
    return prefix.substr(0, prefix.find(':'));
  }
};

/// A row of the registry. Constant, and there as long as the program runs.
struct Store {
  std::span<const Scheme> schemes;

  /// Reads a URL that begins with one of the schemes.
  AddressResult (*read)(std::string_view url);

  /// Makes ready what connections with TLS share. Null in a store without a scheme that encrypts.
  Result<std::shared_ptr<const Tls>, TlsSettingError> (*load_tls)(const TlsSettings& settings) =
      nullptr;

  /// For stores whose URLs may hold a user and a password: a word that looks like one is not shown.
  bool has_logins = false;

  /// Why its server must be the only one, as a clause without a subject: `locks on this host
  /// alone`. Empty: its servers count as one vote each, and may stand beside others.
  std::string_view stands_alone{};

  /// Why `--replicas` cannot be had here, as a clause; empty: it can.
  std::string_view no_replicas{};
};

/// The rows, and what can be said of a URL before it is read.
class StoreRegistry {
 public:
  /// `rows` must outlive it. No two rows have the same scheme.
  constexpr explicit StoreRegistry(std::span<const Store* const> rows) : rows_(rows) {}

  /// Reads a URL. The error of one with an unknown scheme lists those that there are.
  [[nodiscard]] AddressResult read(std::string_view url) const;

  /// Whether it begins with a scheme, known or not, and so is one URL of a comma list.
  [[nodiscard]] bool begins_url(std::string_view text) const;

  /// Whether a comma behind what begins so separates the hosts of one vote.
  [[nodiscard]] bool has_hosts(std::string_view url) const;

  /// Whether a URL of a store with logins may begin anywhere in the text.
  [[nodiscard]] bool may_hold_login(std::string_view text) const;

  /// The prefixes of the schemes that encrypt, as `a, b or c`.
  [[nodiscard]] std::string encrypting_schemes() const;

  /// One way to name a server, and those that stand alone: for somebody who named none.
  [[nodiscard]] std::string example() const;
  [[nodiscard]] std::string stand_alone_hint() const;

 private:
  struct Match {
    const Store* store;
    const Scheme* scheme;
  };
  [[nodiscard]] std::optional<Match> find(std::string_view url) const;

  std::span<const Store* const> rows_;
};

/// Those of this program. Defined where it is put together, in src/stores.cpp.
const StoreRegistry& stores();

}  // namespace redlock
