# What `cmake --install` installs.
install(TARGETS redlock-cli)

# Where the directory of the configuration is another, the manual says so.
file(GLOB manuals CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/man/*.[1-8])
foreach(manual IN LISTS manuals)
  get_filename_component(name ${manual} NAME)
  get_filename_component(section ${manual} LAST_EXT)
  string(SUBSTRING ${section} 1 1 section)
  set(installed ${PROJECT_BINARY_DIR}/man/${name})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${manual})
  if(IS_SYMLINK ${manual}) # a page that several commands share
    file(READ_SYMLINK ${manual} shared)
    file(CREATE_LINK ${shared} ${installed} SYMBOLIC)
  else()
    file(READ ${manual} text)
    string(REPLACE "/etc/redlock-cli.toml" "${REDLOCK_SYSCONFDIR}/redlock-cli.toml" text "${text}")
    file(WRITE ${installed} "${text}")
  endif()
  install(FILES ${installed} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()

# `redlock-cli completion SHELL` prints the same.
install(FILES completions/redlock-cli.bash RENAME redlock-cli
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES completions/redlock-cli.zsh RENAME _redlock-cli
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES completions/redlock-cli.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

install(FILES packaging/tmpfiles.d/redlock-cli.conf DESTINATION lib/tmpfiles.d)

install(FILES README.md CHANGELOG.md SECURITY.md LICENSE packaging/THIRD-PARTY-LICENSES
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(REDLOCK_STATIC)
  install(FILES packaging/licences/Apache-2.0 packaging/licences/LGPL-2.1
          DESTINATION ${CMAKE_INSTALL_DOCDIR}/licences)
endif()
install(FILES packaging/redlock-cli.toml DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
# For users, where the links of README.md lead; how the program is made stays with its source.
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR}
        FILES_MATCHING PATTERN "*.md" PATTERN "*.json" PATTERN "*.svg"
        PATTERN decisions EXCLUDE PATTERN session EXCLUDE)
