# What `cpack` packs: a tarball to be unpacked anywhere (TGZ, of preset static), a .deb and a .rpm
# (of preset release). packaging/release.sh makes all of them; packaging/cpack.cmake is what a
# Debian package wants otherwise than `cmake --install` lays it out.
set(CPACK_PACKAGE_VENDOR "the redlock-cli authors")
# Debian and Red Hat want the packager: DEBFULLNAME and DEBEMAIL, as for Debian's own tools.
set(packager "the redlock-cli authors")
if(DEFINED ENV{DEBFULLNAME})
  set(packager "$ENV{DEBFULLNAME}")
endif()
set(packager_address "root@localhost")
if(DEFINED ENV{DEBEMAIL})
  set(packager_address "$ENV{DEBEMAIL}")
endif()
set(CPACK_PACKAGE_CONTACT "${packager} <${packager_address}>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "lock for shell scripts, cron and CI on Redis or Valkey")
set(CPACK_PACKAGE_DESCRIPTION
"redlock-cli runs a command while it holds a lock, on one Redis or Valkey
server, on a quorum of independent ones (Redlock), with Sentinel or Cluster,
or on this host alone without a server.
.
The lock is renewed while the command runs. If it is lost, the command and
everything that it started are stopped before another can have it. Waiters are
served in order of arrival, and each lease has a fencing token.")
set(CPACK_STRIP_FILES ON)
# For packaging/cpack.cmake: the one of the compiler, which knows what it builds for.
set(CPACK_REDLOCK_STRIP ${CMAKE_STRIP})
set(CPACK_VERBATIM_VARIABLES ON)
string(TOLOWER "${CMAKE_SYSTEM_NAME}" system)
set(CPACK_PACKAGE_FILE_NAME "redlock-cli-${PROJECT_VERSION}-${system}-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_GENERATOR TGZ)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packaging/cpack.cmake)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# Of what is built; cpack would take this machine's.
set(CPACK_RPM_PACKAGE_ARCHITECTURE ${CMAKE_SYSTEM_PROCESSOR})
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
endif()

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Loaded when needed, so that no tool finds it; the first is its name from Debian 13 and Ubuntu
# 24.04 on.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libssl3t64 | libssl3, ca-certificates")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "redis-server | valkey-server")

set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_RELEASE 1)
set(CPACK_RPM_PACKAGE_LICENSE "MIT")
set(CPACK_RPM_PACKAGE_RELOCATABLE OFF)
string(REPLACE "\n.\n" "\n\n" CPACK_RPM_PACKAGE_DESCRIPTION "${CPACK_PACKAGE_DESCRIPTION}")
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
  /usr/share/man /usr/share/man/man1 /usr/share/man/man5 /usr/share/man/man7
  /usr/share/bash-completion /usr/share/bash-completion/completions
  /usr/share/zsh /usr/share/zsh/site-functions
  /usr/share/fish /usr/share/fish/vendor_completions.d
  /usr/share/doc /usr/lib/tmpfiles.d)
# What is loaded when needed, which cpack has no word for; and neither who built it nor when.
set(CPACK_RPM_SPEC_MORE_DEFINE
"Recommends: openssl-libs
Recommends: ca-certificates
%define __strip ${CMAKE_STRIP}
%define _buildhost localhost
%define use_source_date_epoch_as_buildtime 1
%define clamp_mtime_to_source_date_epoch 1
%define _build_id_links none")

include(CPack)
