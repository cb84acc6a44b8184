#include "store/owner_record.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../samples.hpp"

namespace redlock {
namespace {

using namespace std::chrono_literals;
using testing::some_owner;

TEST(OwnerRecord, HasTheDocumentedForm) {
  EXPECT_EQ(
      encode_owner(some_owner()),
      R"({"command":"backup.sh","host":"web1","note":"nightly","pid":4711,"user":"alice","v":1})");
}

TEST(OwnerRecord, GivesEveryFieldBack) {
  Owner owner = some_owner();
  owner.note = "quotes \" \\ line\nbreak \x1b[31m \xc3\xa4 \xe2\x80\xae \xf0\x9f\x94\x92";
  owner.host = "";
  const auto back = decode_owner(encode_owner(owner));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->host, owner.host);
  EXPECT_EQ(back->user, owner.user);
  EXPECT_EQ(back->command, owner.command);
  EXPECT_EQ(back->note, owner.note);
  EXPECT_EQ(back->pid, owner.pid);
}

TEST(OwnerRecord, EndsWithTheSlotsOfAWaiter) {
  const std::string record = encode_owner(some_owner());
  EXPECT_EQ(with_slots(record, {}), record);
  const std::string waiting = with_slots(record, {"phone1", "a:b"});
  EXPECT_TRUE(waiting.ends_with(R"(,"only":"phone1,a:b"})")) << waiting;
  EXPECT_EQ(decode_owner(waiting)->only, (std::vector<std::string>{"phone1", "a:b"}));
}

TEST(OwnerRecord, IsOneLine) {
  Owner owner = some_owner();
  owner.note = "a\nb\rc";
  EXPECT_EQ(encode_owner(owner).find_first_of("\r\n"), std::string::npos);
}

TEST(OwnerRecord, ReportsARunAndTheTtlOfItsRenewals) {
  Owner owner = some_owner();
  owner.supervised = true;
  owner.renewed_for = 30s;
  const std::string record = encode_owner(owner);
  EXPECT_EQ(record, R"({"command":"backup.sh","host":"web1","note":"nightly","pid":4711,)"
                    R"("renewed_ms":30000,"run":true,"user":"alice","v":1})");
  EXPECT_TRUE(decode_owner(record)->supervised);
  EXPECT_EQ(decode_owner(record)->renewed_for, 30s);
  EXPECT_FALSE(decode_owner(record)->finished.has_value());
}

TEST(OwnerRecord, NamesKeysOnlyVerbatim) {
  const auto back = [](const std::string& key) {
    Owner owner = some_owner();
    owner.next_key = key;
    owner.last_key = key;
    const auto decoded = decode_owner(encode_owner(owner));
    EXPECT_EQ(decoded->next_key, decoded->last_key);
    return decoded->next_key;
  };
  EXPECT_EQ(back("deploy: \"x\""), "deploy: \"x\"");
  EXPECT_EQ(back(std::string(max_owner_field, 'k')), std::string(max_owner_field, 'k'));
  EXPECT_EQ(back(std::string(max_owner_field + 1, 'k')), "");
  EXPECT_EQ(back("\xff"), "");
}

TEST(OwnerRecord, ReportsWhetherItsHolderCanBeAskedToStopAndWhoDidSo) {
  Owner owner = some_owner();
  EXPECT_FALSE(decode_owner(encode_owner(owner))->stoppable);
  owner.stoppable = true;
  owner.note = R"({"stop_request":{"reason":"no"}})";
  EXPECT_TRUE(decode_owner(encode_owner(owner))->stoppable);
  EXPECT_FALSE(stop_request_in(encode_owner(owner)));
  owner.stop_request = StopRequest{"web1", "alice", "wrong \"branch\""};
  const auto asked = stop_request_in(encode_owner(owner));
  ASSERT_TRUE(asked);
  EXPECT_EQ(encode_stop_request(*asked), encode_stop_request(*owner.stop_request));
  EXPECT_EQ(decode_owner(encode_owner(owner))->stop_request->reason, asked->reason);
  for (const char* const none : {"", "{}", R"({"stop_request":1})", R"(["stop_request"])"}) {
    EXPECT_FALSE(stop_request_in(none)) << none;
  }
}

TEST(OwnerRecord, ReportsTheNewerRunThatReplacesThisOneUnlessItIsAskedToStopByHand) {
  Owner owner = some_owner();
  owner.note = R"("place":{"ticket":1,"waiter":"no"})";
  EXPECT_FALSE(decode_owner(encode_owner(owner))->place);
  owner.place = Place{17, "ab.1"};
  const std::string record = encode_owner(owner);
  // Scripts read it in this form.
  EXPECT_NE(record.find(R"("place":{"ticket":17,"waiter":"ab.1"})"), std::string::npos) << record;
  EXPECT_EQ(decode_owner(record)->place, owner.place);
  EXPECT_FALSE(stop_request_in(record));

  // As a script adds it.
  const auto with = [](std::string text, const std::string& field, const StopRequest& request) {
    text.back() = ',';
    return text + "\"" + field + "\":" + encode_stop_request(request) + "}";
  };
  const StopRequest newer{"web2", "bob", "commit 2", Place{18, "cd.2"}};
  const std::string replaced = with(record, "replaced_by", newer);
  ASSERT_TRUE(stop_request_in(replaced));
  EXPECT_EQ(stop_request_in(replaced)->newer, newer.newer);
  EXPECT_EQ(stop_request_in(replaced)->reason, "commit 2");
  EXPECT_EQ(decode_owner(replaced)->place, owner.place);
  const std::string by_hand = with(replaced, "stop_request", {"web1", "alice", "why"});
  EXPECT_FALSE(stop_request_in(by_hand)->newer);
  EXPECT_EQ(stop_request_in(by_hand)->user, "alice");
  for (const char* const none : {R"({"replaced_by":{}})", R"({"replaced_by":{"place":{}}})",
                                 R"({"replaced_by":{"place":{"ticket":-1}}})"}) {
    EXPECT_FALSE(stop_request_in(none)) << none;
  }
}

TEST(OwnerRecord, ReportsHowACommandEndedWhoseLeaseIsKept) {
  Owner owner = some_owner();
  owner.renewed_for = Duration::zero();
  owner.finished = Finished{90s, 3, std::nullopt};
  auto back = decode_owner(encode_owner(owner));
  EXPECT_EQ(back->renewed_for, Duration::zero());
  ASSERT_TRUE(back->finished.has_value());
  EXPECT_EQ(back->finished->expire_in, 90s);
  EXPECT_EQ(back->finished->exit_code, 3);
  EXPECT_EQ(back->finished->signal, std::nullopt);
  owner.finished = Finished{90s, std::nullopt, 15};
  back = decode_owner(encode_owner(owner));
  EXPECT_EQ(back->finished->exit_code, std::nullopt);
  EXPECT_EQ(back->finished->signal, 15);
}

TEST(OwnerRecord, KnowsNoMoreThanAnOlderOneReports) {
  const auto owner = decode_owner(encode_owner(some_owner()));
  EXPECT_FALSE(owner->supervised);
  EXPECT_FALSE(owner->renewed_for.has_value());
  EXPECT_FALSE(owner->finished.has_value());
  for (const char* odd : {R"({"run":1,"renewed_ms":-1,"kept_ms":"x"})",
                          R"({"renewed_ms":99999999999999999,"kept_ms":1.5})"}) {
    const auto strange = decode_owner(odd);
    EXPECT_FALSE(strange->supervised) << odd;
    EXPECT_FALSE(strange->renewed_for.has_value()) << odd;
    EXPECT_FALSE(strange->finished.has_value()) << odd;
  }
}

TEST(OwnerRecord, MarksAHoldThatWasExtendedJustBeforeItsEnd) {
  Owner owner = some_owner();
  owner.hold_for = Ttl::max + 300 * 24h;
  EXPECT_EQ(decode_owner(encode_owner(owner))->hold_for, owner.hold_for);
  EXPECT_FALSE(shows_lift(encode_owner(owner)));
}

TEST(OwnerRecord, ReplacesWhatIsNotUtf8) {
  Owner owner = some_owner();
  owner.command = "a\xff\xc3";
  EXPECT_EQ(decode_owner(encode_owner(owner))->command, "a\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(OwnerRecord, KeepsALongNote) {
  Owner owner = some_owner();
  owner.note = std::string(max_owner_field, 'x');
  EXPECT_EQ(decode_owner(encode_owner(owner))->note, owner.note);
}

TEST(OwnerRecord, CutsWhatOthersMadeTooLong) {
  const auto owner = decode_owner(R"({"host":")" + std::string(max_owner_field + 1, 'x') + R"("})");
  EXPECT_EQ(owner->host.size(), max_owner_field);
  // Between characters, and with the mark that it goes on.
  const auto cut =
      decode_owner(R"({"host":")" + std::string(max_owner_field - 1, 'x') + "\xc3\xa4" + R"("})");
  EXPECT_EQ(cut->host, std::string(max_owner_field - 3, 'x') + "\xe2\x80\xa6");
}

TEST(OwnerRecord, IsReadFromAnyObject) {
  const auto owner = decode_owner("{}");
  ASSERT_TRUE(owner.has_value());
  EXPECT_EQ(owner->host + owner->user + owner->command + owner->note, "");
  EXPECT_EQ(owner->pid, 0);
  EXPECT_EQ(decode_owner(R"({"v":99,"host":"web1","new":[{}]})")->host, "web1");
}

TEST(OwnerRecord, ReportsWhetherANewerVersionWroteIt) {
  EXPECT_TRUE(decode_owner(R"({"v":2})")->newer);
  EXPECT_FALSE(decode_owner(encode_owner(some_owner()))->newer);
  for (const char* other : {R"({})", R"({"v":-1})", R"({"v":"2"})"})
    EXPECT_FALSE(decode_owner(other)->newer) << other;
}

TEST(OwnerRecord, LeavesFieldsOfTheWrongTypeEmpty) {
  const auto owner =
      decode_owner(R"({"host":1,"user":null,"command":["x"],"note":{"a":1},"pid":"12"})");
  ASSERT_TRUE(owner.has_value());
  EXPECT_EQ(owner->host + owner->user + owner->command + owner->note, "");
  EXPECT_EQ(owner->pid, 0);
}

TEST(OwnerRecord, HasNoProcessThatCannotBe) {
  for (const char* pid : {"-1", "1.5", "1e3", "2147483648", "4294967297", "18446744073709551615",
                          "99999999999999999999", "true"}) {
    EXPECT_EQ(decode_owner(std::string(R"({"pid":)") + pid + "}")->pid, 0) << pid;
  }
  EXPECT_EQ(decode_owner(R"({"pid":2147483647})")->pid, 2147483647);
}

TEST(OwnerRecord, IsNotReadFromAnythingElse) {
  for (const std::string& text : std::vector<std::string>{
           "", " ", "null", "1", "\"x\"", "[]", "{", "{}}", "{\"host\":\"\xff\"}", "{'host':1}",
           "host", std::string(60'000, '[')}) {
    EXPECT_FALSE(decode_owner(text).has_value()) << text.substr(0, 20);
  }
}

TEST(OwnerRecord, IsTheOwnerAsServersStoreIt) {
  Owner owner = some_owner();
  for (const bool supervised : {false, true}) {
    owner.supervised = supervised;
    const OwnerRecord record(owner);
    EXPECT_EQ(record.text(), encode_owner(owner));
    EXPECT_EQ(record.supervised(), supervised);
  }
}

}  // namespace
}  // namespace redlock
