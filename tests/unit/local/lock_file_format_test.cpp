// What a lock file may look like, and what is made of it.
#include "store/local/lock_file_format.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace redlock::local::format {
namespace {

using namespace std::chrono_literals;

/// A copy that is written this long after boot.
TimeBase base_at(std::chrono::seconds since_boot) {
  return {std::chrono::hours(400'000), since_boot, 0};
}

Keyspace::Entries one_key(const std::string& value) {
  Keyspace::Entries entries;
  entries["deploy"] = Entry{value, 30'000ms};
  return entries;
}

/// A file in memory.
class File {
 public:
  [[nodiscard]] Found read(std::chrono::seconds since_boot = 100s) const {
    return format::read(
        [this](std::size_t offset, std::span<char> into) {
          if (offset + into.size() > bytes.size()) return false;
          std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), into.size(),
                      into.begin());
          return true;
        },
        bytes.size(), [=](const TimeBase& base) { return base.written > since_boot; });
  }

  [[nodiscard]] std::vector<Write> plan(const Keyspace::Entries& entries,
                                        std::chrono::seconds since_boot = 100s) const {
    return format::plan(read(since_boot), base_at(since_boot), encode(entries));
  }

  /// As far as the first `count` bytes of the writes.
  void apply(const std::vector<Write>& writes,
             std::size_t count = std::numeric_limits<std::size_t>::max()) {
    if (bytes.empty()) bytes.assign(file_size, '\0');
    for (const Write& write : writes) {
      const std::size_t part = std::min(count, write.bytes.size());
      bytes.replace(write.offset, part, write.bytes, 0, part);
      count -= part;
    }
  }

  void store(const Keyspace::Entries& entries, std::chrono::seconds since_boot = 100s) {
    const std::vector<Write> writes = plan(entries, since_boot);
    if (std::holds_alternative<Empty>(read(since_boot))) bytes.clear();
    apply(writes);
  }

  std::string bytes;
};

/// What a reader would act on: the value of the key, `nothing` or `damaged`.
std::string seen(const Found& found) {
  if (std::holds_alternative<Empty>(found)) return "nothing";
  if (std::holds_alternative<Damaged>(found)) return "damaged";
  return std::get<std::string>(std::get<Stored>(found).entries.at("deploy").value);
}

TEST(LockFileFormatTest, WhatIsEncodedIsDecoded) {
  Keyspace::Entries entries;
  entries[""] = Entry{std::string(), std::nullopt};
  entries["text"] =
      Entry{std::string("a\0b", 3), Milliseconds(std::numeric_limits<std::int64_t>::max())};
  entries["hash"] = Entry{Hash{{"z", "1"}, {"a", ""}, {"", "2"}}, 0ms};
  SortedSet zset;
  zset.put("low", -std::numeric_limits<double>::infinity());
  zset.put("one", 1.5);
  zset.put("", 1.5);
  entries["zset"] = Entry{zset, 1ms};
  entries["none"] = Entry{Hash(), std::nullopt};
  const auto decoded = decode(encode(entries));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(encode(*decoded), encode(entries));
  EXPECT_EQ(std::get<Hash>(decoded->at("hash").value), std::get<Hash>(entries["hash"].value));
  EXPECT_EQ(decoded->at("hash").expires, 0ms);
  EXPECT_EQ(decoded->at("none").expires, std::nullopt);
  EXPECT_EQ(std::get<SortedSet>(decoded->at("zset").value).ranking(), zset.ranking());
}

TEST(LockFileFormatTest, BytesThatNoVersionEncodesAreRefused) {
  const std::string good = encode(one_key("token"));
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(decode(good.substr(0, size)).has_value()) << size;
  EXPECT_FALSE(decode(good + "x").has_value());
  EXPECT_FALSE(decode(std::string(8, '\xff')).has_value());
  std::string type = good;
  type[4 + 4 + 6] = 3;  // count, size of the key, the key
  EXPECT_FALSE(decode(type).has_value());
}

TEST(LockFileFormatTest, TheLastOfManyCopiesCounts) {
  File file;
  EXPECT_EQ(seen(file.read()), "nothing");
  for (int i = 1; i <= 10; ++i) {
    file.store(one_key(std::to_string(i)));
    const Found found = file.read();
    ASSERT_EQ(seen(found), std::to_string(i));
    EXPECT_EQ(std::get<Stored>(found).generation, static_cast<std::uint64_t>(i));
    EXPECT_EQ(file.bytes.size(), file_size);
  }
}

/// The death of the writer at any byte leaves what was there before, or what it wrote if nothing
/// was missing. It cannot cut a header; if anything did, the copy from before would not count.
TEST(LockFileFormatTest, ACrashAtAnyByteLeavesTheCopyFromBefore) {
  File file;
  std::string before = "nothing";
  for (const std::string& next :
       {std::string("first"), std::string(300, 's'), std::string("third"), std::string("fourth")}) {
    const std::vector<Write> writes = file.plan(one_key(next));
    std::size_t total = 0;
    for (const Write& write : writes) total += write.bytes.size();
    File whole = file;
    whole.apply(writes, writes[0].bytes.size());
    for (std::size_t count = 0; count < total; ++count) {
      File torn = file;
      torn.apply(writes, count);
      const bool cuts_header = before != "nothing" && count > writes[0].bytes.size();
      if (cuts_header && torn.bytes != whole.bytes) {
        ASSERT_EQ(seen(torn.read()), "damaged") << next << " after " << count << " bytes";
        continue;
      }
      ASSERT_EQ(seen(torn.read()), before) << next << " after " << count << " bytes";
      torn.store(one_key("successor"));
      ASSERT_EQ(seen(torn.read()), "successor") << "and can be written on";
    }
    file.apply(writes);
    ASSERT_EQ(seen(file.read()), next);
    before = next;
  }
}

TEST(LockFileFormatTest, AFileOfAnotherSizeIsDamagedNotFree) {
  File file;
  file.store(one_key("token"));
  const std::string whole = file.bytes;
  for (std::size_t size = 1; size < file_size; size += size < 2 * header_size ? 1 : 997) {
    file.bytes = whole.substr(0, size);
    ASSERT_EQ(seen(file.read()), "damaged") << size;
  }
  file.bytes = whole + "x";
  EXPECT_EQ(seen(file.read()), "damaged");
  file.bytes.clear();
  EXPECT_EQ(seen(file.read()), "nothing");
}

TEST(LockFileFormatTest, ABodyThatDoesNotFitItsHeaderIsDamagedNotFree) {
  File file;
  file.store(one_key("old"));
  file.store(one_key("token"));
  const auto stored = std::get<Stored>(file.read());
  const std::size_t body = stored.slot * slot_size + header_size;
  for (std::size_t i = 0; i < encode(stored.entries).size(); ++i) {
    File changed = file;
    changed.bytes[body + i] ^= 1;
    ASSERT_EQ(seen(changed.read()), "damaged") << i;
  }
}

/// One header, or both, after one, two or more copies: neither may bring an older copy back.
TEST(LockFileFormatTest, AHeaderThatAnotherProgramWroteOverIsDamagedNotFree) {
  for (const int copies : {1, 2, 3, 4}) {
    File file;
    for (int i = 0; i < copies; ++i) file.store(one_key(std::to_string(i)));
    const std::size_t newest = std::get<Stored>(file.read()).slot * slot_size;
    for (const std::string& with : {std::string(16, 'x'), std::string(header_size, '\xff'),
                                    std::string(4, '\0') + std::string(12, 'x')}) {
      File changed = file;
      changed.bytes.replace(newest, with.size(), with);
      EXPECT_EQ(seen(changed.read()), "damaged") << copies;
      changed.bytes.replace(slot_size - newest, with.size(), with);
      EXPECT_EQ(seen(changed.read()), "damaged") << copies;
    }
    File zeroed = file;
    zeroed.bytes.replace(newest, header_size, std::string(header_size, '\0'));
    // That of the first or second copy: what the file looked like before it.
    const std::string before = copies == 1 ? "nothing" : copies == 2 ? "0" : "damaged";
    EXPECT_EQ(seen(zeroed.read()), before) << copies;
    // Bytes behind the mark, in both.
    File flipped = file;
    for (const std::size_t offset : {std::size_t{0}, slot_size}) flipped.bytes[offset + 150] ^= 1;
    EXPECT_EQ(seen(flipped.read()), "damaged") << copies;
  }
}

/// A lock that is held does not become free, nor its former state come back, by a byte of the
/// newest header, of the one before it, or of both.
TEST(LockFileFormatTest, AHeaderWithAnyByteFlippedIsDamagedNotFree) {
  for (const int copies : {1, 2, 3, 4}) {
    File file;
    for (int i = 0; i < copies; ++i) file.store(one_key(std::to_string(i)));
    const std::size_t newest = std::get<Stored>(file.read()).slot * slot_size;
    for (std::size_t i = 0; i < header_size; ++i) {
      for (const char bits : {'\x01', '\x80', '\xff'}) {
        File changed = file;
        changed.bytes[newest + i] = static_cast<char>(changed.bytes[newest + i] ^ bits);
        ASSERT_EQ(seen(changed.read()), "damaged") << copies << " copies, byte " << i;
        char& before = changed.bytes[slot_size - newest + i];
        before = static_cast<char>(before ^ bits);
        ASSERT_EQ(seen(changed.read()), "damaged") << copies << " copies, byte " << i << " of both";
      }
    }
  }
}

/// What is written behind it would be smaller than it, and never read: every writer would find the
/// same lock free.
TEST(LockFileFormatTest, AGenerationWithoutASuccessorIsDamagedNotFree) {
  for (const std::uint64_t before : {UINT64_MAX - 1, UINT64_MAX - 2, UINT64_MAX / 2}) {
    File file;
    file.store(one_key("old"));
    file.apply(plan(Stored{before, 0, {}, {}}, base_at(100s), encode(one_key("forged"))));
    EXPECT_EQ(seen(file.read()), "damaged") << before;
  }
}

TEST(LockFileFormatTest, WhatAnEarlierBootWroteIsNotThere) {
  for (const int copies : {1, 2, 3}) {
    File file;
    for (int i = 0; i < copies; ++i) file.store(one_key("old"), 100s + std::chrono::seconds(i));
    // The newest copy alone shows the reboot, or all of them.
    for (const auto since_boot : {99s + std::chrono::seconds(copies - 1), 1s}) {
      const Found found = file.read(since_boot);
      EXPECT_EQ(seen(found), "nothing") << copies;
      EXPECT_TRUE(std::get<Empty>(found).saw_reboot);
    }
    file.store(one_key("new"), 1s);
    EXPECT_EQ(seen(file.read(1s)), "new");
  }
}

TEST(LockFileFormatTest, WhatCouldBeOfThisBootIsThere) {
  File file;
  file.store(one_key("held"), 100s);
  const Found found = file.read(100s);
  EXPECT_EQ(seen(found), "held");
  EXPECT_EQ(std::get<Stored>(found).base.written, 100s);
  EXPECT_EQ(std::get<Stored>(found).base.offset, std::chrono::hours(400'000));
  EXPECT_EQ(seen(file.read(100h)), "held");
}

TEST(LockFileFormatTest, TheLargestBodyFits) {
  Keyspace::Entries entries = one_key("");
  const std::size_t rest = max_body - encode(entries).size();
  entries = one_key(std::string(rest, 'x'));
  ASSERT_EQ(encode(entries).size(), max_body);
  File file;
  file.store(entries);
  file.store(one_key("small"));
  file.store(entries);
  EXPECT_EQ(seen(file.read()).size(), rest);
  EXPECT_EQ(file.bytes.size(), file_size);
}

}  // namespace
}  // namespace redlock::local::format
