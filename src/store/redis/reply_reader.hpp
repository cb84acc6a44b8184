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

/// Of ROLE: a master lists its replicas, of which there may be many.
inline constexpr ReplyLimits role_limits{
    .depth = 3, .elements = 4096, .bulk = 1024, .total = 4 * 1024 * 1024};

/// The limits of a reply, and the memory that it has used so far.
struct ReplyBudget {
  ReplyLimits limits;
  std::size_t spent = 0;  ///< bytes of memory

  /// Adds `bytes` to the memory in use. If that would exceed the limit, it returns false and adds
  /// none.
  bool spend(std::size_t bytes) noexcept;
};

/// Parses bytes into replies, with hiredis' parser. Our object hooks refuse a reply that exceeds
/// the limits before memory is allocated for it. Of an incomplete reply, it stores the objects so
/// far, at most `total` bytes, and the bytes not parsed yet, at most one string of maximum length.
class ReplyReader {
 public:
  ReplyReader();
  ~ReplyReader();
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;

  /// Adds bytes from the server.
  void feed(std::string_view bytes);

  /// The next complete reply; nullopt while bytes are missing. After an error the connection must
  /// be closed. The error's text is one clause and contains none of the server's bytes.
  Result<std::optional<Reply>, std::string> next(const ReplyLimits& limits);

 private:
  struct Free {
    void operator()(redisReader* reader) const;
  };
  std::unique_ptr<redisReader, Free> reader_;
  std::size_t pending_ = 0;  ///< bytes fed that belong to no complete reply yet
  ReplyBudget budget_;       ///< a member, as the hooks use it while a reply spans several calls
};

}  // namespace redlock::redis
