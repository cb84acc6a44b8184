# Run by cpack when all files are in place, before a package is made of them. Gives a Debian package
# the form that Debian's policy asks for.

# Which compiler it was, `--version` says.
file(GLOB_RECURSE programs ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/redlock-cli)
foreach(program IN LISTS programs)
  if(program MATCHES "/bin/redlock-cli$")
    execute_process(COMMAND ${CPACK_REDLOCK_STRIP} --remove-section=.comment ${program}
      COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()

if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()

set(share ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/share)
set(docs ${share}/doc/redlock-cli)

# As gzip leaves no trace of when.
function(compress file)
  execute_process(COMMAND gzip -9n ${file} COMMAND_ERROR_IS_FATAL ANY)
  file(CHMOD ${file}.gz PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endfunction()

file(GLOB manuals ${share}/man/man*/*)
foreach(manual IN LISTS manuals)
  if(IS_SYMLINK ${manual})
    file(READ_SYMLINK ${manual} shared)
    file(CREATE_LINK ${shared}.gz ${manual}.gz SYMBOLIC)
    file(REMOVE ${manual})
  else()
    compress(${manual})
  endif()
endforeach()

file(RENAME ${share}/zsh/site-functions ${share}/zsh/vendor-completions)

file(READ ${docs}/LICENSE licence)
file(READ ${docs}/THIRD-PARTY-LICENSES others)
file(WRITE ${docs}/copyright "redlock-cli\n\n${licence}\n${others}
On Debian systems, the GNU General Public License is in /usr/share/common-licenses/GPL-3.\n")
file(REMOVE ${docs}/LICENSE ${docs}/THIRD-PARTY-LICENSES)

# Not for Debian's archive, so there is no bug to close.
file(WRITE ${share}/lintian/overrides/redlock-cli "redlock-cli: initial-upload-closes-no-bugs\n")

# SOURCE_DATE_EPOCH, if it is set.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${docs}/changelog.Debian
"redlock-cli (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * New upstream release; see changelog.gz.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
file(RENAME ${docs}/CHANGELOG.md ${docs}/changelog)
compress(${docs}/changelog)
compress(${docs}/changelog.Debian)
