#pragma once

#include <string>
#include <vector>

#include "plan/program/exposure.hpp"
#include "plan/program/languages.hpp"
#include "plan/program/shims.hpp"

namespace sbx::plan {

/// The program that is finally executed, and the words before the program's own arguments.
struct Launch {
  std::string executable;          ///< inside
  std::vector<std::string> words;  ///< argv so far; words[0] is the program's name
  std::string shown;               ///< inside: the program before links and "#!" lines are resolved
  std::string real;                ///< the executed file on the host, canonical
  std::string bin;  ///< inside: the interpreter's directory; empty for other commands
  InterpreterFacts interpreter;
  std::string command;                 ///< the name it was found by, if there are several
  const Language* compiles = nullptr;  ///< set: a compiler of this language, so a recipe runs it
};

/// Follows shims, links and "#!" lines down to an ELF file, and makes everything on the way
/// visible.
class Launcher {
 public:
  Launcher(const Lookup& lookup, ShimContext context, View& view, Exposure& exposure)
      : lookup_(lookup), context_(std::move(context)), view_(view), exposure_(exposure) {}

  /// The program at `path`, called `name`. Errors: not_found, not_executable.
  Result<Launch> program(const std::string& path, const std::string& name) {
    return program(path, name, 0);
  }
  /// The interpreter that a script's "#!" line names. Errors: not_found, not_executable.
  Result<Launch> shebang(const std::string& script, std::string_view head) {
    return shebang(script, head, 0);
  }
  /// The program behind shims, links resolved; for comparisons.
  Result<std::string> behind(const std::string& path);

 private:
  struct Unshimmed {
    std::string path;
    std::string real;  ///< path with links resolved
    std::string head;
    std::string reason;
  };
  Result<Launch> program(const std::string& path, const std::string& name, int depth);
  Result<Launch> shebang(const std::string& script, std::string_view head, int depth);
  Result<Launch> named(const std::string& name, const std::string& script, int depth);
  Result<Launch> binary(const Unshimmed& found, const std::string& name);
  Result<Unshimmed> unshimmed(std::string path);

  const Lookup& lookup_;
  ShimContext context_;
  View& view_;
  Exposure& exposure_;
};

}  // namespace sbx::plan
