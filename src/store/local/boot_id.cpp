#include "store/local/boot_id.hpp"

#include <fstream>

#include "store/local/image.hpp"

namespace redlock::local {

std::optional<std::string> read_boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  if (!std::getline(file, id) || id.size() != image::boot_id_size) return std::nullopt;
  return id;
}

}  // namespace redlock::local
