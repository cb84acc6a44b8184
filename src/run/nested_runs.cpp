#include "run/nested_runs.hpp"

#include <unistd.h>

#include "child/descendants.hpp"
#include "child/title.hpp"
#include "run/nesting.hpp"

namespace redlock::run {

NestedRuns::NestedRuns() : own_name_(child::name_of(::getpid())) {}

void NestedRuns::look() {
  child::set_name(ending_holder);
  holders_ = child::living_descendants({::getpid()});
  std::erase_if(holders_, [](pid_t pid) { return child::name_of(pid) != nested_holder; });
}

void NestedRuns::wait_for_them() const {
  child::set_name(own_name_);
}

}  // namespace redlock::run
