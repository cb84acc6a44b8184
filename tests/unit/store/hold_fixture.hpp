#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "../samples.hpp"
#include "script_stores.hpp"
#include "store/owner_record.hpp"

namespace redlock::testing {

using namespace std::chrono_literals;

using Names = std::vector<std::string>;

/// A pool of these slots.
inline Mode devices(Names names) {
  const std::size_t slots = names.size();
  return {true, slots, 1, std::move(names)};
}

/// What is on hold: the whole lock, or its slot y alone.
enum class HoldKind { whole, slot };

/// Holds, at the embedded engine and at a real Redis.
class HoldFixture : public ::testing::TestWithParam<std::tuple<ScriptStoreKind, HoldKind>> {
 protected:
  static bool is_slot() { return std::get<HoldKind>(GetParam()) == HoldKind::slot; }
  static Mode mode() { return is_slot() ? devices({"y"}) : Mode(); }
  static Hold in(Names names) { return {true, {}, std::move(names)}; }
  static Hold way() { return is_slot() ? in({"y"}) : Hold(); }
  static Owner owner_of_hold(Duration length) {
    Owner owner = some_owner();
    if (is_slot()) owner.slots = 3;
    owner.hold_for = length;
    return owner;
  }
  static LeaseUser user() { return {"user1", encode_owner(some_owner())}; }

  template <class Vote>
  Vote done(asio::awaitable<Vote> question) {
    return drive_.run(std::move(question));
  }
  void hold(Ttl length = ttl(1h), const Mode& how = mode()) {
    AcquireRequest request{deploy(), token(), length, owner_of_hold(length.length()), how};
    const AcquireVote vote = done(server_.acquire(request, drive_.soon()));
    ASSERT_TRUE(answers<Granted>(vote));
  }
  AcquireVote attempt(const Mode& how = mode(), char digit = 'b') {
    Owner owner = some_owner();
    owner.slots = how.slots;
    return done(server_.acquire({deploy(), token(digit), ttl(), owner, how}, drive_.soon()));
  }
  ExtendVote extend(std::optional<LeaseUser> as, Ttl length, bool is_new = false) {
    ExtendRequest request{deploy(), token(), length, {}, {}, std::move(as), is_new};
    request.slot_names = way().slot_names;
    return done(server_.extend(std::move(request), drive_.soon()));
  }
  bool joins(Ttl length) { return answers<Extended>(extend(user(), length, /*is_new=*/true)); }
  ReleaseVote end_of_user() {
    ReleaseRequest request{deploy(), token()};
    request.user = user().id;
    return done(server_.release(request, drive_.soon()));
  }
  ReleaseVote lift(Duration lifted_for = 1h) {
    ReleaseRequest request{deploy(), token(), /*by_hand=*/true};
    request.tombstone_life = lifted_for;
    return done(server_.release(request, drive_.soon()));
  }
  /// Of a hold of an hour, a quarter of which has passed.
  HealVote heal(std::optional<LeaseUser> as = std::nullopt, const Hold& how = way()) {
    const Provenance known{15min, false, record()};
    return done(server_.heal({deploy(), token(), ttl(30s), Fence(7), known, how, std::move(as)},
                             drive_.soon()));
  }
  InspectVote inspect() { return done(server_.inspect(deploy(), std::nullopt, drive_.soon())); }
  InspectVote ask() {
    AskRequest question{deploy()};
    if (is_slot()) question.slot = "y";
    return done(server_.ask_holder(question, drive_.soon()));
  }
  /// Of the lock, or of the slot.
  Holder holder() {
    const InspectVote vote = is_slot() ? ask() : inspect();
    const auto* taken = std::get_if<Taken>(&vote);
    EXPECT_NE(taken, nullptr);
    return taken != nullptr ? taken->holder : Holder();
  }
  bool is_free() { return answers<Free>(inspect()); }
  std::int64_t pttl(const std::string& key = deploy().key()) {
    return store_->run({"PTTL", key}).integer;
  }

  Drive drive_;
  std::unique_ptr<ScriptStore> store_ = std::get<ScriptStoreKind>(GetParam()).make(drive_);
  LockServer& server_ = store_->client();
  HelperKeys helper_{deploy()};

 private:
  /// As the servers keep it: the lock has no token of a slot.
  static std::string record() {
    std::string record = encode_owner(owner_of_hold(1h));
    if (!is_slot()) return record;
    record.pop_back();
    return record + R"(,"token":")" + token().secret() + R"("})";
  }
};

inline std::string name_of_hold(const ::testing::TestParamInfo<HoldFixture::ParamType>& about) {
  return std::get<ScriptStoreKind>(about.param).name +
         (std::get<HoldKind>(about.param) == HoldKind::slot ? "Slot" : "Whole");
}

}  // namespace redlock::testing
