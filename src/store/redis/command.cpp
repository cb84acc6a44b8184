#include "store/redis/command.hpp"

#include <hiredis/hiredis.h>

#include <new>

namespace redlock::redis {
namespace {

template <class Words>
std::string encode(const Words& words) {
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  texts.reserve(words.size());
  lengths.reserve(words.size());
  for (const std::string_view word : words) {
    texts.push_back(word.data());
    lengths.push_back(word.size());
  }
  char* bytes = nullptr;
  const auto length =
      redisFormatCommandArgv(&bytes, static_cast<int>(texts.size()), texts.data(), lengths.data());
  if (length < 0) throw std::bad_alloc();
  std::string encoded(bytes, static_cast<std::size_t>(length));
  redisFreeCommand(bytes);
  return encoded;
}

}  // namespace

EncodedCommand::EncodedCommand(const Command& words) : bytes_(encode(words)) {}

EncodedCommand::EncodedCommand(std::span<const std::string_view> words) : bytes_(encode(words)) {}

}  // namespace redlock::redis
