#include "proc/signal_state.hpp"

#include <gtest/gtest.h>
#include <signal.h>

namespace redlock::proc {
namespace {

std::string status_text(const char* own, const char* shared, const char* blocked) {
  return std::string("Name:\ta\nState:\tS (sleeping)\nSigPnd:\t") + own + "\nShdPnd:\t" + shared +
         "\nSigBlk:\t" + blocked + "\nSigIgn:\t0000000000000000\n";
}

std::string stat_text(char state, int flags) {
  return std::string("7 (a) ") + state + " 1 7 7 0 -1 " + std::to_string(flags) +
         " 1 2 3 4 5 6 7 8 20 0 1 0 99 8 9\n";
}

constexpr const char* none = "0000000000000000";
constexpr int usual_flags = 0x400100;

std::optional<SignalState> state(char letter, int flags, const std::string& status) {
  return signal_state_in(stat_text(letter, flags), [&] { return status; });
}

TEST(SignalStateIn, ShowsPendingAndDeadlySignals) {
  const auto stopped =
      state('T', usual_flags, status_text(none, "0000000000004002", "0000000000004002"));
  ASSERT_TRUE(stopped.has_value());
  EXPECT_EQ(stopped->pending, mask_of(SIGTERM) | mask_of(SIGINT));
  EXPECT_FALSE(stopped->is_dying);
  EXPECT_TRUE(stopped->is_settled);

  for (const char* deadly : {"0000000000000100", "0000000000000400"}) {  // KILL, SEGV
    EXPECT_TRUE(state('R', usual_flags, status_text(deadly, none, none))->is_dying) << deadly;
    EXPECT_FALSE(state('R', usual_flags, status_text(deadly, none, deadly))->is_dying) << deadly;
  }
}

TEST(SignalStateIn, AnEndingSignalKillsAProcessThatDoesNotHandleIt) {
  const std::string term = "0000000000004000";
  const std::string status = status_text(none, term.c_str(), none);
  EXPECT_TRUE(state('R', usual_flags, status)->is_dying);
  EXPECT_FALSE(state('T', usual_flags, status)->is_dying);
  EXPECT_FALSE(state('R', usual_flags, status + "SigCgt:\t" + term + "\n")->is_dying);
}

TEST(SignalStateIn, ShowsAnExitInProgress) {
  const std::string status = status_text(none, none, none);
  EXPECT_TRUE(state('R', usual_flags | 0x4, status)->is_dying);
  EXPECT_TRUE(state('S', usual_flags | 0x4, status)->is_dying);
  EXPECT_TRUE(state('t', usual_flags | 0x400, status)->is_dying);
  EXPECT_TRUE(state('Z', usual_flags, status)->is_dying);
}

TEST(SignalStateIn, ARunningProcessMayBeReceivingASignal) {
  const std::string status = status_text(none, none, none);
  for (const char letter : {'R', 'D'}) {
    EXPECT_FALSE(state(letter, usual_flags, status)->is_dying) << letter;
    EXPECT_FALSE(state(letter, usual_flags, status)->is_settled) << letter;
  }
  EXPECT_TRUE(state('S', usual_flags, status)->is_settled);
}

TEST(SignalStateIn, IsNulloptWithoutAStat) {
  EXPECT_FALSE(signal_state_in("7 (a) S 1", [] { return std::string(); }).has_value());
  EXPECT_FALSE(signal_state(-1).has_value());
}

}  // namespace
}  // namespace redlock::proc
