#include "store/registry.hpp"

#include <algorithm>

#include "store/lock_probe.hpp"
#include "support/text.hpp"

namespace redlock {
namespace {

constexpr std::string_view separator = "://";
constexpr std::string_view separator_of_forms = ", ";

}  // namespace

asio::awaitable<Diagnosis> ServerAddress::diagnose(asio::any_io_executor executor,
                                                   const Clock& clock, LinkOptions options,
                                                   DiagnosisRequest request) const {
  const std::unique_ptr<LockServer> server = connect(executor, clock, options);
  LockProbe probe(*server, clock, request);
  co_await probe.run();
  probe.undo();
  co_await server->close(clock.now() + request.server_timeout);

  Diagnosis diagnosis;
  diagnosis.votes = !probe.failed();
  diagnosis.findings.push_back(probe.finding());
  co_return diagnosis;
}

std::optional<StoreRegistry::Match> StoreRegistry::find(std::string_view url) const {
  for (const Store* store : rows_) {
    for (const Scheme& scheme : store->schemes) {
      if (lower_case(url.substr(0, scheme.prefix.size())) == scheme.prefix)
        return Match{store, &scheme};
    }
  }
  return std::nullopt;
}

AddressResult StoreRegistry::read(std::string_view url) const {
  if (const auto match = find(url)) return match->store->read(url);
  std::vector<std::string_view> forms;
  for (const Store* store : rows_) {
    for (std::string_view rest = store->forms; !rest.empty();) {
      forms.push_back(rest.substr(0, rest.find(separator_of_forms)));
      rest.remove_prefix(std::min(forms.back().size() + separator_of_forms.size(), rest.size()));
    }
  }
  // Not repeated: the text before :// may contain a login.
  const bool has_scheme = url.find(separator) != std::string_view::npos;
  const std::string what =
      has_scheme ? "it begins with no scheme that this version knows" : "it has no scheme";
  if (const auto written = scheme_behind_prefix(lower_case(url)))
    return unexpected(what + "; write " + std::string(*written));
  return unexpected(what + "; use " + one_of(forms));
}

std::optional<std::string_view> StoreRegistry::scheme_behind_prefix(std::string_view url) const {
  const std::size_t sign = url.substr(0, url.find(separator)).find_first_of("+-");
  if (sign == std::string_view::npos) return std::nullopt;
  const auto match = find(url.substr(sign + 1));
  return match ? std::optional(match->scheme->prefix) : std::nullopt;
}

bool StoreRegistry::begins_url(std::string_view text) const {
  return text.find(separator) != std::string_view::npos || find(text).has_value();
}

bool StoreRegistry::has_hosts(std::string_view url) const {
  const auto match = find(url);
  return match && match->scheme->has_hosts;
}

bool StoreRegistry::may_hold_login(std::string_view text) const {
  const std::string lower = lower_case(text);
  const auto is_in = [&lower](std::string_view word) {
    for (std::size_t at = lower.find(word); at != lower.npos; at = lower.find(word, at + 1)) {
      const std::string_view behind = std::string_view(lower).substr(at + word.size());
      // Also with an `s`: the user may expect an encrypted scheme that does not exist.
      if (behind.starts_with(":/") || behind.starts_with("s:/")) return true;
    }
    return false;
  };
  return std::ranges::any_of(rows_, [&](const Store* store) {
    return store->has_logins && std::ranges::any_of(store->schemes, [&](const Scheme& scheme) {
             return is_in(scheme.prefix.substr(0, scheme.prefix.find(':')));
           });
  });
}

std::vector<std::string_view> StoreRegistry::prefixes() const {
  std::vector<std::string_view> prefixes;
  for (const Store* store : rows_) {
    for (const Scheme& scheme : store->schemes) {
      if (!scheme.is_alias) prefixes.push_back(scheme.prefix);
    }
  }
  return prefixes;
}

std::string_view StoreRegistry::encrypting_schemes() const {
  const auto encrypts = [](const Store* store) { return store->load_tls != nullptr; };
  const auto row = std::ranges::find_if(rows_, encrypts);
  return row == rows_.end() ? std::string_view() : (*row)->encrypting;
}

std::string_view StoreRegistry::example() const {
  const std::string_view forms = rows_.front()->forms;
  return forms.substr(0, forms.find(','));
}

std::string StoreRegistry::stand_alone_hint() const {
  std::string text;
  for (const Store* store : rows_) {
    if (store->stands_alone.empty()) continue;
    text += (text.empty() ? "-S " : "; -S ") + std::string(store->schemes.front().prefix) + " ";
    text += store->stands_alone;
  }
  return text;
}

}  // namespace redlock
