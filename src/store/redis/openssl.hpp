#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <string>

#include "store/redis/system_authorities.hpp"
#include "support/result.hpp"

static_assert(OPENSSL_VERSION_MAJOR >= 3, "the names below are those of OpenSSL 3");

/// Every function of OpenSSL that we call, including those that macros of its headers call.
// clang-format off
#define REDLOCK_OPENSSL_FUNCTIONS(use)        \
  use(BIO_ctrl)                               \
  use(BIO_new)                                \
  use(BIO_read)                               \
  use(BIO_s_mem)                              \
  use(BIO_write)                              \
  use(ERR_clear_error)                        \
  use(ERR_get_error)                          \
  use(ERR_peek_error)                         \
  use(ERR_reason_error_string)                \
  use(OPENSSL_init_ssl)                       \
  use(SSL_CTX_check_private_key)              \
  use(SSL_CTX_ctrl)                           \
  use(SSL_CTX_free)                           \
  use(SSL_CTX_get0_certificate)               \
  use(SSL_CTX_get0_privatekey)                \
  use(SSL_CTX_get_cert_store)                 \
  use(SSL_CTX_load_verify_dir)                \
  use(SSL_CTX_load_verify_file)               \
  use(SSL_CTX_new)                            \
  use(SSL_CTX_set1_cert_store)                \
  use(SSL_CTX_set_cert_verify_callback)       \
  use(SSL_CTX_set_default_passwd_cb)          \
  use(SSL_CTX_set_default_passwd_cb_userdata) \
  use(SSL_CTX_set_options)                    \
  use(SSL_CTX_set_verify)                     \
  use(SSL_CTX_use_PrivateKey)                 \
  use(SSL_CTX_use_PrivateKey_file)            \
  use(SSL_CTX_use_certificate)                \
  use(SSL_CTX_use_certificate_chain_file)     \
  use(SSL_ctrl)                               \
  use(SSL_do_handshake)                       \
  use(SSL_free)                               \
  use(SSL_get0_param)                         \
  use(SSL_get_error)                          \
  use(SSL_get_verify_result)                  \
  use(SSL_new)                                \
  use(SSL_read)                               \
  use(SSL_set1_host)                          \
  use(SSL_set_bio)                            \
  use(SSL_set_connect_state)                  \
  use(SSL_set_hostflags)                      \
  use(SSL_shutdown)                           \
  use(SSL_write)                              \
  use(TLS_client_method)                      \
  use(X509_STORE_CTX_free)                    \
  use(X509_STORE_CTX_get0_cert)               \
  use(X509_STORE_CTX_get0_param)              \
  use(X509_STORE_CTX_get0_untrusted)          \
  use(X509_STORE_CTX_init)                    \
  use(X509_STORE_CTX_new)                     \
  use(X509_STORE_CTX_set_error)               \
  use(X509_STORE_free)                        \
  use(X509_STORE_load_path)                   \
  use(X509_STORE_new)                         \
  use(X509_VERIFY_PARAM_set1)                 \
  use(X509_VERIFY_PARAM_set1_ip_asc)          \
  use(X509_get_default_cert_dir)              \
  use(X509_get_default_cert_dir_env)          \
  use(X509_get_default_cert_file)             \
  use(X509_get_default_cert_file_env)         \
  use(X509_verify_cert)                       \
  use(X509_verify_cert_error_string)
// clang-format on

namespace redlock::redis {

/// OpenSSL. It is the system's, loaded for the first server with TLS: if it were linked, loading it
/// would take longer than the rest of every start (docs/decisions/program.md). With REDLOCK_STATIC
/// it is part of the program. The members are OpenSSL's functions, under their own names.
struct OpenSsl {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name that is declared cannot have any.
#define REDLOCK_MEMBER(name) decltype(&::name) name = nullptr;
  REDLOCK_OPENSSL_FUNCTIONS(REDLOCK_MEMBER)
#undef REDLOCK_MEMBER

  /// The library, which stays loaded; or the reason why it cannot be loaded, as one clause.
  static Result<const OpenSsl*, std::string> load();

  /// Where this OpenSSL looks for the system's CAs.
  [[nodiscard]] SystemAuthorities system_authorities() const;
};

}  // namespace redlock::redis
