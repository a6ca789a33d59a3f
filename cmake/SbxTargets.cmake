# Warnings and hardening are on an interface target that is not exported; two functions create libraries and tests.

add_library(sbx_options INTERFACE)
target_compile_options(sbx_options INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wnon-virtual-dtor -Wcast-align -Wformat=2 -Wundef -Werror=return-type -Werror=switch
  -Wno-missing-field-initializers
  # g++ 12 sees overlaps and overflows in std::string that are not there (GCC bugs 105329 and 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>
  # A unity build includes the files of a library like headers.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${CMAKE_UNITY_BUILD}>>:-Wno-subobject-linkage>
  # g++ looks for unused memory after each 256 MiB, not each 128 MiB or less: that takes an eighth of its time.
  $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=262144;--param=ggc-min-expand=100>
  # libstdc++ 12's std::stable_sort uses a function that it deprecates itself.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
  -fstack-protector-strong -fstack-clash-protection $<$<STREQUAL:${CMAKE_SYSTEM_PROCESSOR},x86_64>:-fcf-protection=full> -fno-plt
  # Return addresses are signed. BTI, the other half, takes effect only if every object has it, and Debian 12's start files don't.
  $<$<STREQUAL:${CMAKE_SYSTEM_PROCESSOR},aarch64>:-mbranch-protection=standard>)
