// redis-cli for locks on this host: local-redis DIRECTORY COMMAND [ARGUMENT…] does at the lock file
// that the first argument's key belongs to what redis-cli would do at a server, and prints the
// reply as redis-cli --raw does. Knows EXISTS, KEYS * and DBSIZE, too. For tests.
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <iostream>

#include "core/helper_keys.hpp"
#include "store/local/commands.hpp"
#include "store/local/lock_file.hpp"
#include "support/boot_clock.hpp"
#include "support/digest.hpp"

namespace {

using namespace redlock;
using namespace redlock::local;

class HostClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const override { return BootClock::now(); }
  [[nodiscard]] Milliseconds wall() const override { return wall_clock_now(); }
  [[nodiscard]] std::unique_ptr<Event> make_event() const override { return nullptr; }
};

const HostClock host_clock;
const KernelTime host_time = KernelTime::find(host_clock).value();

[[noreturn]] void fail(const Fault& fault) {
  std::cerr << "local-redis: " << fault.text << "\n";
  std::exit(1);
}

/// The resource that a lock or one of its helper keys belongs to.
std::string resource_of(const std::string& key) {
  if (!key.starts_with("redlock:")) return key;
  const auto resource = HelperKeys::resource_of_owner("redlock:owner:" + key.substr(key.find('{')));
  return resource ? resource->key() : key;
}

/// Waits for those who have it just now.
std::optional<LockFile> open(const Directory& directory, const std::string& name) {
  for (;;) {
    auto opened = LockFile::try_open(directory, name);
    if (auto* file = std::get_if<LockFile>(&opened)) return std::move(*file);
    if (const auto* fault = std::get_if<Fault>(&opened)) fail(*fault);
    if (std::holds_alternative<LockFile::Missing>(opened)) return std::nullopt;
    ::usleep(1000);
  }
}

std::chrono::microseconds offset_of(const Directory& directory, const format::Found& found) {
  const auto* stored = std::get_if<format::Stored>(&found);
  return stored != nullptr ? stored->base.offset : directory_offset(directory, host_time).value();
}

Keyspace load(const Directory& directory, const format::Found& found) {
  Keyspace keyspace;
  if (const auto* stored = std::get_if<format::Stored>(&found)) keyspace.load(stored->entries);
  keyspace.set_time(offset_of(directory, found) + host_time.since_boot());
  return keyspace;
}

/// As the scripts write it: its name and options in capitals.
std::vector<std::string> in_capitals(std::vector<std::string> words) {
  for (std::size_t i = 0; i < words.size(); i += i == 0 ? 3 : 1) {
    for (char& c : words[i]) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (words[0] != "SET") break;
  }
  return words;
}

Reply execute_here(Keyspace& keyspace, const std::vector<std::string>& words) {
  if (words[0] == "exists") return integer_reply(keyspace.find(words.at(1)) != nullptr ? 1 : 0);
  return execute(keyspace, views_of(in_capitals(words)));
}

Reply execute_at(const Directory& directory, const std::vector<std::string>& words) {
  const std::string name = sha256_hex(resource_of(words.at(1)));
  std::optional<LockFile> file = open(directory, name);
  if (!file) {
    const TimeBase base = host_time.base(directory_offset(directory, host_time).value());
    if (auto made = LockFile::make(directory, name, base); !made) fail(made.error());
    file = open(directory, name);
  }
  const auto found = file->load(host_time);
  if (!found) fail(found.error());
  Keyspace keyspace = load(directory, *found);
  Reply reply = execute_here(keyspace, words);
  const TimeBase base = host_time.base(offset_of(directory, *found));
  if (auto stored = file->store(*found, base, format::encode(keyspace.live())); !stored)
    fail(stored.error());
  return reply;
}

std::vector<std::string> all_keys(const Directory& directory) {
  std::vector<std::string> keys;
  for (const std::string& name : lock_files_in(directory)) {
    const std::optional<LockFile> file = open(directory, name);
    if (!file) continue;
    const auto found = file->load(host_time);
    if (!found) fail(found.error());
    Keyspace keyspace = load(directory, *found);
    for (const auto& [key, entry] : keyspace.live()) keys.push_back(key);
  }
  return keys;
}

void print(const Reply& reply) {
  if (reply.type == Reply::Type::array) {
    for (const Reply& element : reply.elements) print(element);
  } else if (reply.type == Reply::Type::integer) {
    std::cout << reply.integer << "\n";
  } else {
    std::cout << reply.text << "\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 2), argv + argc);
  if (words.empty())
    fail({FaultKind::misconfigured, "usage: local-redis DIRECTORY COMMAND [ARGUMENT...]"});
  const auto directory = open_directory({argv[1], false});
  if (!directory) fail(directory.error());
  if (words[0] == "keys" || words[0] == "dbsize") {
    const auto keys = all_keys(*directory);
    if (words[0] == "dbsize") std::cout << keys.size() << "\n";
    if (words[0] == "keys") {
      for (const std::string& key : keys) std::cout << key << "\n";
    }
  } else {
    // EXISTS and DEL may name keys of several files.
    const bool counts = words[0] == "exists" || words[0] == "del";
    std::int64_t sum = 0;
    for (std::size_t i = 1; counts && i < words.size(); ++i)
      sum += execute_at(*directory, {words[0], words[i]}).integer;
    if (counts) std::cout << sum << "\n";
    if (!counts) print(execute_at(*directory, words));
  }
  return 0;
}
