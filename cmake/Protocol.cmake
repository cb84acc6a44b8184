# Reads core/protocol.txt, which describes itself.

# load_protocol(FILE): sets protocol_keys, protocol_scripts, protocol_arguments_SCRIPT,
# protocol_replies, protocol_reply_REPLY, protocol_words, protocol_word_NAME, protocol_numbers and
# protocol_number_NAME for the caller.
macro(load_protocol protocol_file)
  file(STRINGS "${protocol_file}" protocol_lines REGEX "^ *[a-z]")
  # An indented line continues the one before it.
  string(REGEX REPLACE ";  +" " " protocol_lines "${protocol_lines}")
  foreach(protocol_line IN LISTS protocol_lines)
    if(protocol_line MATCHES "^keys (.+)$")
      string(REPLACE " " ";" protocol_keys "${CMAKE_MATCH_1}")
    elseif(protocol_line MATCHES "^arguments ([a-z_]+): (.+)$")
      list(APPEND protocol_scripts ${CMAKE_MATCH_1})
      string(REPLACE " " ";" protocol_arguments_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
    elseif(protocol_line MATCHES "^reply ([a-z_]+): (.+)$")
      list(APPEND protocol_replies ${CMAKE_MATCH_1})
      string(REPLACE " " ";" protocol_reply_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
    elseif(protocol_line MATCHES "^(word|number) ([a-z_]+) ([^ ]+)$")
      list(APPEND protocol_${CMAKE_MATCH_1}s ${CMAKE_MATCH_2})
      set(protocol_${CMAKE_MATCH_1}_${CMAKE_MATCH_2} "${CMAKE_MATCH_3}")
    else()
      message(FATAL_ERROR "${protocol_file}: not understood: ${protocol_line}")
    endif()
  endforeach()
endmacro()

# replace_name(NAME VALUE TEXT): in the variable TEXT, puts VALUE where NAME stands as a whole.
function(replace_name name value text)
  string(REPLACE "." "\\." pattern "${name}")
  # Twice, since of two that have one character between them the first match takes that, too.
  foreach(pass RANGE 1)
    string(REGEX REPLACE "${pattern}([^a-z_])" "${value}\\1" ${text} "${${text}}")
  endforeach()
  set(${text} "${${text}}" PARENT_SCOPE)
endfunction()

# replace_positions(PREFIX BEFORE AFTER NAMES TEXT): each PREFIX.NAME by BEFORE, its position from
# 1, AFTER.
function(replace_positions prefix before after names text)
  set(position 0)
  foreach(name IN LISTS ${names})
    math(EXPR position "${position} + 1")
    replace_name("${prefix}.${name}" "${before}${position}${after}" ${text})
  endforeach()
  set(${text} "${${text}}" PARENT_SCOPE)
endfunction()

# resolve_protocol(SCRIPT TEXT): in the variable TEXT, puts what it stands for in the place of each
# name. SCRIPT: whose arguments ARGV has; empty: it has none.
function(resolve_protocol script text)
  replace_positions(KEYS "KEYS[" "]" protocol_keys ${text})
  if(script)
    replace_positions(ARGV "ARGV[" "]" protocol_arguments_${script} ${text})
  endif()
  foreach(reply IN LISTS protocol_replies)
    replace_positions("REPLY.${reply}" "" "" protocol_reply_${reply} ${text})
  endforeach()
  foreach(name IN LISTS protocol_words)
    replace_name("WORD.${name}" "'${protocol_word_${name}}'" ${text})
  endforeach()
  foreach(name IN LISTS protocol_numbers)
    replace_name("NUMBER.${name}" "${protocol_number_${name}}" ${text})
  endforeach()
  if("${${text}}" MATCHES "(KEYS|ARGV|REPLY|WORD|NUMBER)\\.[A-Za-z_.]+")
    message(FATAL_ERROR "${script}: core/protocol.txt has no ${CMAKE_MATCH_0}")
  endif()
  set(${text} "${${text}}" PARENT_SCOPE)
endfunction()
