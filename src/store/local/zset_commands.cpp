#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "store/local/command_parts.hpp"

namespace redlock::local::commands {
namespace {

using Ranking = SortedSet::Ranking;

/// One end of a range of scores: `5`, `(5` (without 5 itself), `-inf`.
struct Bound {
  double score;
  bool exclusive;
};

/// As Redis reads it: up to a NUL, blanks in front allowed, nothing at all is 0.
std::optional<Bound> read_bound(const std::string& text) {
  const bool exclusive = text.starts_with('(');
  const char* begin = text.c_str() + (exclusive ? 1 : 0);
  char* end = nullptr;
  const double score = std::strtod(begin, &end);
  if (*end != '\0' || std::isnan(score)) return std::nullopt;
  return Bound{score, exclusive};
}

struct Range {
  Bound min;
  Bound max;

  [[nodiscard]] bool holds(double score) const {
    return (min.exclusive ? score > min.score : score >= min.score) && (max.exclusive ? score < max.score : score <= max.score);
  }
};

std::optional<Range> read_range(const std::string& min, const std::string& max) {
  const auto lower = read_bound(min);
  const auto upper = read_bound(max);
  if (!lower || !upper) return std::nullopt;
  return Range{*lower, *upper};
}

/// Members with scores in the range, lowest first.
std::vector<Ranking::value_type> members_in(const SortedSet& zset, const Range& range) {
  std::vector<Ranking::value_type> members;
  for (auto at = zset.ranking().lower_bound({range.min.score, std::string()}); at != zset.ranking().end(); ++at) {
    if (at->first > range.max.score) break;
    if (range.holds(at->first)) members.push_back(*at);
  }
  return members;
}

template <class Iterator>
Reply members_reply(Iterator begin, Iterator end, bool with_scores) {
  std::vector<Reply> elements;
  for (auto at = begin; at != end; ++at) {
    elements.push_back(text_reply(at->second));
    if (with_scores) elements.push_back(text_reply(write_float(at->first)));
  }
  return array_reply(std::move(elements));
}

struct AddOptions {
  bool only_new = false;
  bool only_there = false;
  bool count_changed = false;
  std::size_t first_score = 2;
};

AddOptions read_add_options(Arguments arguments) {
  AddOptions options;
  for (; options.first_score < arguments.size(); ++options.first_score) {
    const std::string& word = arguments[options.first_score];
    if (is_word(word, "NX")) {
      options.only_new = true;
    } else if (is_word(word, "XX")) {
      options.only_there = true;
    } else if (is_word(word, "CH")) {
      options.count_changed = true;
    } else {
      break;
    }
  }
  return options;
}

struct RangeOptions {
  bool with_scores = false;
  std::int64_t offset = 0;
  std::int64_t limit = -1;  ///< negative: all
};

/// The error to answer with, or nothing.
std::optional<std::string_view> read_range_options(Arguments arguments, bool may_limit, RangeOptions& options) {
  for (std::size_t i = 4; i < arguments.size(); ++i) {
    if (is_word(arguments[i], "WITHSCORES")) {
      options.with_scores = true;
    } else if (may_limit && is_word(arguments[i], "LIMIT") && i + 2 < arguments.size()) {
      const auto offset = read_integer(arguments[i + 1]);
      const auto limit = read_integer(arguments[i + 2]);
      if (!offset || !limit) return not_an_integer;
      options.offset = *offset;
      options.limit = *limit;
      i += 2;
    } else {
      return syntax_error;
    }
  }
  return std::nullopt;
}

std::int64_t size_of(const SortedSet& zset) {
  return static_cast<std::int64_t>(zset.size());
}

}  // namespace

Reply zadd(Keyspace& keyspace, Arguments arguments) {
  const AddOptions options = read_add_options(arguments);
  const Arguments pairs = arguments.subspan(options.first_score);
  if (pairs.empty() || pairs.size() % 2 == 1) return error_reply(std::string(syntax_error));
  if (options.only_new && options.only_there) return error_reply("ERR XX and NX options at the same time are not compatible");
  std::vector<double> scores;
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    const auto score = read_float(pairs[i]);
    if (!score) return error_reply(std::string(not_a_float));
    scores.push_back(*score);
  }
  const auto found = value_of<SortedSet>(keyspace, arguments[1]);
  if (!found) return error_reply(std::string(wrong_type));
  if (*found == nullptr && options.only_there) return integer_reply(0);
  SortedSet& zset = *found != nullptr ? **found : std::get<SortedSet>(keyspace.put(arguments[1], SortedSet()).value);
  std::int64_t added = 0;
  std::int64_t changed = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const std::string& member = pairs[2 * i + 1];
    const auto before = zset.score(member);
    if (before ? options.only_new : options.only_there) continue;
    if (!before) {
      ++added;
    } else if (*before != scores[i]) {
      ++changed;
    }
    // Redis keeps -0 as 0 while a set is small.
    zset.put(member, scores[i] == 0 ? 0.0 : scores[i]);
  }
  return integer_reply(options.count_changed ? added + changed : added);
}

