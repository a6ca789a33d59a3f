#include "plan/program/languages.hpp"
#include "policy/keys.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace sbx::plan {
namespace {

// Each compiler's own defaults, and the variables by which make(1) changes them.
constexpr Recipe kC = {
    "code.c",
    R"("$compiler" ${CFLAGS-} ${here:+-iquote "$here"} -o "$build/program" -x c "$source" -x none ${LDFLAGS-} ${LDLIBS-} -lm || exit)"};
constexpr Recipe kCxx = {
    "code.cpp",
    R"("$compiler" ${CXXFLAGS-} ${here:+-iquote "$here"} -o "$build/program" -x c++ "$source" -x none ${LDFLAGS-} ${LDLIBS-} || exit)"};
// rustc would derive the crate's name from the file's, which need not be an identifier.
constexpr Recipe kRust = {
    "code.rs",
    R"("$compiler" --edition "${RUSTEDITION-2021}" --crate-name program ${RUSTFLAGS-} -o "$build/program" "$source" || exit)"};
// go recognises sources by their extension.
constexpr Recipe kGo = {
    "code.go",
    R"(case $source in *.go) ;; *) cp "$source" "$build/code.go" && source=$build/code.go || exit ;; esac
"$compiler" build -o "$build/program" "$source" || exit)"};
// The java launcher compiles one file in memory (since 11, JEP 330), in half the time of javac plus
// java. Without MaxRAM it sizes its heap by the host's memory, because there is no /sys inside.
// Its performance data has a file in /tmp by process number. Calls of a session share /tmp, and
// their numbers are the same: java would print that another process has locked the file.
constexpr Recipe kJava = {
    "code.java",
    R"(case $source in *.java) ;; *) cp "$source" "$build/code.java" && source=$build/code.java || exit ;; esac
exec "${compiler%/*}/java" -XX:-UsePerfData -XX:MaxRAM="$memory" -XX:MaxRAMPercentage=60 "$source" "$@")"};
// Type stripping came with node 22.6; an older node fails with "bad option".
constexpr Recipe kTypeScript = {"code.ts",
                                R"(if "$compiler" --experimental-strip-types -e '' 2>/dev/null; then
  exec "$compiler" --experimental-strip-types --disable-warning=ExperimentalWarning "$source" "$@"
fi
echo "typescript: node $("$compiler" --version) can't run it; node 22.6 or later can, as do tsx, ts-node, bun and deno" >&2
exit 126)"};

const std::vector<Language>& languages() {
  static const std::vector<Language> table = {
      {"python", {"python3", "python"}, {"-c"}, {}, {"-"}},
      // Without "--" node would interpret the program's options as its own.
      {"javascript", {"node", "nodejs"}, {"-e"}, {"--"}, {"-"}},
      {"typescript",
       {"tsx", "ts-node", "bun", "deno run", "node", "nodejs"},
       {},
       {},
       {"-"},
       kTypeScript,
       "node",
       true},
      {"ruby", {"ruby"}, {"-e"}, {"--"}, {"-"}},
      {"perl", {"perl"}, {"-e"}, {"--"}, {"-"}},
      {"r", {"Rscript"}, {"-e"}, {}, {"-"}},
      {"lua", {"lua", "lua5.4", "lua5.3", "luajit"}, {"-e"}, {}, {"-"}},
      // A file begins outside of the code, -r inside.
      {"php", {"php"}, {"-r"}, {"--"}, {"--"}, {}, {}, false, "<?", "?>"},
      // A shell takes the word after the code as $0, not as the first argument.
      {"bash", {"bash"}, {"-c"}, {"bash"}, {"-s", "--"}},
      {"sh", {"sh"}, {"-c"}, {"sh"}, {"-s", "--"}},
      {"c", {"cc", "gcc", "clang"}, {}, {}, {}, kC},
      {"c++", {"c++", "g++", "clang++"}, {}, {}, {}, kCxx},
      {"go", {"go"}, {}, {}, {}, kGo},
      {"rust", {"rustc"}, {}, {}, {}, kRust},
      // A run-time alone can't compile, so the compiler is searched for.
      {"java", {"javac"}, {}, {}, {}, kJava},
  };
  return table;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 23> kExtensions = {{
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
    {"c", "c"},
    {"cc", "c++"},
    {"cpp", "c++"},
    {"cxx", "c++"},
    {"go", "go"},
    {"rs", "rust"},
    {"java", "java"},
}};

using OtherName = std::pair<std::string_view, std::string_view>;
/// Other names that models and markdown fences use for a language, besides its extensions.
constexpr auto kOtherNames = std::to_array<OtherName>({
    {"python3", "python"},
    {"py3", "python"},
    {"node", "javascript"},
    {"nodejs", "javascript"},
    {"ecmascript", "javascript"},
    {"tsx", "typescript"},
    {"rscript", "r"},
    {"shell", "bash"},
    {"console", "bash"},
    {"shell-session", "bash"},
    {"posix", "sh"},
    {"c99", "c"},
    {"c11", "c"},
    {"gcc", "c"},
    {"g++", "c++"},
    {"golang", "go"},
    {"perl5", "perl"},
});

constexpr std::array<std::string_view, 33> kInterpreters = {
    "python",  "pypy",   "node",  "nodejs",  "deno",  "bun",    "ruby", "jruby", "perl",
    "lua",     "luajit", "R",     "Rscript", "php",   "julia",  "java", "tclsh", "guile",
    "racket",  "octave", "erl",   "elixir",  "cc",    "c++",    "gcc",  "g++",   "clang",
    "clang++", "go",     "rustc", "cargo",   "javac", "rustdoc"};

/// "python3.11" is python, "lua5.4" is lua.
std::string_view stem(std::string_view name) {
  const std::size_t end = name.find_last_not_of("0123456789.-");
  return end == std::string_view::npos ? std::string_view() : name.substr(0, end + 1);
}

}  // namespace

const Language* language(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + ('a' - 'A'))
                                          : static_cast<char>(letter);
  });
  const auto other = std::ranges::find(kOtherNames, lower, &OtherName::first);
  if (other != kOtherNames.end()) lower = other->second;
  const auto found = std::ranges::find(languages(), lower, &Language::name);
  if (found != languages().end()) return &*found;
  const auto extension = std::ranges::find(kExtensions, lower, &OtherName::first);
  return extension == kExtensions.end() ? nullptr : language(extension->second);
}

std::string language_names() {
  std::string names;
  for (const Language& each : languages()) {
    if (!names.empty()) names += ", ";
    names += each.name;
  }
  return names;
}

std::string did_you_mean_language(std::string_view typed) {
  std::vector<std::string_view> names;
  for (const Language& each : languages()) names.push_back(each.name);
  const std::string_view meant = policy::nearest(typed, names);
  return meant.empty() ? std::string() : "did you mean " + std::string(meant) + "? ";
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
