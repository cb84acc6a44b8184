// Where a static program looks up hosts, users and groups. libc would load the host's libnss_*,
// which were made for another libc; `files` and `dns` are linked in.
#include <nss.h>

namespace {

/// Before main(), so that nothing can ask for a name first.
[[gnu::constructor]] void use_what_is_linked_in() {
  ::__nss_configure_lookup("hosts", "files dns");
  ::__nss_configure_lookup("passwd", "files");
  ::__nss_configure_lookup("group", "files");
}

}  // namespace
