#include "store/redis/error_reply.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace redlock::redis {
namespace {

struct Row {
  std::string error;
  FaultKind kind;
  std::string says;  ///< a part of the text
};

/// The words of Redis 5 to 7 and Valkey; those of scripts as a script hands them on.
const std::vector<Row>& rows() {
  using enum FaultKind;
  static const std::vector<Row> all{
      {"LOADING Redis is loading the dataset in memory", unavailable, "loading"},
      {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
       unavailable, "busy"},
      {"READONLY You can't write against a read only replica.", unavailable, "read-only replica"},
      {"READONLY You can't write against a read only replica. script: 5ecf, on @user_script:44.",
       unavailable, "read-only replica"},
      {"OOM command not allowed when used memory > 'maxmemory'.", unavailable, "out of memory"},
      {"ERR Error running script (call to f_5ecf): @user_script:44: @user_script: 44: -OOM command "
       "not allowed when used memory > "
       "'maxmemory'.",
       unavailable, "out of memory"},
      {"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to "
       "disk.",
       unavailable, "save to disk"},
      {"NOREPLICAS Not enough good replicas to write.", unavailable, "replicas"},
      {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
       unavailable, "lost its master"},
      {"CLUSTERDOWN The cluster is down", unavailable, "cluster is down"},
      {"CLUSTERDOWN Hash slot not served", unavailable, "cluster is down"},
      {"TRYAGAIN Multiple keys request during rehashing of slot", unavailable, "moving"},
      {"ERR max number of clients reached", unavailable, "maxclients"},
      {"NOAUTH Authentication required.", denied, "password"},
      {"WRONGPASS invalid username-password pair or user is disabled.", denied,
       "wrong user or password"},
      {"ERR invalid password", denied, "wrong password"},
      {"ERR AUTH <password> called without any password configured for the default user. Are you "
       "sure your configuration is correct?",
       denied, "the server has none"},
      {"ERR Client sent AUTH, but no password is set", denied, "the server has none"},
      {"ERR wrong number of arguments for 'auth' command", denied, "no users"},
      {"NOPERM this user has no permissions to run the 'eval' command or its subcommand", denied,
       "NOPERM"},
      {"NOPERM User deploy has no permissions to run the 'eval' command", denied, "NOPERM"},
      {"NOPERM this user has no permissions to access one of the keys used as arguments", denied,
       "NOPERM"},
      {"ERR The user executing the script can't run this command or subcommand script: 5ecf, on "
       "@user_script:44.",
       denied, "can't run this command"},
      {"ERR The user executing the script can't access at least one of the keys mentioned in the "
       "command arguments",
       denied, "at least one of the keys"},
      {"ERR ACL failure in script: User deploy has no permissions to run the 'hset' command "
       "script: 5ecf, on @user_script:44.",
       denied, "permissions to run the 'hset' command"},
      {"ERR ACL failure in script: User deploy has no permissions to access one of the keys used "
       "as arguments script: 5ecf, on "
       "@user_script:44.",
       denied, "lacks access to the key"},
      {"DENIED Redis is running in protected mode because protected mode is enabled and no "
       "password is set for the default user.",
       denied, "protected mode"},
      {"MOVED 3999 127.0.0.1:6381", misconfigured, "Redis Cluster"},
      {"ASK 3999 127.0.0.1:6381", misconfigured, "Redis Cluster"},
      {"ERR DB index is out of range", misconfigured, "no such database"},
      {"ERR invalid DB index", misconfigured, "no such database"},
      {"ERR SELECT is not allowed in cluster mode", misconfigured, "Redis Cluster"},
      {"ERR unknown command 'EVAL', with args beginning with: 'x'", misconfigured,
       "if it is a Sentinel, write sentinel://"},
      {"ERR unknown command 'EVALSHA', with args beginning with: 'x'", misconfigured,
       "if it is a Sentinel, write sentinel://"},
      {"ERR unknown command 'SENTINEL', with args beginning with: 'x'", misconfigured,
       "it is not a Sentinel: write redis://"},
      {"ERR unknown command 'INFO'", misconfigured, "unknown command"},
      {"ERR unknown command `EVAL`, with args beginning with: `x`, ", misconfigured,
       "unknown command"},
      {"FENCE the fence counter cannot be used: no number or too large", misconfigured,
       "fence counter"},
      {"ERR Unknown Redis command called from script script: 5ecf, on @user_script:44.",
       misconfigured, "`redlock-cli doctor` names it"},
      {"ERR Error running script (call to f_5ecf): @user_script:44: @user_script: 44: Unknown "
       "Redis "
       "command called from Lua script",
       misconfigured, "renamed, forbidden or missing"},
      {"ERR command eval not support for your account", denied, "renamed, forbidden or missing"},
      // No code where the error begins.
      {"ERR the TASK ASK failed", unavailable, "it reports an error: ERR the TASK ASK failed"},
      {"ERR ASKED for too much", unavailable, "it reports an error"},
      {"ERR no room: OOMPH", unavailable, "it reports an error"},
      {"BUSYGROUP Consumer Group name already exists", unavailable, "it reports an error"},
      {"ERR something new", unavailable, "it reports an error: ERR something new"},
      {"", unavailable, "it reports an error"},
  };
  return all;
}

TEST(ErrorReply, MeansTheSameWhenOnlyItsWordsDiffer) {
  EXPECT_TRUE(means_the_same("ERR what is secret?", "ERR what is ***?"));
  for (const std::string text :
       {"ERR AUTH <secret> called without any password configured for the default user",
        "LOADING secret is loading", "NOSCRIPT secret", "DENIED secret", "WRONGPASS secret"}) {
    EXPECT_TRUE(means_the_same(text, text)) << text;
    EXPECT_FALSE(means_the_same(text, "ERR ***")) << text;
  }
  const std::string moved = "MOVED 3999 secret:6379";
  EXPECT_FALSE(means_the_same("MOVED 3999 ***:6379", moved));
}

TEST(FaultOfError, ShowsNothingThatCouldBeAToken) {
  const std::string token(32, 'a');
  const Fault fault =
      fault_of_error("ERR no EVALSHA '" + token + "' '1" + token + "' for deadbeef");
  EXPECT_EQ(fault.text, "it reports an error: ERR no EVALSHA '***' '***' for deadbeef");
}

TEST(FaultOfError, KnowsWhatServersAnswer) {
  for (const Row& row : rows()) {
    const Fault fault = fault_of_error(row.error);
    EXPECT_EQ(fault.kind, row.kind) << row.error << " -> " << fault.text;
    EXPECT_NE(fault.text.find(row.says), std::string::npos) << row.error << " -> " << fault.text;
  }
}

TEST(FaultOfError, NeverHidesALock) {
  // Silence is what may hide another's lock; an error is an answer.
  for (const Row& row : rows())
    EXPECT_NE(fault_of_error(row.error).kind, FaultKind::silent) << row.error;
}

TEST(FaultOfError, KnowsWhatWasRefusedBeforeAnythingWasDone) {
  for (const char* error :
       {"BUSY Redis is busy running a script.", "LOADING Redis is loading the dataset in memory",
        "READONLY You can't write against a read only replica.",
        "MISCONF Errors writing to the AOF file", "CLUSTERDOWN The cluster is down",
        "MASTERDOWN Link with MASTER is down", "NOREPLICAS Not enough good replicas",
        "TRYAGAIN Multiple keys request during rehashing of slot",
        "ERR max number of clients reached"}) {
    EXPECT_TRUE(fault_of_error(error).refused) << error;
  }
  // A script may have done a part of what it was to do; and what is denied is denied again.
  for (const char* error :
       {"OOM command not allowed when used memory > 'maxmemory'.", "ERR something new", "NOPERM no",
        "NOAUTH no", "NOSCRIPT No matching script."}) {
    EXPECT_FALSE(fault_of_error(error).refused) << error;
  }
}

TEST(FaultOfError, ShowsNoRawEscapes) {
  for (const std::string& bytes :
       {std::string("ERR \x1b]0;title\x07\r\n\x9b\xc2\x9b\xe2\x80\xae\x7f"),
        std::string("NOPERM \x1b[2J"), std::string("ERR a\0b", 7)}) {
    const std::string text = fault_of_error(bytes).text;
    for (const char c : text) EXPECT_TRUE(c >= ' ' && c != 0x7f) << text;
  }
  EXPECT_EQ(fault_of_error("ERR \x1b[2J").text, "it reports an error: ERR \\x1b[2J");
}

TEST(FaultOfError, IsOneClauseHoweverLongTheError) {
  const std::string text = fault_of_error("ERR " + std::string(100'000, 'x')).text;
  EXPECT_LT(text.size(), 300U);
  EXPECT_LT(fault_of_error("NOPERM " + std::string(100'000, '\x1b')).text.size(), 1000U);
}

TEST(FaultOfError, LeavesOutWhatRedisAddsAboutTheScript) {
  EXPECT_EQ(fault_of_error("ERR strange script: 5ecf00, on @user_script:44.").text,
            "it reports an error: ERR strange");
}

TEST(FaultOfError, IsNeverEmpty) {
  for (const char* const error : {"", " script: NOPERM 5ecf", ", with args beginning with: NOPERM"})
    EXPECT_NE(fault_of_error(error).text, "") << error;
}

TEST(FaultOfError, DoesNotRepeatWhatWeSent) {
  // A server without AUTH (or with another name for it) shows the arguments of the command it does
  // not know.
  const Fault fault =
      fault_of_error("ERR unknown command 'AUTH', with args beginning with: 'hunter2' ");
  EXPECT_EQ(fault.text, "ERR unknown command 'AUTH'");
  // And they do not decide what the error means.
  EXPECT_EQ(fault_of_error("ERR unknown command 'AUTH', with args beginning with: 'LOADING' ").kind,
            FaultKind::misconfigured);
}

TEST(IsNoscript, KnowsTheErrorAndNoOther) {
  EXPECT_TRUE(is_noscript("NOSCRIPT No matching script. Please use EVAL."));
  EXPECT_FALSE(is_noscript("ERR NOSCRIPT"));
  EXPECT_FALSE(is_noscript("NOPERM"));
  EXPECT_FALSE(is_noscript(""));
}

TEST(IsReadOnly, KnowsTheErrorOutsideAndInsideOfAScript) {
  EXPECT_TRUE(is_read_only("READONLY You can't write against a read only replica."));
  EXPECT_TRUE(is_read_only(
      "READONLY You can't write against a read only replica. script: 5ec, on @user_script:12."));
  EXPECT_TRUE(
      is_read_only("ERR Error running script (call to f_1): @user_script:9: -READONLY You can't "
                   "write against a read only slave."));
  EXPECT_FALSE(is_read_only(
      "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."));
}

TEST(IsRedirect, KnowsWhatWasDecidedBeforeAnythingWasDone) {
  for (const char* redirect :
       {"MOVED 1 h:1", "ASK 1 h:1", "TRYAGAIN Multiple keys request during rehashing of slot"}) {
    EXPECT_TRUE(is_redirect(redirect)) << redirect;
  }
  for (const char* other : {"ERR MOVED 1 h:1", "ASKING", "CLUSTERDOWN The cluster is down", ""})
    EXPECT_FALSE(is_redirect(other)) << other;
}

}  // namespace
}  // namespace redlock::redis
