#include "proc/cgroup.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "../in_child.hpp"

namespace redlock::proc {
namespace {

using namespace testing;

constexpr const char* hybrid =
    "23 28 0:21 / /proc rw,nosuid - proc proc rw\n"
    "36 31 0:33 / /sys/fs/cgroup/devices rw,relatime - cgroup cgroup rw,devices\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n";

TEST(FindCgroup, BelowTheMountOfTheHierarchy) {
  EXPECT_EQ(find_cgroup("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n",
                        "0::/user.slice/a.scope\n"),
            "/sys/fs/cgroup/user.slice/a.scope");
}

TEST(FindCgroup, WhereverItIsMounted) {
  EXPECT_EQ(find_cgroup(hybrid, "9:name=systemd:/x\n4:memory:/y\n0::/\n"),
            "/sys/fs/cgroup/unified");
  EXPECT_EQ(find_cgroup(hybrid, "4:memory:/y\n0::/a\n"), "/sys/fs/cgroup/unified/a");
}

TEST(FindCgroup, IsFoundInAMountOfAPartOfTheHierarchy) {
  const char* const part = "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n";
  EXPECT_EQ(find_cgroup(part, "0::/docker/abc\n"), "/sys/fs/cgroup");
  EXPECT_EQ(find_cgroup(part, "0::/docker/abc/d\n"), "/sys/fs/cgroup/d");
  EXPECT_EQ(find_cgroup(part, "0::/docker/abcd\n"), std::nullopt);
  EXPECT_EQ(find_cgroup(part + std::string(hybrid), "0::/other\n"), "/sys/fs/cgroup/unified/other");
}

TEST(FindCgroup, BlanksInAPathAreEscaped) {
  EXPECT_EQ(find_cgroup("30 23 0:26 / /mnt/my\\040groups\\134 rw - cgroup2 none rw\n", "0::/a b\n"),
            "/mnt/my groups\\/a b");
}

TEST(FindCgroup, IsNulloptWithoutOne) {
  EXPECT_EQ(find_cgroup("", ""), std::nullopt);
  EXPECT_EQ(find_cgroup("36 31 0:33 / /sys/fs/cgroup rw - cgroup cgroup rw,devices\n", "0::/\n"),
            std::nullopt);
  EXPECT_EQ(find_cgroup("36 31 0:33 / /a\\040-\\040cgroup2 rw - tmpfs cgroup2 rw\n", "0::/\n"),
            std::nullopt);
  EXPECT_EQ(find_cgroup(hybrid, "4:memory:/y\n"), std::nullopt);
  EXPECT_EQ(find_cgroup(hybrid, "0::/../outside\n"), std::nullopt);
  EXPECT_EQ(find_cgroup("garbage\n - cgroup2 \n30", "0::/\n"), std::nullopt);
}

/// A directory as before Linux 5.14, without cgroup.kill, whose files have the content that we
/// write.
class OldCgroup {
 public:
  OldCgroup() { set_populated(true); }

  void set_populated(bool populated) const {
    std::ofstream(path() + "/cgroup.events")
        << "populated " << (populated ? 1 : 0) << "\nfrozen 0\n";
  }
  [[nodiscard]] const std::string& path() const { return directory_.path(); }
  void list(pid_t pid) const { std::ofstream(path() + "/cgroup.procs") << "0\n" << pid << "\n"; }
  void list_below(pid_t pid) const {
    std::filesystem::create_directory(path() + "/below");
    std::ofstream(path() + "/below/cgroup.procs") << pid << "\n";
  }

 private:
  Directory directory_;
};

TEST(Cgroup, WithoutCgroupKillItKillsEachProcessInItAndBelow) {
  in_child([] {
    const OldCgroup old;
    const pid_t here = forked([] { return ::pause(); });
    const pid_t below = forked([] { return ::pause(); });
    old.list(here);
    old.list_below(below);
    const Cgroup cgroup(old.path());
    cgroup.kill();
    EXPECT_EQ(WTERMSIG(status_of(here)), SIGKILL);
    EXPECT_EQ(WTERMSIG(status_of(below)), SIGKILL);
  });
}

TEST(Cgroup, IsPopulatedUntilTheKernelReportsOtherwise) {
  const OldCgroup old;
  old.list(0);
  const Cgroup cgroup(old.path());
  EXPECT_TRUE(cgroup.populated());
  old.set_populated(false);
  EXPECT_FALSE(cgroup.populated());
  EXPECT_TRUE(Cgroup("/no/such/cgroup").populated());  // unknown is no proof
}

}  // namespace
}  // namespace redlock::proc
