// redis-cli for the bats tests, which ask their servers thousands of times: redis-cli takes four
// times as long to start. ask-redis SOCKET COMMAND [ARGUMENT…] prints what redis-cli --raw would.
#include <hiredis/hiredis.h>

#include <cstdio>
#include <memory>

namespace {

struct Free {
  void operator()(redisContext* server) const { redisFree(server); }
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};

void print(const redisReply& reply) {
  switch (reply.type) {
    case REDIS_REPLY_INTEGER:
      std::printf("%lld", reply.integer);
      break;
    case REDIS_REPLY_ARRAY:
      for (std::size_t i = 0; i < reply.elements; ++i) {
        if (i > 0) std::putchar('\n');
        print(*reply.element[i]);
      }
      break;
    case REDIS_REPLY_NIL:
      break;
    default:
      std::fwrite(reply.str, 1, reply.len, stdout);
      if (reply.type == REDIS_REPLY_ERROR) std::putchar('\n');
  }
}

/// As INFO does.
bool ends_a_line(const redisReply& reply) {
  return reply.type == REDIS_REPLY_STRING && reply.len > 0 && reply.str[reply.len - 1] == '\n';
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: ask-redis SOCKET COMMAND [ARGUMENT...]\n");
    return 64;
  }
  const std::unique_ptr<redisContext, Free> server(redisConnectUnix(argv[1]));
  if (server == nullptr || server->err != 0) {
    std::fprintf(stderr, "Could not connect to Redis at %s: %s\n", argv[1],
                 server == nullptr ? "out of memory" : server->errstr);
    return 1;
  }
  const std::unique_ptr<redisReply, Free> reply(static_cast<redisReply*>(
      redisCommandArgv(server.get(), argc - 2, const_cast<const char**>(argv + 2), nullptr)));
  if (reply == nullptr) {
    std::fprintf(stderr, "Error: %s\n", server->errstr);
    return 1;
  }
  print(*reply);
  if (!ends_a_line(*reply)) std::putchar('\n');
  return 0;
}
