// A configuration file, and each of its values as the row of its setting reads it.
#include "cli/config_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "commands/command_error.hpp"
#include "fuzz.hpp"

using namespace redlock;
using namespace redlock::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int file = ::memfd_create("config", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  const auto length = static_cast<off_t>(size);
  check(::ftruncate(file, 0) == 0 && ::pwrite(file, data, size, 0) == length);

  try {
    const auto config = cli::read_config_file(path, cli::Found::by_name);
    check(config.has_value());
    for (const auto& [option, values] : config->values) {
      check(option->spec().source == cli::OptionSource::anywhere);
      for (const std::string& value : values) {
        check(value.find('\0') == std::string::npos);
        check(is_printable_utf8(option->problem(value, "...")));
      }
    }
  } catch (const CommandError& error) {
    const std::string_view text = error.what();
    check(error.code() == ExitCode::config);
    check(is_printable_utf8(text) && text.starts_with(path + ": ") && text.size() < 400);
  }
  return 0;
}