Reply zscore(Keyspace& keyspace, Arguments arguments) {
  const auto zset = value_of<SortedSet>(keyspace, arguments[1]);
  if (!zset) return error_reply(std::string(wrong_type));
  const auto score = *zset != nullptr ? (*zset)->score(arguments[2]) : std::nullopt;
  return score ? text_reply(write_float(*score)) : nil_reply();
}

Reply zrank(Keyspace& keyspace, Arguments arguments) {
  const auto zset = value_of<SortedSet>(keyspace, arguments[1]);
  if (!zset) return error_reply(std::string(wrong_type));
  const auto score = *zset != nullptr ? (*zset)->score(arguments[2]) : std::nullopt;
  if (!score) return nil_reply();
  const Ranking& ranking = (*zset)->ranking();
  return integer_reply(std::distance(ranking.begin(), ranking.find({*score, arguments[2]})));
}

Reply zrem(Keyspace& keyspace, Arguments arguments) {
  const auto zset = value_of<SortedSet>(keyspace, arguments[1]);
  if (!zset) return error_reply(std::string(wrong_type));
  if (*zset == nullptr) return integer_reply(0);
  std::int64_t removed = 0;
  for (const std::string& member : arguments.subspan(2)) removed += (*zset)->erase(member) ? 1 : 0;
  if ((*zset)->size() == 0) keyspace.erase(arguments[1]);
  return integer_reply(removed);
}

Reply zcard(Keyspace& keyspace, Arguments arguments) {
  const auto zset = value_of<SortedSet>(keyspace, arguments[1]);
  if (!zset) return error_reply(std::string(wrong_type));
  return integer_reply(*zset != nullptr ? size_of(**zset) : 0);
}

Reply zcount(Keyspace& keyspace, Arguments arguments) {
  const auto range = read_range(arguments[2], arguments[3]);
  if (!range) return error_reply(std::string(not_a_range));
  const auto zset = value_of<SortedSet>(keyspace, arguments[1]);
  if (!zset) return error_reply(std::string(wrong_type));
  return integer_reply(*zset != nullptr ? static_cast<std::int64_t>(members_in(**zset, *range).size()) : 0);
}

Reply zrange(Keyspace& keyspace, Arguments arguments) {
  RangeOptions options;
  if (const auto wrong = read_range_options(arguments, /*may_limit=*/false, options)) return error_reply(std::string(*wrong));
  const auto start = read_integer(arguments[2]);
  const auto stop = read_integer(arguments[3]);
  if (!start || !stop) return error_reply(std::string(not_an_integer));
  const auto zset = value_of<SortedSet>(keyspace, arguments[1]);
  if (!zset) return error_reply(std::string(wrong_type));
  if (*zset == nullptr) return array_reply({});
  const std::int64_t size = size_of(**zset);
  const std::int64_t first = std::max<std::int64_t>(*start < 0 ? *start + size : *start, 0);
  const std::int64_t last = std::min(*stop < 0 ? *stop + size : *stop, size - 1);
  if (first > last) return array_reply({});
  const Ranking& ranking = (*zset)->ranking();
  return members_reply(std::next(ranking.begin(), first), std::next(ranking.begin(), last + 1), options.with_scores);
}

Reply zrangebyscore(Keyspace& keyspace, Arguments arguments) {
  RangeOptions options;
  if (const auto wrong = read_range_options(arguments, /*may_limit=*/true, options)) return error_reply(std::string(*wrong));
  const auto range = read_range(arguments[2], arguments[3]);
  if (!range) return error_reply(std::string(not_a_range));
  const auto zset = value_of<SortedSet>(keyspace, arguments[1]);
  if (!zset) return error_reply(std::string(wrong_type));
  if (*zset == nullptr) return array_reply({});
  const auto members = members_in(**zset, *range);
  const auto size = static_cast<std::int64_t>(members.size());
  if (options.offset < 0 || options.offset >= size) return array_reply({});
  const std::int64_t count = options.limit < 0 ? size - options.offset : std::min(options.limit, size - options.offset);
  const auto first = members.begin() + options.offset;
  return members_reply(first, first + count, options.with_scores);
}

Reply zremrangebyscore(Keyspace& keyspace, Arguments arguments) {
  const auto range = read_range(arguments[2], arguments[3]);
  if (!range) return error_reply(std::string(not_a_range));
  const auto zset = value_of<SortedSet>(keyspace, arguments[1]);
  if (!zset) return error_reply(std::string(wrong_type));
  if (*zset == nullptr) return integer_reply(0);
  const auto members = members_in(**zset, *range);
  for (const auto& [score, member] : members) (*zset)->erase(member);
  if ((*zset)->size() == 0) keyspace.erase(arguments[1]);
  return integer_reply(static_cast<std::int64_t>(members.size()));
}

}  // namespace redlock::local::commands
