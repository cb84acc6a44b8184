#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "store/script.hpp"
#include "support/result.hpp"

struct redisReader;

namespace redlock::redis {

/// The limits of a reply; a larger one is an attack or another program.
struct ReplyLimits {
  std::size_t depth = 4;           ///< arrays within arrays
  std::size_t elements = 64;       ///< of one array
  std::size_t bulk = 64 * 1024;    ///< bytes of one string
  std::size_t total = 256 * 1024;  ///< bytes of the whole reply, on the wire and in memory
};

/// What a reply may cost, and what has been spent on it so far.
struct ReplyBudget {
  ReplyLimits limits;
  std::size_t spent = 0;  ///< bytes of memory

  /// False, and nothing is spent, when it would be more than the limit.
  bool spend(std::size_t bytes) noexcept;
};

/// Bytes in, replies out: hiredis' parser with object hooks of our own that refuse what exceeds the
/// limits before memory is spent on it. Of a reply that is not complete it keeps what is built, at
/// most `total`, and what is not parsed yet, at most a string of the longest kind.
class ReplyReader {
 public:
  ReplyReader();
  ~ReplyReader();
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;

  /// Adds bytes from the server.
  void feed(std::string_view bytes);

  /// The next complete reply, or nothing while bytes are missing. An error is final: the connection
  /// is to be dropped; its text is one clause and holds none of the bytes.
  Result<std::optional<Reply>, std::string> next(const ReplyLimits& limits);

 private:
  struct Free {
    void operator()(redisReader* reader) const;
  };
  std::unique_ptr<redisReader, Free> reader_;
  std::size_t pending_ = 0;  ///< bytes fed that belong to no complete reply yet
  ReplyBudget budget_;       ///< where the hooks find it, also while a reply spans several calls
};

}  // namespace redlock::redis
