#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "core/protocol.hpp"
#include "core/vote.hpp"
#include "store/lock_server.hpp"

namespace redlock {

/// A vote in a line of the trace (support/trace.hpp).
struct VoteText {
  std::string operator()(const Granted& vote) const;
  std::string operator()(const Held& vote) const;
  std::string_view operator()(const Queued&) const { return protocol::word::queued; }
  std::string_view operator()(const Duplicate&) const { return protocol::word::duplicate; }
  std::string_view operator()(const Raised&) const { return protocol::word::raised; }
  std::string_view operator()(const NotRaised&) const { return "not raised"; }
  std::string operator()(const Extended& vote) const;
  std::string operator()(const NotOurs& vote) const;
  std::string_view operator()(const Healed&) const { return protocol::word::healed; }
  std::string_view operator()(const Released&) const { return protocol::word::released; }
  std::string_view operator()(const Supervised&) const { return protocol::word::supervised; }
  std::string_view operator()(const Broken&) const { return protocol::word::broken; }
  std::string_view operator()(const NothingToBreak&) const { return "nothing to break"; }
  std::string_view operator()(const OtherFence&) const { return "other fence"; }
  std::string_view operator()(const ForeignKey&) const { return protocol::word::foreign; }
  std::string_view operator()(const Dismissed&) const { return protocol::word::dismissed; }
  std::string_view operator()(const Counted&) const { return protocol::word::counted; }
  std::string_view operator()(const Free&) const { return protocol::word::free; }
  std::string_view operator()(const Taken&) const { return protocol::word::taken; }
  std::string_view operator()(const LockList&) const { return "listed"; }
  std::string operator()(const Fault& fault) const;
};

template <class Vote>
std::string vote_text(const Vote& vote) {
  return std::visit([](const auto& given) { return std::string(VoteText()(given)); }, vote);
}

}  // namespace redlock
