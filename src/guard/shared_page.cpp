#include "guard/shared_page.hpp"

#include <sys/mman.h>

#include <new>

#include "support/kernel_calls.hpp"

namespace redlock::guard {

void Unmap::operator()(SharedPage* page) const noexcept {
  ::munmap(page, sizeof *page);
}

SharedPagePtr make_shared_page() {
  void* memory = ::mmap(nullptr, sizeof(SharedPage), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw_errno("mmap");
  return SharedPagePtr(new (memory) SharedPage);
}

}  // namespace redlock::guard
