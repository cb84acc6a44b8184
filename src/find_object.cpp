// Where to find an object's unwind table, for exceptions. A static libgcc that was compiled beside
// glibc 2.35 or newer leaves that to glibc's function, which nothing else here needs. This one, in
// its place, finds it as libgcc did before, so that the program runs with glibc 2.34.
#include <dlfcn.h>
#include <link.h>

#include <cstdint>

namespace {

struct Search {
  std::uintptr_t address;
  std::uintptr_t table = 0;
};

int look_into(dl_phdr_info* object, std::size_t /*size*/, void* data) {
  auto& search = *static_cast<Search*>(data);
  bool has_address = false;
  std::uintptr_t table = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_GNU_EH_FRAME) table = begin;
    if (segment.p_type == PT_LOAD && search.address - begin < segment.p_memsz) has_address = true;
  }
  if (has_address) search.table = table;
  return has_address ? 1 : 0;
}

}  // namespace

// NOLINTNEXTLINE(bugprone-reserved-identifier): libc's name
extern "C" [[gnu::visibility("hidden")]] int _dl_find_object(void* address,
                                                             dl_find_object* result) noexcept {
  Search search{reinterpret_cast<std::uintptr_t>(address)};
  ::dl_iterate_phdr(look_into, &search);
  if (search.table == 0) return -1;
  *result = {};
  result->dlfo_eh_frame = reinterpret_cast<void*>(search.table);
  return 0;
}
