#include "store/redis/redis_store.hpp"

#include <array>

#include "store/redis/cluster.hpp"
#include "store/redis/diagnosis.hpp"
#include "store/redis/redis_server.hpp"
#include "store/redis/tls_source.hpp"

namespace redlock::redis {
namespace {

constexpr std::array<Scheme, 10> schemes{{
    {.prefix = "redis://"},
    {.prefix = "rediss://"},
    {.prefix = "valkey://", .is_alias = true},
    {.prefix = "valkeys://", .is_alias = true},
    {.prefix = "unix://"},
    {.prefix = "unix:", .is_alias = true},
    {.prefix = "sentinel://", .has_hosts = true},
    {.prefix = "sentinels://", .has_hosts = true},
    {.prefix = "cluster://", .has_hosts = true},
    {.prefix = "clusters://", .has_hosts = true},
}};

class RedisAddress final : public ServerAddress {
 public:
  explicit RedisAddress(Endpoint endpoint) : endpoint_(std::move(endpoint)) {}

  [[nodiscard]] const Store& store() const override { return redis::store; }
  [[nodiscard]] std::string name() const override { return endpoint_.name(); }

  /// Two databases of one process fail together, so the database is not part of it.
  [[nodiscard]] std::string process() const override {
    Endpoint whole = endpoint_;
    whole.database = 0;
    return whole.name();
  }

  /// A user counts, too: it may be a password whose colon is missing.
  [[nodiscard]] bool has_login() const override {
    return endpoint_.user || endpoint_.sentinel_user || has_password();
  }
  [[nodiscard]] bool has_password() const override {
    return endpoint_.password || endpoint_.sentinel_password;
  }
  [[nodiscard]] bool uses_tls() const override { return endpoint_.tls; }

  [[nodiscard]] std::unique_ptr<LockServer> connect(asio::any_io_executor executor,
                                                    const Clock& clock,
                                                    const LinkOptions& options) const override {
    return make_server(std::move(executor), clock, with_login(endpoint_, options.login),
                       about(options));
  }

  [[nodiscard]] asio::awaitable<Diagnosis> diagnose(asio::any_io_executor executor,
                                                    const Clock& clock, LinkOptions options,
                                                    DiagnosisRequest request) const override {
    return redis::diagnose(std::move(executor), clock, with_login(endpoint_, options.login),
                           about(options), std::move(request));
  }

 private:
  static RedisServerOptions about(const LinkOptions& options) {
    RedisServerOptions about;
    about.tls = std::static_pointer_cast<TlsSource>(options.tls);
    about.replicas = options.replicas;
    about.server_timeout = options.server_timeout;
    about.identifies_itself = options.identifies_itself;
    about.unknown_role = options.unknown_role;
    about.needless_password = options.needless_password;
    return about;
  }

  Endpoint endpoint_;
};

AddressResult read(std::string_view url) {
  auto endpoint = parse_endpoint(url);
  if (!endpoint) return unexpected(std::move(endpoint.error()));
  return std::make_unique<const RedisAddress>(std::move(*endpoint));
}

Result<std::shared_ptr<Tls>, TlsSettingError> load_tls(const TlsSettings& settings) {
  auto source = TlsSource::make(settings);
  if (!source) return unexpected(std::move(source.error()));
  return std::move(*source);
}

}  // namespace

constexpr Store store{
    .schemes = schemes,
    .forms =
        "redis://host:6379, rediss://host:6379, unix:///path/to/redis.sock, "
        "sentinel://host,host,host/mymaster, cluster://host,host",
    .read = read,
    .load_tls = load_tls,
    .encrypting = "rediss://, sentinels:// or clusters://",
    .has_logins = true,
};

Endpoint with_login(Endpoint endpoint, const DefaultLogin& login) {
  if (!endpoint.user && login.user) endpoint.user = login.user;
  if (!endpoint.password && (login.password || login.password_file)) {
    endpoint.password = login.password;
    endpoint.password_file = login.password_file;
    // A URL with a user requires that user, and so a password.
    endpoint.password_is_general = login.password_is_general && !endpoint.user;
  }
  return endpoint;
}

}  // namespace redlock::redis
