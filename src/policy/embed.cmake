# Writes a .cpp that holds the built-in policies. cmake -DOUTPUT=FILE -P embed.cmake -- NAME.toml...
set(names)
set(seen_dashes FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(index RANGE 0 ${last})
  if(seen_dashes)
    list(APPEND names "${CMAKE_ARGV${index}}")
  elseif("${CMAKE_ARGV${index}}" STREQUAL "--")
    set(seen_dashes TRUE)
  endif()
endforeach()

set(entries "")
foreach(file IN LISTS names)
  get_filename_component(name "${file}" NAME_WE)
  file(READ "${file}" content)
  string(APPEND entries "    {\"${name}\", R\"sbx-policy(${content})sbx-policy\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "// Made by src/policy/embed.cmake from policies/*.toml.
#include <array>

#include \"policy/load.hpp\"

namespace sbx::policy {
namespace {

constexpr auto kBuiltins = std::to_array<Builtin>({
${entries}});

}  // namespace

std::span<const Builtin> builtins() { return kBuiltins; }

}  // namespace sbx::policy
")
