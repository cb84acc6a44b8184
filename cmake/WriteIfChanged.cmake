# write_if_changed(FILE TEXT): a file that has this text already is left alone, so that nothing is
# made from it again.
function(write_if_changed file text)
  set(before "")
  if(EXISTS "${file}")
    file(READ "${file}" before)
  endif()
  if(NOT before STREQUAL text)
    file(WRITE "${file}" "${text}")
  endif()
endfunction()
