#include "store/redis/reply_reader.hpp"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <new>
#include <type_traits>

namespace redlock::redis {
namespace {

/// Room for the bytes around a string on the wire, and for others in the same read.
constexpr std::size_t around_a_string = 8 * 1024;

/// Where to put a new object: the root of a reply is allocated and ours to free; any other object
/// is an element of its parent.
Reply* place(const redisReadTask* task) {
  if (task->parent == nullptr) return new (std::nothrow) Reply;
  auto* parent = static_cast<Reply*>(task->parent->obj);
  return &parent->elements[static_cast<std::size_t>(task->idx)];
}

std::size_t depth_of(const redisReadTask* task) {
  std::size_t depth = 1;
  for (const redisReadTask* up = task->parent; up != nullptr; up = up->parent) ++depth;
  return depth;
}

ReplyBudget& budget_of(const redisReadTask* task) {
  return *static_cast<ReplyBudget*>(task->privdata);
}

/// Newer versions of hiredis also parse RESP3, which we never request.
bool is_resp2(const redisReadTask* task) {
  switch (task->type) {
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_ARRAY:
    case REDIS_REPLY_INTEGER:
    case REDIS_REPLY_STATUS:
    case REDIS_REPLY_ERROR:
      return true;
    default:
      return false;
  }
}

// A hook returns nullptr to refuse the reply. Then hiredis reports an error, and the connection is
// closed.

void* create_string(const redisReadTask* task, char* bytes, std::size_t length) {
  if (!is_resp2(task) || length > budget_of(task).limits.bulk) return nullptr;
  // These two bytes are in the buffer, but hiredis 0.14 does not check them.
  if (bytes[length] != '\r' || bytes[length + 1] != '\n') return nullptr;
  if (!budget_of(task).spend(length)) return nullptr;
  Reply* reply = place(task);
  if (reply == nullptr) return nullptr;
  reply->type = task->type == REDIS_REPLY_ERROR    ? Reply::Type::error
                : task->type == REDIS_REPLY_STATUS ? Reply::Type::status
                                                   : Reply::Type::text;
  reply->text.assign(bytes, length);
  return reply;
}

/// The count is an int in hiredis 0.14 and a size_t from 1.0 on.
template <class Count>
void* create_array(const redisReadTask* task, Count count) {
  if (!is_resp2(task)) return nullptr;
  const ReplyLimits& limits = budget_of(task).limits;
  if constexpr (std::is_signed_v<Count>) {
    if (count < 0) return nullptr;
  }
  if (static_cast<std::size_t>(count) > limits.elements || depth_of(task) > limits.depth)
    return nullptr;
  if (!budget_of(task).spend(static_cast<std::size_t>(count) * sizeof(Reply))) return nullptr;
  Reply* reply = place(task);
  if (reply == nullptr) return nullptr;
  reply->type = Reply::Type::array;
  reply->elements.resize(static_cast<std::size_t>(count));
  return reply;
}

void* create_integer(const redisReadTask* task, long long value) {
  Reply* reply = place(task);
  if (reply == nullptr) return nullptr;
  reply->type = Reply::Type::integer;
  reply->integer = value;
  return reply;
}

void* create_nil(const redisReadTask* task) {
  return is_resp2(task) ? place(task) : nullptr;
}

void free_object(void* object) {
  delete static_cast<Reply*>(object);
}

template <class Hooks>
Hooks make_hooks() {
  Hooks hooks{};  // what stays null (doubles and booleans) is set below where hiredis has it
  hooks.createString = create_string;
  hooks.createArray = [](const redisReadTask* task, auto count) {
    return create_array(task, count);
  };
  hooks.createInteger = create_integer;
  hooks.createNil = create_nil;
  hooks.freeObject = free_object;
  // We never request RESP3 types, but without a hook hiredis would return a number as a pointer.
  if constexpr (requires { hooks.createDouble; })
    hooks.createDouble = [](const redisReadTask*, double, char*, std::size_t) -> void* {
      return nullptr;
    };
  if constexpr (requires { hooks.createBool; })
    hooks.createBool = [](const redisReadTask*, int) -> void* { return nullptr; };
  return hooks;
}

redisReplyObjectFunctions* hooks() {
  static redisReplyObjectFunctions table = make_hooks<redisReplyObjectFunctions>();
  return &table;
}

}  // namespace

bool ReplyBudget::spend(std::size_t bytes) noexcept {
  if (bytes > limits.total - spent) return false;
  spent += bytes;
  return true;
}

void ReplyReader::Free::operator()(redisReader* reader) const {
  redisReaderFree(reader);
}

ReplyReader::ReplyReader() : reader_(redisReaderCreateWithFunctions(hooks())) {
  if (!reader_) throw std::bad_alloc();
  reader_->privdata = &budget_;
}

ReplyReader::~ReplyReader() = default;

void ReplyReader::feed(std::string_view bytes) {
  pending_ += bytes.size();
  // A failure is remembered by the reader and reported by next().
  (void)redisReaderFeed(reader_.get(), bytes.data(), bytes.size());
}

Result<std::optional<Reply>, std::string> ReplyReader::next(const ReplyLimits& limits) {
  budget_.limits = limits;
  budget_.spent = std::min(budget_.spent, limits.total);  // the new limits may be lower
  void* object = nullptr;
  const int status = redisReaderGetReply(reader_.get(), &object);
  if (status != REDIS_OK) return unexpected(std::string("malformed or too large reply"));
  if (object == nullptr) {
    const bool hoards = reader_->len - reader_->pos > limits.bulk + around_a_string;
    if (hoards || pending_ > limits.total) {
      return unexpected(std::string("reply too large"));
    }
    return std::nullopt;
  }
  budget_.spent = 0;
  pending_ = reader_->len - reader_->pos;
  std::unique_ptr<Reply> reply(static_cast<Reply*>(object));
  return std::move(*reply);
}

}  // namespace redlock::redis
