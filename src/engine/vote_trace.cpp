#include "engine/vote_trace.hpp"

namespace redlock {
namespace {

std::string_view word_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::silent:
      return "silent";
    case FaultKind::denied:
      return "denied";
    case FaultKind::unavailable:
      return "unavailable";
    case FaultKind::misconfigured:
      return "misconfigured";
    case FaultKind::garbage:
      break;
  }
  return "garbage";
}

}  // namespace

std::string VoteText::operator()(const Granted& vote) const {
  return "granted, fence " + std::to_string(vote.fence.value());
}

std::string VoteText::operator()(const Held& vote) const {
  return vote.holder.foreign ? "held, foreign" : "held";
}

std::string VoteText::operator()(const Extended& vote) const {
  std::string text(protocol::word::extended);
  if (vote.stop_request) text += ", asked to stop";
  return text;
}

std::string VoteText::operator()(const NotOurs& vote) const {
  switch (vote.why) {
    case NotOurs::Why::gone:
      return "not ours: gone";
    case NotOurs::Why::released:
      return "not ours: released";
    case NotOurs::Why::held:
      break;
  }
  return "not ours: held";
}

std::string VoteText::operator()(const Fault& fault) const {
  return std::string(word_of(fault.kind)) + ": " + fault.text;
}

}  // namespace redlock
