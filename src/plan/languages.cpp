#include "plan/languages.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace sbx::plan {
namespace {

const std::vector<Language>& languages() {
  static const std::vector<Language> table = {
      {"python", {"python3", "python"}, {"-c"}, {}, {"-"}},
      // Without "--" node takes the program's own options for its own.
      {"javascript", {"node", "nodejs"}, {"-e"}, {"--"}, {"-"}},
      {"typescript", {"tsx", "ts-node", "bun", "deno run"}, {}, {}, {"-"}},
      {"ruby", {"ruby"}, {"-e"}, {"--"}, {"-"}},
      {"perl", {"perl"}, {"-e"}, {"--"}, {"-"}},
      {"r", {"Rscript"}, {"-e"}, {}, {"-"}},
      {"lua", {"lua", "lua5.4", "lua5.3", "luajit"}, {"-e"}, {}, {"-"}},
      {"php", {"php"}, {"-r"}, {"--"}, {"--"}},
      // The word after the code of a shell is $0, not the first argument.
      {"bash", {"bash"}, {"-c"}, {"bash"}, {"-s", "--"}},
      {"sh", {"sh"}, {"-c"}, {"sh"}, {"-s", "--"}},
  };
  return table;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kExtensions = {{
    {"py", "python"},
    {"pyw", "python"},
    {"js", "javascript"},
    {"mjs", "javascript"},
    {"cjs", "javascript"},
    {"ts", "typescript"},
    {"mts", "typescript"},
    {"cts", "typescript"},
    {"R", "r"},
    {"r", "r"},
    {"rb", "ruby"},
    {"pl", "perl"},
    {"sh", "sh"},
    {"bash", "bash"},
    {"lua", "lua"},
    {"php", "php"},
}};

constexpr std::array<std::string_view, 22> kInterpreters = {
    "python", "pypy",  "node",   "nodejs", "deno",    "bun",   "ruby",  "jruby",
    "perl",   "lua",   "luajit", "R",      "Rscript", "php",   "julia", "java",
    "tclsh",  "guile", "racket", "octave", "erl",     "elixir"};

/// "python3.11" is python, "lua5.4" is lua.
std::string_view stem(std::string_view name) {
  const std::size_t end = name.find_last_not_of("0123456789.-");
  return end == std::string_view::npos ? std::string_view() : name.substr(0, end + 1);
}

}  // namespace

const Language* language(std::string_view name) {
  const auto found = std::ranges::find(languages(), name, &Language::name);
  return found == languages().end() ? nullptr : &*found;
}

std::string language_names() {
  std::string names;
  for (const Language& each : languages()) {
    if (!names.empty()) names += ", ";
    names += each.name;
  }
  return names;
}

const Language* language_of_extension(std::string_view extension) {
  const auto* found = std::ranges::find(kExtensions, extension,
                                        &std::pair<std::string_view, std::string_view>::first);
  return found == kExtensions.end() ? nullptr : language(found->second);
}

bool is_interpreter_name(std::string_view name) {
  return std::ranges::find(kInterpreters, stem(name)) != kInterpreters.end();
}

bool is_python_name(std::string_view name) {
  const std::string_view plain = stem(name);
  return plain == "python" || plain == "pypy";
}

}  // namespace sbx::plan
