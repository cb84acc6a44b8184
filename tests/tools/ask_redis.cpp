// redis-cli for the bats tests, which ask their servers thousands of times: redis-cli takes four
// times as long to start. ask-redis SOCKET COMMAND [ARGUMENT…] prints what redis-cli --raw would;
// ask-redis --until ANSWER SECONDS SOCKET COMMAND [ARGUMENT…] asks until that would be ANSWER.
#include <hiredis/hiredis.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>

namespace {

constexpr std::time_t max_timeout = 3600;

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

struct Question {
  const char* socket;
  int count;
  const char** words;  ///< COMMAND [ARGUMENT…]
};

/// @param timeout  in seconds, for the answer; none when 0
Answer ask(const Question& question, std::time_t timeout = 0) {
  const std::unique_ptr<redisContext, Free> server(redisConnectUnix(question.socket));
  if (server == nullptr) return {false, "out of memory"};
  if (server->err != 0) {
    return {false, std::string("Could not connect to Redis at ") + question.socket + ": " +
                       server->errstr};
  }
  if (timeout > 0) redisSetTimeout(server.get(), {.tv_sec = timeout, .tv_usec = 0});
  const std::unique_ptr<redisReply, Free> reply(static_cast<redisReply*>(
      redisCommandArgv(server.get(), question.count, question.words, nullptr)));
  if (reply == nullptr) return {false, std::string("Error: ") + server->errstr};
  return {true, text_of(*reply) + (ends_a_line(*reply) ? "" : "\n")};
}

/// As $(…) takes them off what redis-cli prints.
std::string without_newlines(std::string text) {
  text.erase(text.find_last_not_of('\n') + 1);
  return text;
}

std::time_t seconds_since_boot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec;
}

/// Asks less and less often, as wait_until of the tests does.
Answer ask_until(const std::string& expected, std::time_t timeout, const Question& question) {
  // The clock is read in whole seconds: the current one may be almost over.
  const std::time_t end = seconds_since_boot() + timeout + 1;
  for (useconds_t interval = 20'000;; interval = std::min(interval * 3 / 2, useconds_t{200'000})) {
    Answer answer = ask(question, std::max(end - seconds_since_boot(), std::time_t{1}));
    if (answer.received && without_newlines(answer.text) == expected) return answer;
    if (seconds_since_boot() >= end) {
      std::string text = std::string("ask-redis: ") + question.socket + ':';
      for (int i = 0; i < question.count; ++i) text += std::string(" ") + question.words[i];
      text += ": not " + expected + " within " + std::to_string(timeout) + " seconds, but " +
              without_newlines(answer.text);
      return {false, text};
    }
    ::usleep(interval);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // A server that dies while it is asked must not end us.
  const bool until = argc > 1 && std::strcmp(argv[1], "--until") == 0;
  const int options = until ? 3 : 0;
  if (argc < options + 3) {
    std::fprintf(stderr,
                 "usage: ask-redis [--until ANSWER SECONDS] SOCKET COMMAND [ARGUMENT...]\n");
    return 64;
  }
  std::time_t timeout = 0;
  if (until) {
    char* end = nullptr;
    timeout = std::strtol(argv[3], &end, 10);
    if (end == argv[3] || *end != '\0' || timeout < 0 || timeout > max_timeout) {
      std::fprintf(stderr, "ask-redis: not a number of seconds: %s\n", argv[3]);
      return 64;
    }
  }
  const Question question{argv[options + 1], argc - options - 2,
                          const_cast<const char**>(argv + options + 2)};
  const Answer answer = until ? ask_until(argv[2], timeout, question) : ask(question);
  if (!answer.received) {
    std::fprintf(stderr, "%s\n", answer.text.c_str());
    return 1;
  }
  std::fwrite(answer.text.data(), 1, answer.text.size(), stdout);
  return 0;
}
