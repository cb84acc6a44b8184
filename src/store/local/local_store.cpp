#include "store/local/local_store.hpp"

#include <array>

#include "store/local/local_server.hpp"
#include "store/local/lock_directory.hpp"

namespace redlock::local {
namespace {

constexpr std::array<Scheme, 1> schemes{{{.prefix = "local:"}}};

class LocalAddress final : public ServerAddress {
 public:
  explicit LocalAddress(Location location) : location_(std::move(location)) {}

  [[nodiscard]] const Store& store() const override { return local::store; }
  [[nodiscard]] std::string name() const override { return location_.name(); }

  [[nodiscard]] std::unique_ptr<LockServer> connect(asio::any_io_executor executor,
                                                    const Clock& clock,
                                                    const LinkOptions& /*options*/) const override {
    return std::make_unique<LocalServer>(std::move(executor), clock, location_);
  }

 private:
  Location location_;
};

AddressResult read(std::string_view url) {
  auto location = parse_location(url);
  if (!location) return unexpected(std::move(location.error()));
  return std::make_unique<const LocalAddress>(std::move(*location));
}

}  // namespace

constexpr Store store{
    .schemes = schemes,
    .forms = "local:, local:/directory",
    .read = read,
    .stands_alone = "locks on this host alone, each user apart unless it names a directory",
    .no_replicas = "local: has none"};

}  // namespace redlock::local
