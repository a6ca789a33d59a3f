# Tests that drive the built binary from outside, each as root and as an ordinary user.
#
# CTest's summary counts both: NAME.root is a visible skip when ctest is not run by root, NAME.user gives up root first.
# Tests whose method name begins with test_slow_ run only with `ctest -C slow -L slow`.

find_program(SBX_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)
set(SBX_RUN_AS ${PROJECT_SOURCE_DIR}/tests/run-as)
set(SBX_HARNESS ${PROJECT_SOURCE_DIR}/tests/harness) # what the scripts import; harness.py says how to start one by hand

# Every `def test_X` of a Python script becomes the CTests NAME.X.root and NAME.X.user, or of the given USERS; with ONLY, those
# whose X begins with that. LOCK names what only one of them uses at a time. GROUPED: a class becomes one CTest, NAME.CLASS.root,
# and its methods share the start of one Python; slow methods stay apart. By hand any method runs alone (tests/harness/harness.py).
function(sbx_script_test name)
  cmake_parse_arguments(ARG "SERIAL;GROUPED" "SCRIPT;TIMEOUT;ONLY;LOCK" "LABELS;USERS" ${ARGN})
  if(NOT ARG_USERS)
    set(ARG_USERS root user)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300) # for a test that hangs, on whatever machine
  endif()
  cmake_path(ABSOLUTE_PATH ARG_SCRIPT)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARG_SCRIPT})
  file(STRINGS ${ARG_SCRIPT} definitions REGEX "^class [A-Za-z]+|^ +def test_[a-z0-9_]+\\(")
  set(class)
  set(words) # a class or a method each
  foreach(definition IN LISTS definitions)
    if(definition MATCHES "^class ([A-Za-z]+)")
      set(class ${CMAKE_MATCH_1})
      continue()
    endif()
    string(REGEX REPLACE "^ +def (test_([a-z0-9_]+))\\(.*" "\\1;\\2" method "${definition}")
    list(POP_BACK method title)
    if(NOT title MATCHES "^${ARG_ONLY}")
      continue()
    endif()
    if(ARG_GROUPED AND NOT title MATCHES "^slow_")
      list(APPEND words ${class})
    else()
      list(APPEND words ${method})
    endif()
    if(title MATCHES "fork_bomb") # several at once, and none is gone in the time that one has
      list(GET words -1 word)
      set(lock_of_${word} fork_bomb)
    endif()
  endforeach()
  list(REMOVE_DUPLICATES words)
  foreach(word IN LISTS words)
    string(REGEX REPLACE "^test_" "" title "${word}")
    foreach(user IN LISTS ARG_USERS)
      set(test ${name}.${title}.${user})
      set(labels ${ARG_LABELS} ${user})
      set(only)
      set(timeout ${ARG_TIMEOUT})
      if(title MATCHES "^slow_")
        list(APPEND labels slow)
        set(only CONFIGURATIONS slow)
        set(timeout 3600)
      endif()
      add_test(NAME ${test} ${only} COMMAND ${SBX_RUN_AS} ${user} ${SBX_PYTHON} ${ARG_SCRIPT} ${word})
      sbx_driven_test(${test} TIMEOUT ${timeout} LABELS ${labels})
      set_tests_properties(${test} PROPERTIES RESOURCE_LOCK "${lock_of_${word}};${ARG_LOCK}")
      if(ARG_LOCK) # what runs in succession begins early
        set_tests_properties(${test} PROPERTIES COST 100)
      endif()
      if(ARG_SERIAL OR title MATCHES "in_flight") # that stops whatever passes descriptors as the same user
        set_tests_properties(${test} PROPERTIES RUN_SERIAL ON)
      endif()
    endforeach()
  endforeach()
endfunction()

# The environment of every test that drives the binary.
function(sbx_driven_test test)
  cmake_parse_arguments(ARG "" "TIMEOUT" "LABELS" ${ARGN})
  set_tests_properties(${test} PROPERTIES
    LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77
    ENVIRONMENT "SBX=$<TARGET_FILE:sbx_binary>;SBX_WITH_FAULTS=$<TARGET_FILE:sbx_with_faults>;SBX_PROBE=$<TARGET_FILE:sbx_probe>;SBX_SOURCE=${PROJECT_SOURCE_DIR};SBX_BUILD=${PROJECT_BINARY_DIR};SBX_CTEST=${test};PYTHONPATH=${SBX_HARNESS};PYTHONDONTWRITEBYTECODE=1")
endfunction()

# Runs each GoogleTest binary of a directory once more as an ordinary user: NAME.all.user.
function(sbx_gtests_as_user directory)
  get_property(targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    get_target_property(libraries ${target} LINK_LIBRARIES)
    if(type STREQUAL "EXECUTABLE" AND "GTest::gtest_main" IN_LIST libraries)
      add_test(NAME ${target}.all.user COMMAND ${SBX_RUN_AS} other-user $<TARGET_FILE:${target}>)
      get_target_property(labels ${target} SBX_LABELS)
      set_tests_properties(${target}.all.user PROPERTIES LABELS "${labels};user" TIMEOUT 300 SKIP_RETURN_CODE 77)
    endif()
  endforeach()
endfunction()
