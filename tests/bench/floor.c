/* The floor: the least that any client can do that runs a command under a lock of one Redis server.
   It connects, sends EVAL, starts the command, waits for it, and sends EVAL. It renews nothing,
   stops nothing, does not record who holds the lock, and waits in no queue.

   usage: floor SOCKET KEY COMMAND [ARGUMENT...] */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const char acquire[] =
    "if redis.call('set',KEYS[1],ARGV[1],'NX','PX',30000) then return 1 "
    "end return 0";
static const char release[] =
    "if redis.call('get',KEYS[1])==ARGV[1] then return "
    "redis.call('del',KEYS[1]) end return 0";

static int evaluate(int server, const char* script, const char* key, const char* token) {
  char text[1024], reply[16];
  int length = snprintf(text, sizeof text,
                        "*5\r\n$4\r\nEVAL\r\n$%zu\r\n%s\r\n$1\r\n1\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n",
                        strlen(script), script, strlen(key), key, strlen(token), token);
  if (length >= (int)sizeof text || write(server, text, length) != length) return 0;
  return read(server, reply, sizeof reply) == 4 && memcmp(reply, ":1\r\n", 4) == 0;
}

int main(int count, char** words) {
  if (count < 4) return 64;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, words[1], sizeof address.sun_path - 1);
  int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(server, (struct sockaddr*)&address, sizeof address) != 0) return 69;

  unsigned char random[8];
  char token[2 * sizeof random + 1];
  if (getrandom(random, sizeof random, 0) != sizeof random) return 71;
  for (size_t byte = 0; byte < sizeof random; ++byte)
    sprintf(token + 2 * byte, "%02x", random[byte]);
  if (!evaluate(server, acquire, words[2], token)) return 75;

  int status;
  pid_t command = vfork();
  if (command == 0) {
    execvp(words[3], words + 3);
    _exit(127);
  }
  if (command < 0 || waitpid(command, &status, 0) != command) return 71;
  if (!evaluate(server, release, words[2], token)) return 79;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