target_compile_definitions(sbx_options INTERFACE _GNU_SOURCE SBX_VERSION="${PROJECT_VERSION}")
target_include_directories(sbx_options INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_link_options(sbx_options INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,--as-needed)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  if(NOT CMAKE_CXX_FLAGS_RELEASE MATCHES "-O0") # glibc checks only where the compiler optimises
    target_compile_definitions(sbx_options INTERFACE _FORTIFY_SOURCE=2)
  endif()
  target_compile_options(sbx_options INTERFACE -ffunction-sections -fdata-sections)
  target_link_options(sbx_options INTERFACE -Wl,--gc-sections)
endif()
if(SBX_SANITIZE)
  target_compile_options(sbx_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(sbx_options INTERFACE -fsanitize=address,undefined)
endif()

# fmt's own functions, compiled once: in every file, they take a tenth of the build. Debian 12 packages no archive of them.
add_library(sbx_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt.cpp)
target_compile_options(sbx_fmt PRIVATE $<TARGET_PROPERTY:sbx_options,INTERFACE_COMPILE_OPTIONS>)
target_compile_definitions(sbx_fmt PRIVATE $<TARGET_PROPERTY:sbx_options,INTERFACE_COMPILE_DEFINITIONS>)
target_link_libraries(sbx_options INTERFACE $<BUILD_INTERFACE:sbx_fmt>)

# Of the child, between clone and exec (src/spawn/CMakeLists.txt).
set(SBX_CHILD_OPTIONS
  -fno-exceptions -fno-rtti -fno-threadsafe-statics -fno-stack-protector -fno-sanitize=all -U_FORTIFY_SOURCE)

# The headers of libraries, parsed once for all libraries of the tree and once for all tests (PIC and PIE differ): saves a third
# of a build without optimisation.
set(SBX_LIBRARY_HEADERS <algorithm> <array> <charconv> <chrono> <functional> <map> <memory> <optional> <set> <span> <string> <string_view>
  <variant> <vector> <fmt/format.h>)
if(SBX_PRECOMPILE)
  set(empty ${CMAKE_CURRENT_BINARY_DIR}/precompiled.cpp)
  file(CONFIGURE OUTPUT ${empty} CONTENT "int main() {}\n")
  add_library(sbx_precompiled OBJECT ${empty})
  target_link_libraries(sbx_precompiled PRIVATE sbx_options)
  target_precompile_headers(sbx_precompiled PRIVATE ${SBX_LIBRARY_HEADERS})
  if("code" IN_LIST SBX_TESTS)
    find_package(GTest REQUIRED)
    add_executable(sbx_precompiled_tests ${empty})
    target_link_libraries(sbx_precompiled_tests PRIVATE sbx_options GTest::gtest GTest::gmock)
    target_precompile_headers(sbx_precompiled_tests PRIVATE ${SBX_LIBRARY_HEADERS} <gmock/gmock.h> <gtest/gtest.h>)
  endif()
endif()

function(sbx_reuse_precompiled target from)
  if(SBX_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
endfunction()

# One static library per directory of src; DEPENDS are other directories, LIBRARIES are packaged ones.
function(sbx_directory name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  add_library(sbx_${name} STATIC ${ARG_SOURCES})
  # tests/faults, or src/lib for the last three, compiles these again, and the linker must be able to leave each out of the archive.
  set(alone ${ARG_SOURCES})
  list(FILTER alone INCLUDE REGEX "^(faults|udp_service|acquire|cli|tree|progress|error|outcome|units)[.]cpp$")
  set_source_files_properties(${alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_link_libraries(sbx_${name} PUBLIC sbx_options ${ARG_LIBRARIES})
  sbx_reuse_precompiled(sbx_${name} sbx_precompiled)
  foreach(dependency IN LISTS ARG_DEPENDS)
    target_link_libraries(sbx_${name} PUBLIC sbx_${dependency})
  endforeach()
endfunction()

add_custom_target(sbx_code_tests COMMENT "What `code` tests run")

# A GoogleTest binary with the given labels. Every TEST becomes a CTest, so that they run side by side and each has its
# timeout; a `unit` binary is one CTest, because a start with the address sanitizer and its search for leaks takes longer than
# most of its TESTs.
function(sbx_gtest name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LIBRARIES;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE sbx_options ${ARG_LIBRARIES} GTest::gtest GTest::gmock GTest::gtest_main)
  sbx_reuse_precompiled(${name} sbx_precompiled_tests)
  foreach(dependency IN LISTS ARG_DEPENDS)
    target_link_libraries(${name} PRIVATE sbx_${dependency})
  endforeach()
  add_dependencies(sbx_code_tests ${name})
  set(timeout 120)
  if("slow" IN_LIST ARG_LABELS)
    set(timeout 3600)
  endif()
  # gtest_discover_tests passes its properties on as a list: an inner list needs its semicolons kept
  string(REPLACE ";" "\\;" labels "${ARG_LABELS}")
  set_property(TARGET ${name} PROPERTY SBX_LABELS ${ARG_LABELS})
  if("unit" IN_LIST ARG_LABELS)
    add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${name} PROPERTIES TIMEOUT 600 LABELS "${ARG_LABELS}")
  else()
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 3600 PROPERTIES TIMEOUT ${timeout} LABELS "${labels}")
  endif()
endfunction()

# How the binary that ships is linked.
function(sbx_link_as_shipped target)
  if(SBX_STATIC)
    target_link_options(${target} PRIVATE -static-pie)
    # What a start executes lies side by side: a fifth fewer page faults. GNU ld can't be told an order. Relocations in 1.5 KiB
    # instead of 170 (glibc 2.36): 26,000 instructions fewer.
    find_program(SBX_LLD ld.lld)
    if(SBX_LLD)
      if(CMAKE_CROSSCOMPILING)
        # A cross g++ looks for TRIPLET-ld.lld, and for ld.lld only where -B says.
        file(REAL_PATH ${SBX_LLD} lld)
        cmake_path(GET lld PARENT_PATH lld)
        target_link_options(${target} PRIVATE -B${lld})
      endif()
      set(order ${PROJECT_SOURCE_DIR}/cmake/start_order.txt)
      target_link_options(${target} PRIVATE -fuse-ld=lld -Wl,--symbol-ordering-file=${order} -Wl,--no-warn-symbol-ordering
        -Wl,--pack-dyn-relocs=relr)
      set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${order})
    endif()
  endif()
endfunction()
