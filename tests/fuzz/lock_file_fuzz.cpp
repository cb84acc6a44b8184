// What lies in a lock file: the body in every form, and the whole file, whose digests hardly any
// input has.
#include <algorithm>

#include "fuzz.hpp"
#include "store/local/lock_file_format.hpp"

using namespace redlock;
using namespace redlock::fuzz;
namespace format = redlock::local::format;

namespace {

const redlock::local::TimeBase base{};

bool was_rebooted(const redlock::local::TimeBase& written) {
  return written.written > base.written;
}

void check_body(std::string_view bytes) {
  const auto entries = format::decode(bytes);
  if (!entries) return;
  const std::string encoded = format::encode(*entries);
  check(encoded.size() == bytes.size());
  const auto again = format::decode(encoded);
  check(again.has_value() && format::encode(*again) == encoded);
}

void check_file(std::string_view bytes) {
  std::string file(bytes.substr(0, format::file_size));
  file.resize(format::file_size);
  const auto read_at = [&](std::size_t offset, std::span<char> into) {
    if (offset + into.size() > file.size()) return false;
    std::copy_n(file.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
    return true;
  };
  const format::Found found = format::read(read_at, file.size(), was_rebooted);
  if (std::holds_alternative<format::Damaged>(found)) return;
  // Whatever was there, the next copy takes its place.
  if (std::holds_alternative<format::Empty>(found)) file.assign(file.size(), '\0');
  const std::string body = format::encode({});
  for (const format::Write& write : format::plan(found, base, body))
    file.replace(write.offset, write.bytes.size(), write.bytes);
  const format::Found next = format::read(read_at, file.size(), was_rebooted);
  check(std::holds_alternative<format::Stored>(next) &&
        std::get<format::Stored>(next).entries.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes = text_of(data + 1, size - 1);
  if (data[0] % 8 == 0) {
    check_file(bytes);
  } else {
    check_body(bytes);
  }
  return 0;
}
