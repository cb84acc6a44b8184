#include "store/redis/tls_context.hpp"

#include <unistd.h>

#include <cerrno>
#include <new>

#include "store/redis/openssl.hpp"
#include "support/text.hpp"

namespace redlock::redis {
namespace {

/// Prevents OpenSSL from asking on the terminal.
int refuse_passphrase(char*, int, int, void*) {
  return 0;
}

}  // namespace

Result<std::shared_ptr<const TlsContext>, TlsSettingError> TlsContext::make(
    const TlsSettings& settings) {
  const auto openssl = OpenSsl::load();
  if (!openssl) return unexpected(TlsSettingError{"", openssl.error()});
  auto context = std::make_shared<TlsContext>(**openssl, settings);
  if (auto error = context->load(settings)) return unexpected(std::move(*error));
  return context;
}

TlsContext::TlsContext(const OpenSsl& openssl, const TlsSettings& settings)
    : openssl_(openssl),
      context_(openssl.SSL_CTX_new(openssl.TLS_client_method())),
      name_(settings.name),
      verifies_(!settings.insecure) {
  if (context_ == nullptr) throw std::bad_alloc();
  openssl_.SSL_CTX_ctrl(context_, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, nullptr);
  openssl_.SSL_CTX_set_options(context_, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  openssl_.SSL_CTX_set_verify(context_, verifies_ ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  openssl_.SSL_CTX_set_default_passwd_cb(context_, refuse_passphrase);
}

TlsContext::~TlsContext() {
  openssl_.SSL_CTX_free(context_);
}

std::optional<TlsSettingError> TlsContext::load(const TlsSettings& settings) {
  const auto wrong = [this](std::string setting, const std::string& file) {
    // The system's error first: OpenSSL has no better text for a missing file.
    const std::string why = ::access(file.c_str(), R_OK) != 0 ? errno_text(errno) : reason();
    return TlsSettingError{std::move(setting),
                           "cannot use " + escape_for_terminal(file) + ": " + why};
  };
  openssl_.ERR_clear_error();
  if (settings.ca_file &&
      openssl_.SSL_CTX_load_verify_file(context_, settings.ca_file->c_str()) != 1) {
    return wrong("cacert", *settings.ca_file);
  }
  if (settings.ca_directory) {
    // OpenSSL takes any name here, and would find no CA later.
    const bool readable = ::access((*settings.ca_directory + "/.").c_str(), R_OK | X_OK) == 0;
    if (!readable)
      return TlsSettingError{
          "cacertdir",
          "cannot use " + escape_for_terminal(*settings.ca_directory) + ": " + errno_text(errno)};
    if (openssl_.SSL_CTX_load_verify_dir(context_, settings.ca_directory->c_str()) != 1)
      return wrong("cacertdir", *settings.ca_directory);
  }
  if (!settings.ca_file && !settings.ca_directory)
    openssl_.SSL_CTX_set_default_verify_paths(context_);
  if (!settings.certificate) return std::nullopt;
  if (openssl_.SSL_CTX_use_certificate_chain_file(context_, settings.certificate->c_str()) != 1)
    return wrong("cert", *settings.certificate);
  const std::string key = settings.key.value_or(*settings.certificate);
  const std::string key_setting = settings.key ? "cert-key" : "cert";
  if (openssl_.SSL_CTX_use_PrivateKey_file(context_, key.c_str(), SSL_FILETYPE_PEM) != 1)
    return wrong(key_setting, key);
  if (openssl_.SSL_CTX_check_private_key(context_) != 1) return wrong(key_setting, key);
  return std::nullopt;
}

std::string TlsContext::reason() const {
  const unsigned long code = openssl_.ERR_get_error();
  openssl_.ERR_clear_error();
  const char* text = openssl_.ERR_reason_error_string(code);
  return escape_for_terminal(text != nullptr ? text : "not what it should be");
}

}  // namespace redlock::redis
