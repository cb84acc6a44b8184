#include "store/redis/tls_source.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::redis {
namespace {

/// Relative paths would break if we change the working directory.
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

WatchedFiles::WatchedFiles(std::vector<std::string> paths)
    : paths_(std::move(paths)), read_(read_stamps()) {}

std::optional<WatchedFiles::Stamps> WatchedFiles::changed() const {
  if (!read_) return std::nullopt;
  auto now = read_stamps();
  return now != read_ ? now : std::nullopt;
}

std::optional<WatchedFiles::Stamps> WatchedFiles::read_stamps() const {
  constexpr std::int64_t nanoseconds_per_second = 1'000'000'000;
  Stamps stamps;
  for (const std::string& path : paths_) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
    stamps.push_back({status.st_dev, status.st_ino, status.st_size,
                      status.st_mtim.tv_sec * nanoseconds_per_second + status.st_mtim.tv_nsec});
  }
  return stamps;
}

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
  // Renew each separately: new CAs take effect even while a new certificate cannot be used.
  const auto renew = [this](WatchedFiles& files, bool are_authorities) {
    auto changed = files.changed();
    if (!changed) return;
    auto context = TlsContext::make(settings_, {context_.get(), /*authorities=*/!are_authorities,
                                                /*certificate=*/are_authorities});
    if (!context) return;
    files.set_read(std::move(*changed));
    context_ = std::move(*context);
  };
  renew(authorities_, /*are_authorities=*/true);
  renew(certificate_, /*are_authorities=*/false);
  return context_;
}

}  // namespace redlock::redis
