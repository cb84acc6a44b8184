#include "support/boot_id.hpp"

#include <fstream>

namespace redlock {

std::optional<std::string> read_boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  if (!std::getline(file, id) || id.size() != boot_id_size) return std::nullopt;
  return id;
}

}  // namespace redlock
