#include "store/redis/system_authorities.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace redlock::redis {
namespace {

/// A root directory of its own, and neither of the two variables.
class SystemAuthoritiesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("SSL_CERT_FILE");
    ::unsetenv("SSL_CERT_DIR");
    std::string pattern = ::testing::TempDir() + "authorities.XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override {
    std::filesystem::remove_all(root_);
    ::unsetenv("SSL_CERT_FILE");
    ::unsetenv("SSL_CERT_DIR");
  }

  void make(const std::string& path) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << "certificates";
  }

  std::string root_;
};

TEST_F(SystemAuthoritiesTest, AreNoneInAnEmptyRoot) {
  const SystemAuthorities found = find_system_authorities(root_);
  EXPECT_EQ(found.file, "");
  EXPECT_EQ(found.directories, "");
}

TEST_F(SystemAuthoritiesTest, AreWhereTheDistributionKeepsThem) {
  for (const char* bundle :
       {"/etc/ssl/cert.pem", "/etc/ssl/ca-bundle.pem", "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/certs/ca-certificates.crt"}) {
    make(bundle);
    EXPECT_EQ(find_system_authorities(root_).file, root_ + bundle);
  }
  EXPECT_EQ(find_system_authorities(root_).directories,
            root_ + "/etc/ssl/certs:" + root_ + "/etc/pki/tls/certs");
}

TEST_F(SystemAuthoritiesTest, AreWhatTheVariablesName) {
  make("/etc/ssl/cert.pem");
  ::setenv("SSL_CERT_FILE", "/mine.pem", 1);
  EXPECT_EQ(find_system_authorities(root_).file, "/mine.pem");
  ::setenv("SSL_CERT_DIR", "/one:/two", 1);
  EXPECT_EQ(find_system_authorities(root_).directories, "/one:/two");
}

}  // namespace
}  // namespace redlock::redis
