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
    const TlsSettings& settings, Kept kept) {
  const auto openssl = OpenSsl::load();
  if (!openssl) return unexpected(TlsSettingError{"", openssl.error()});
  auto context = std::make_shared<TlsContext>(**openssl, settings);
  (*openssl)->ERR_clear_error();
  std::optional<TlsSettingError> error;
  if (kept.authorities) {
    context->keep_authorities(*kept.from);
  } else {
    error = context->load_authorities(settings);
  }
  if (!error && kept.certificate) {
    context->keep_certificate(*kept.from);
  } else if (!error) {
    error = context->load_certificate(settings);
  }
  if (error) return unexpected(std::move(*error));
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

std::optional<TlsSettingError> TlsContext::load_authorities(const TlsSettings& settings) {
  if (settings.ca_file &&
      openssl_.SSL_CTX_load_verify_file(context_, settings.ca_file->c_str()) != 1) {
    return unusable("cacert", *settings.ca_file);
  }
  if (settings.ca_directory) {
    // OpenSSL takes any name here, and would find no CA later.
    const bool readable = ::access((*settings.ca_directory + "/.").c_str(), R_OK | X_OK) == 0;
    if (!readable)
      return TlsSettingError{
          "cacertdir",
          "cannot use " + escape_for_terminal(*settings.ca_directory) + ": " + errno_text(errno)};
    if (openssl_.SSL_CTX_load_verify_dir(context_, settings.ca_directory->c_str()) != 1)
      return unusable("cacertdir", *settings.ca_directory);
  }
  if (!settings.ca_file && !settings.ca_directory)
    openssl_.SSL_CTX_set_default_verify_paths(context_);
  return std::nullopt;
}

std::optional<TlsSettingError> TlsContext::load_certificate(const TlsSettings& settings) {
  if (!settings.certificate) return std::nullopt;
  if (openssl_.SSL_CTX_use_certificate_chain_file(context_, settings.certificate->c_str()) != 1)
    return unusable("cert", *settings.certificate);
  const std::string key = settings.key.value_or(*settings.certificate);
  const std::string key_setting = settings.key ? "cert-key" : "cert";
  if (openssl_.SSL_CTX_use_PrivateKey_file(context_, key.c_str(), SSL_FILETYPE_PEM) != 1)
    return unusable(key_setting, key);
  if (openssl_.SSL_CTX_check_private_key(context_) != 1) return unusable(key_setting, key);
  return std::nullopt;
}

void TlsContext::keep_authorities(const TlsContext& from) {
  openssl_.SSL_CTX_set1_cert_store(context_, openssl_.SSL_CTX_get_cert_store(from.context_));
}

void TlsContext::keep_certificate(const TlsContext& from) {
  X509* const certificate = openssl_.SSL_CTX_get0_certificate(from.context_);
  if (certificate == nullptr) return;
  openssl_.SSL_CTX_use_certificate(context_, certificate);
  openssl_.SSL_CTX_use_PrivateKey(context_, openssl_.SSL_CTX_get0_privatekey(from.context_));
  STACK_OF(X509)* chain = nullptr;
  openssl_.SSL_CTX_ctrl(from.context_, SSL_CTRL_GET_CHAIN_CERTS, 0, &chain);
  constexpr long counting_references = 1;
  openssl_.SSL_CTX_ctrl(context_, SSL_CTRL_CHAIN, counting_references, chain);
}

TlsSettingError TlsContext::unusable(std::string setting, const std::string& file) const {
  // The system's error first: OpenSSL has no better text for a missing file.
  const std::string why = ::access(file.c_str(), R_OK) != 0 ? errno_text(errno) : reason();
  return {std::move(setting), "cannot use " + escape_for_terminal(file) + ": " + why};
}

std::string TlsContext::reason() const {
  const unsigned long code = openssl_.ERR_get_error();
  openssl_.ERR_clear_error();
  const char* text = openssl_.ERR_reason_error_string(code);
  return escape_for_terminal(text != nullptr ? text : "not what it should be");
}

}  // namespace redlock::redis
