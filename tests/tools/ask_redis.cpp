// redis-cli for the bats tests, which ask their servers thousands of times: redis-cli takes four
// times as long to start. ask-redis SOCKET COMMAND [ARGUMENT…] prints what redis-cli --raw would;
// ask-redis --until ANSWER SECONDS SOCKET COMMAND [ARGUMENT…] asks until that would be ANSWER.
#include <hiredis/hiredis.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>

namespace {

struct Free {
  void operator()(redisContext* server) const { redisFree(server); }
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};

struct Answer {
  bool received;
  std::string text;  ///< or why there is none
};

std::string text_of(const redisReply& reply) {
  switch (reply.type) {
    case REDIS_REPLY_INTEGER:
      return std::to_string(reply.integer);
    case REDIS_REPLY_ARRAY: {
      std::string lines;
      for (std::size_t i = 0; i < reply.elements; ++i) {
        if (i > 0) lines += '\n';
        lines += text_of(*reply.element[i]);
      }
      return lines;
    }
    case REDIS_REPLY_NIL:
      return {};
    case REDIS_REPLY_ERROR:
      return std::string(reply.str, reply.len) + '\n';
    default:
      return {reply.str, reply.len};
  }
}

/// As INFO does.
bool ends_a_line(const redisReply& reply) {
  return reply.type == REDIS_REPLY_STRING && reply.len > 0 && reply.str[reply.len - 1] == '\n';
}

/// @param words  SOCKET COMMAND [ARGUMENT…]
/// @param limit  in seconds, for the answer; none when 0
Answer ask(int count, char** words, std::time_t limit = 0) {
  const std::unique_ptr<redisContext, Free> server(redisConnectUnix(words[0]));
  if (server == nullptr) return {false, "out of memory"};
  if (server->err != 0) {
    return {false,
            std::string("Could not connect to Redis at ") + words[0] + ": " + server->errstr};
  }
  if (limit > 0) redisSetTimeout(server.get(), {.tv_sec = limit, .tv_usec = 0});
  const std::unique_ptr<redisReply, Free> reply(static_cast<redisReply*>(
      redisCommandArgv(server.get(), count - 1, const_cast<const char**>(words + 1), nullptr)));
  if (reply == nullptr) return {false, std::string("Error: ") + server->errstr};
  return {true, text_of(*reply) + (ends_a_line(*reply) ? "" : "\n")};
}

std::time_t seconds_since_boot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec;
}

/// Asks less and less often, as wait_until of the tests does.
Answer ask_until(const std::string& expected, std::time_t seconds, int count, char** words) {
  const std::time_t end = seconds_since_boot() + seconds + 1;
  for (useconds_t pause = 20'000;; pause = std::min(pause * 3 / 2, useconds_t{200'000})) {
    Answer answer = ask(count, words, seconds + 1);
    if (answer.received && answer.text == expected) return answer;
    if (seconds_since_boot() >= end) {
      return {false, "ask-redis: not within " + std::to_string(seconds) + " seconds: " + expected +
                         "the last answer: " + answer.text};
    }
    ::usleep(pause);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool until = argc > 1 && std::strcmp(argv[1], "--until") == 0;
  if (argc < (until ? 6 : 3)) {
    std::fprintf(stderr,
                 "usage: ask-redis [--until ANSWER SECONDS] SOCKET COMMAND [ARGUMENT...]\n");
    return 64;
  }
  const Answer answer =
      until ? ask_until(argv[2] + std::string("\n"), std::atol(argv[3]), argc - 4, argv + 4)
            : ask(argc - 1, argv + 1);
  if (!answer.received) {
    std::fprintf(stderr, "%s\n", answer.text.c_str());
    return 1;
  }
  std::fwrite(answer.text.data(), 1, answer.text.size(), stdout);
  return 0;
}
