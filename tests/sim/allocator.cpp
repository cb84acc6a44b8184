// Memory for one thread, C++'s and Lua's: free blocks of up to 64 KiB are kept by size and never
// returned to the system. A schedule makes some 20,000 small objects, and glibc's malloc took a
// quarter of its time (measured).
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <lua.hpp>
#include <new>

namespace {

constexpr std::size_t step = 16;
constexpr std::size_t max_block =
    std::size_t{64} * 1024;  // including messages with the scripts' text
constexpr std::size_t slab_size = std::size_t{1024} * 1024;

struct Free {
  Free* next;
};

std::array<Free*, max_block / step + 1> free_blocks{};
char* slab = nullptr;
std::size_t slab_left = 0;

std::size_t kind_of(std::size_t size) {
  return (size + step - 1) / step;
}

void* take(std::size_t size) {
  if (size > max_block) {
    if (void* block = std::malloc(size)) return block;
    throw std::bad_alloc();
  }
  const std::size_t kind = kind_of(size);
  if (Free* block = free_blocks[kind]) {
    free_blocks[kind] = block->next;
    return block;
  }
  const std::size_t length = std::max(kind, std::size_t{1}) * step;
  if (slab_left < length) {
    slab = static_cast<char*>(std::malloc(slab_size));
    if (slab == nullptr) throw std::bad_alloc();
    slab_left = slab_size;
  }
  slab_left -= length;
  return slab + slab_left;
}

void put_back(void* block, std::size_t size) noexcept {
  if (size > max_block) return std::free(block);
  auto* free = static_cast<Free*>(block);
  Free*& others = free_blocks[kind_of(size)];
  free->next = others;
  others = free;
}

/// lua_Alloc. Lua passes the size of a block that it frees. Without memory the program ends: an
/// exception must not pass through Lua.
void* reallocate(void* /*data*/, void* block, std::size_t old_size, std::size_t size) noexcept {
  if (block != nullptr && size != 0 && old_size <= max_block &&
      kind_of(old_size) == kind_of(size)) {
    return block;
  }
  void* moved = size == 0 ? nullptr : take(size);
  if (block != nullptr) {
    if (moved != nullptr) std::memcpy(moved, block, std::min(old_size, size));
    put_back(block, old_size);
  }
  return moved;
}

}  // namespace

extern "C" {
lua_State* __real_luaL_newstate();

lua_State* __wrap_luaL_newstate() {
  lua_State* lua = lua_newstate(reallocate, nullptr);
  // An older LuaJIT of 64 bits has no other memory than its own.
  return lua != nullptr ? lua : __real_luaL_newstate();
}
}

// A block's size must be known when it is freed, so a block of operator new has a header: sized
// deletion is not guaranteed to be called. GCC assumes that a program never reads what lies in
// front of a block of operator new. With the whole program in view it leaves out the write of the
// size, so it must not see that both pointers are into one block.
void* operator new(std::size_t size) {
  char* block = static_cast<char*>(take(size + step));
  *reinterpret_cast<std::size_t*>(block) = size + step;
  asm volatile("" : "+r"(block) : : "memory");
  return block + step;
}

void operator delete(void* pointer) noexcept {
  if (pointer == nullptr) return;
  char* block = static_cast<char*>(pointer) - step;
  asm volatile("" : "+r"(block) : : "memory");
  put_back(block, *reinterpret_cast<std::size_t*>(block));
}

void operator delete(void* pointer, std::size_t) noexcept {
  operator delete(pointer);
}
