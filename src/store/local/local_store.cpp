#include "store/local/local_store.hpp"

#include <array>

#include "store/local/local_server.hpp"
#include "store/local/lock_directory.hpp"

namespace redlock::local {
namespace {

constexpr std::array<Scheme, 1> schemes{{{.prefix = "local:"}}};

class LocalAddress final : public ServerAddress {
 public:
  explicit LocalAddress(Place place) : place_(std::move(place)) {}

  [[nodiscard]] const Store& store() const override { return local::store; }
  [[nodiscard]] std::string name() const override { return place_.name(); }

  [[nodiscard]] std::unique_ptr<LockServer> connect(asio::any_io_executor executor,
                                                    const Clock& clock,
                                                    const LinkOptions& /*options*/) const override {
    return std::make_unique<LocalServer>(std::move(executor), clock, place_);
  }

 private:
  Place place_;
};

AddressResult read(std::string_view url) {
  auto place = parse_place(url);
  if (!place) return unexpected(std::move(place.error()));
  return std::make_unique<const LocalAddress>(std::move(*place));
}

}  // namespace

constexpr Store store{.schemes = schemes,
                      .forms = "local:",
                      .read = read,
                      .stands_alone = "locks on this host alone",
                      .no_replicas = "local: has none"};

}  // namespace redlock::local
