# The installed texts (pages, completions) say "sbx". If the program has another name, they use that name, so that a
# user who has two programs called sbx isn't led to the other one. Directories (/etc/sbx, /usr/share/sbx) and the
# library keep their name. `sbx completions` does the same to its output (src/cli/completions).
string(TOUPPER "${SBX_PROGRAM_NAME}" SBX_PROGRAM_NAME_UPPER)
string(MAKE_C_IDENTIFIER "${SBX_PROGRAM_NAME}" SBX_PROGRAM_IDENTIFIER)

function(sbx_install_named_text file)
  cmake_parse_arguments(ARG "" "DESTINATION;RENAME" "" ${ARGN})
  file(READ ${file} text)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  if(NOT SBX_PROGRAM_NAME STREQUAL "sbx")
    string(REGEX REPLACE "_sbx" "_${SBX_PROGRAM_IDENTIFIER}" text "${text}")
    string(REGEX REPLACE "([ (\"\n])sbx([ \n])" "\\1${SBX_PROGRAM_NAME}\\2" text "${text}")
    string(REGEX REPLACE "(Nm|Xr) sbx-" "\\1 ${SBX_PROGRAM_NAME}-" text "${text}")
    string(REGEX REPLACE "\n[.]Dt SBX" "\n.Dt ${SBX_PROGRAM_NAME_UPPER}" text "${text}")
  endif()
  cmake_path(GET file FILENAME name)
  file(CONFIGURE OUTPUT ${name} CONTENT "${text}" @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name} DESTINATION ${ARG_DESTINATION} RENAME ${ARG_RENAME})
endfunction()
