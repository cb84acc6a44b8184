#include "store/redis/tls_context.hpp"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "store/redis/openssl.hpp"
#include "support/text.hpp"

namespace redlock::redis {
namespace {

/// Prevents OpenSSL from asking on the terminal.
int refuse_passphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return 0;
}

/// Whether the directory has a file that is named after a CA, such as `002c0b4f.0`
/// (openssl-rehash(1)).
bool is_hashed(const std::string& directory) {
  constexpr std::size_t name_length = 10;
  std::error_code failure;
  std::filesystem::directory_iterator entry(directory, failure);
  for (; entry != std::filesystem::directory_iterator(); entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    if (name.size() == name_length && name.ends_with(".0")) return true;
  }
  return false;
}

/// `directories`: separated by colons.
bool has_hashed(std::string_view directories) {
  while (!directories.empty()) {
    if (is_hashed(std::string(next_word(directories, ':')))) return true;
  }
  return false;
}

/// Both, if they are there, for the user.
std::string listed(const std::string& one, const std::string& other) {
  return one + (one.empty() || other.empty() ? "" : ", ") + other;
}

/// Whether `chain` can be verified with the CAs of these directories alone. `chain` itself stays
/// unverified.
bool is_enough(const OpenSsl& openssl, const std::string& directories, X509_STORE_CTX* chain) {
  X509_STORE* const store = openssl.X509_STORE_new();
  X509_STORE_CTX* const attempt = openssl.X509_STORE_CTX_new();
  // The parameters name the expected server, the purpose and the required strength of keys.
  const bool result =
      store != nullptr && attempt != nullptr &&
      openssl.X509_STORE_load_path(store, directories.c_str()) == 1 &&
      openssl.X509_STORE_CTX_init(attempt, store, openssl.X509_STORE_CTX_get0_cert(chain),
                                  openssl.X509_STORE_CTX_get0_untrusted(chain)) == 1 &&
      openssl.X509_VERIFY_PARAM_set1(openssl.X509_STORE_CTX_get0_param(attempt),
                                     openssl.X509_STORE_CTX_get0_param(chain)) == 1 &&
      openssl.X509_verify_cert(attempt) == 1;
  openssl.X509_STORE_CTX_free(attempt);
  openssl.X509_STORE_free(store);
  openssl.ERR_clear_error();
  return result;
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
  openssl_.SSL_CTX_set_default_passwd_cb_userdata(context_, &needs_passphrase_);
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
    // OpenSSL accepts any path here, and would only later find no CA.
    const bool readable = ::access((*settings.ca_directory + "/.").c_str(), R_OK | X_OK) == 0;
    if (!readable)
      return TlsSettingError{
          "cacertdir",
          "cannot use " + escape_for_terminal(*settings.ca_directory) + ": " + errno_text(errno)};
    if (openssl_.SSL_CTX_load_verify_dir(context_, settings.ca_directory->c_str()) != 1)
      return unusable("cacertdir", *settings.ca_directory);
  }
  if (!verifies_) return std::nullopt;
  if (settings.ca_file || settings.ca_directory) {
    authorities_ = listed(settings.ca_file.value_or(""), settings.ca_directory.value_or(""));
  } else {
    load_system_authorities();
  }
  return std::nullopt;
}

void TlsContext::load_system_authorities() {
  system_ = openssl_.system_authorities();
  const bool hashed = has_hashed(system_.directories);
  const bool has_file = ::access(system_.file.c_str(), R_OK) == 0;
  if (hashed) {
    try_directory_first();
    authorities_ = listed(system_.directories, has_file ? system_.file : "");
  } else if (read_system_authorities()) {
    // They were read now: in a handshake, reading would count against the server's timeout.
    authorities_ = system_.file;
  }
}

/// Whether the bundle has any. It may be absent.
bool TlsContext::read_system_authorities() {
  const bool has_any = !system_.file.empty() &&
                       openssl_.SSL_CTX_load_verify_file(context_, system_.file.c_str()) == 1;
  if (!system_.directories.empty())
    openssl_.SSL_CTX_load_verify_dir(context_, system_.directories.c_str());
  openssl_.ERR_clear_error();
  return has_any;
}

void TlsContext::try_directory_first() {
  tries_directory_ = true;
  const auto verify = [](X509_STORE_CTX* chain, void* context) {
    return static_cast<TlsContext*>(context)->verify(chain);
  };
  openssl_.SSL_CTX_set_cert_verify_callback(context_, verify, this);
}

int TlsContext::verify(X509_STORE_CTX* chain) {
  if (tries_directory_) {
    if (is_enough(openssl_, system_.directories, chain)) {
      openssl_.X509_STORE_CTX_set_error(chain, X509_V_OK);
      return 1;
    }
    read_system_authorities();
    tries_directory_ = false;
  }
  return openssl_.X509_verify_cert(chain);
}

std::optional<TlsSettingError> TlsContext::load_certificate(const TlsSettings& settings) {
  if (!settings.certificate) return std::nullopt;
  if (openssl_.SSL_CTX_use_certificate_chain_file(context_, settings.certificate->c_str()) != 1)
    return unusable_certificate(*settings.certificate);
  const std::string& key = settings.key ? *settings.key : *settings.certificate;
  if (openssl_.SSL_CTX_use_PrivateKey_file(context_, key.c_str(), SSL_FILETYPE_PEM) != 1) {
    const bool is_other = ERR_GET_LIB(openssl_.ERR_peek_error()) == ERR_LIB_X509;
    return unusable_key(settings, is_other);
  }
  if (openssl_.SSL_CTX_check_private_key(context_) != 1) return unusable_key(settings, true);
  return std::nullopt;
}

void TlsContext::keep_authorities(const TlsContext& from) {
  openssl_.SSL_CTX_set1_cert_store(context_, openssl_.SSL_CTX_get_cert_store(from.context_));
  authorities_ = from.authorities_;
  system_ = from.system_;
  if (from.tries_directory_) try_directory_first();
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

TlsSettingError TlsContext::unusable_certificate(const std::string& file) const {
  const unsigned long code = openssl_.ERR_peek_error();
  const bool is_absent =
      ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
  return unusable("cert", file, is_absent ? "it has no certificate" : "");
}

TlsSettingError TlsContext::unusable_key(const TlsSettings& settings, bool is_other) const {
  // OpenSSL's own errors for a file without a key depend on its version.
  std::string_view why = settings.key
                             ? "it has no usable private key"
                             : "it has no usable private key; name the key's file with --cert-key";
  if (needs_passphrase_) why = "its key needs a passphrase; use a key without one";
  if (is_other) why = "its key is not that of the certificate";
  if (settings.key) return unusable("cert-key", *settings.key, why);
  return unusable("cert", *settings.certificate, why);
}

TlsSettingError TlsContext::unusable(std::string setting, const std::string& file,
                                     std::string_view known_reason) const {
  std::string why(known_reason);
  // Prefer the system's error: OpenSSL has no better text for a missing file.
  if (::access(file.c_str(), R_OK) != 0) why = errno_text(errno);
  if (why.empty()) why = reason();
  return {std::move(setting), "cannot use " + escape_for_terminal(file) + ": " + why};
}

std::string TlsContext::reason() const {
  const unsigned long code = openssl_.ERR_get_error();
  openssl_.ERR_clear_error();
  const char* text = openssl_.ERR_reason_error_string(code);
  return escape_for_terminal(text != nullptr ? text : "not as expected");
}

}  // namespace redlock::redis
