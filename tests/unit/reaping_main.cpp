#include <gtest/gtest.h>

#include <cstdlib>

#include "tools/reaper.hpp"

/// The tests run in a child of a process that survives them, so that nothing they start outlives
/// the run, however it ends. The time limit, in seconds, is in REDLOCK_TEST_LIMIT.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (GTEST_FLAG_GET(list_tests)) return RUN_ALL_TESTS();
  const char* limit = std::getenv("REDLOCK_TEST_LIMIT");
  const std::chrono::seconds seconds(limit != nullptr ? std::atoi(limit) : 0);
  return redlock::testing::run_and_reap([] { return RUN_ALL_TESTS(); }, seconds,
                                        redlock::testing::Leftovers::failure);
}
