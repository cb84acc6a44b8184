#include "store/redis/tls_source.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::redis {
namespace {

/// We may leave the directory in which we began.
TlsSettings with_absolute_paths(TlsSettings settings) {
  for (auto* path :
       {&settings.ca_file, &settings.ca_directory, &settings.certificate, &settings.key}) {
    std::error_code failure;
    if (!*path) continue;
    const auto absolute = std::filesystem::absolute(**path, failure);
    if (!failure) *path = absolute.string();
  }
  return settings;
}

std::vector<std::string> those_of(const std::optional<std::string>& one,
                                  const std::optional<std::string>& other = std::nullopt) {
  std::vector<std::string> paths;
  if (one) paths.push_back(*one);
  if (other) paths.push_back(*other);
  return paths;
}

}  // namespace

TlsSource::TlsSource(const TlsSettings& settings)
    : settings_(with_absolute_paths(settings)),
      authorities_(those_of(settings_.ca_file)),
      certificate_(those_of(settings_.certificate, settings_.key)) {}

Result<std::shared_ptr<TlsSource>, TlsSettingError> TlsSource::make(const TlsSettings& settings) {
  std::shared_ptr<TlsSource> source(new TlsSource(settings));
  auto context = TlsContext::make(settings);
  if (!context) return unexpected(std::move(context.error()));
  source->context_ = std::move(*context);
  return source;
}

std::shared_ptr<const TlsContext> TlsSource::context() {
  auto authorities = authorities_.changed();
  auto certificate = certificate_.changed();
  if (!authorities && !certificate) return context_;
  auto context = TlsContext::make(
      settings_, {context_.get(), /*authorities=*/!authorities, /*certificate=*/!certificate});
  if (!context) return context_;
  if (authorities) authorities_.set_read(std::move(*authorities));
  if (certificate) certificate_.set_read(std::move(*certificate));
  return context_ = std::move(*context);
}

}  // namespace redlock::redis
