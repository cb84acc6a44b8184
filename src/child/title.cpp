#include "child/title.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace redlock::child {

void set_name(std::string_view name) noexcept {
  ::prctl(PR_SET_NAME, std::string(name).c_str(), 0, 0, 0);
}

void set_title(std::string_view title, int argc, char** argv) noexcept {
  set_name(title);
  if (argc < 1 || argv[0] == nullptr) return;
  // The kernel shows the bytes from the first word to the end of the last; the words are
  // contiguous.
  char* const begin = argv[0];
  char* end = begin;
  for (int i = 0; i < argc && argv[i] == end; ++i) end += std::strlen(argv[i]) + 1;
  const auto room = static_cast<std::size_t>(end - begin);
  std::memset(begin, 0, room);
  std::memcpy(begin, title.data(), std::min(title.size(), room - 1));
}

}  // namespace redlock::child
