#include "plan/program/launch.hpp"

#include "plan/files/path_text.hpp"
#include "plan/program/architecture.hpp"
#include "plan/program/languages.hpp"
#include "plan/program/proxies.hpp"
#include "plan/program/shebang.hpp"

namespace sbx::plan {
namespace {

constexpr int kMostInterpreters = 5;  // the kernel's limit too (ELOOP), execve(2)
constexpr int kMostShims = 4;

std::unexpected<Error> not_executable(std::string code, std::string message,
                                      std::string hint = {}) {
  return fail({.kind = ErrorKind::not_executable,
               .code = std::move(code),
               .message = std::move(message),
               .hint = std::move(hint)});
}

std::unexpected<Error> bad_interpreter(std::string message) {
  return not_executable("bad-interpreter", std::move(message),
                        "correct the \"#!\" line, or name the language with --lang");
}

std::unexpected<Error> foreign(const std::string& path, const std::string& built_for) {
  const std::string own(own_architecture());
  return not_executable("foreign-architecture",
                        "'" + path + "' is a program for " + built_for +
                            ", and sandboxes here run " + "programs for " + own + " only",
                        "use a program built for " + own);
}

/// Keeps the last component unresolved: a virtual environment's python is a link, and python
/// recognises the environment by it.
Result<std::string> with_real_directory(const Lookup& lookup, const std::string& path,
                                        const std::string& real) {
  if (path == real) return path;
  return joined(SBX_TRY(lookup.real(parent_of(path))), base_name(path));
}

bool is_interpreter(const std::string& path, const std::string& real) {
  return is_interpreter_name(base_name(real)) || is_interpreter_name(base_name(path));
}

}  // namespace

Result<Launcher::Unshimmed> Launcher::unshimmed(std::string path) {
  std::string reason;
  for (int hops = 0; hops < kMostShims; ++hops) {
    std::string real = SBX_TRY(lookup_.real(path));
    std::string head = lookup_.files().read_head(real, kHeadLimit).value_or(std::string());
    auto behind = SBX_TRY(read_shim(path, head, lookup_, context_));
    if (!behind && is_elf(head)) behind = SBX_TRY(read_proxy(path, real, lookup_, context_));
    if (!behind)
      return Unshimmed{std::move(path), std::move(real), std::move(head), std::move(reason)};
    path = std::move(behind->path);
    reason = std::move(behind->reason);
  }
  return not_executable("shim-loop", "the shims of '" + path + "' lead in a circle");
}

Result<std::string> Launcher::behind(const std::string& path) {
  return std::move(SBX_TRY(unshimmed(path)).real);
}

Result<Launch> Launcher::binary(const Unshimmed& found, const std::string& name) {
  Launch launch;
  launch.real = found.real;
  launch.interpreter.reason = found.reason;
  const std::string path = SBX_TRY(with_real_directory(lookup_, found.path, found.real));
  const bool interpreter = is_interpreter(path, found.real) || !found.reason.empty();
  const Cover* over = view_.over(path);
  const bool in_system = over != nullptr && over->system;
  // Interpreters outside of grants are not surveyed: only rules with literal paths hide them.
  const bool alone = !in_system && (over == nullptr || over->source.empty());
  SBX_TRY(view_.check_not_hidden("run '" + path + "'", path, in_system || (interpreter && alone)));
  const std::string environment = in_system ? std::string() : environment_of(lookup_.files(), path);
  if (!environment.empty()) {
    SBX_TRY(exposure_.show_environment(environment, path));
    launch.interpreter.prefix = environment;
    if (launch.interpreter.reason.empty())
      launch.interpreter.reason = "virtual environment '" + environment + "'";
  } else if (interpreter) {
    launch.interpreter.prefix = SBX_TRY(exposure_.show_interpreter(launch.real));
  } else {
    SBX_TRY(exposure_.show_file(launch.real));
  }
  launch.executable = environment.empty() ? view_.inside(launch.real) : view_.inside(path);
  if (interpreter) {
    launch.interpreter.path = launch.real;
    launch.bin = parent_of(launch.executable);
  }
  // A program outside the system directories must find its own directory by argv[0], whatever PATH
  // contains (python does).
  if (interpreter && !in_system && !name.contains('/')) {
    std::string shown = view_.inside(path);
    launch.words = {shown.empty() ? launch.executable : std::move(shown)};
  } else {
    launch.words = {name};
  }
  launch.shown = view_.inside(path);
  if (launch.shown.empty()) launch.shown = launch.executable;
  return launch;
}

Result<Launch> Launcher::program(const std::string& path, const std::string& name, int depth) {
  const Unshimmed found = SBX_TRY(unshimmed(path));
  if (is_elf(found.head)) {
    if (const std::string built_for = foreign_architecture(found.head, lookup_.files());
        !built_for.empty())
      return foreign(found.path, built_for);
    return binary(found, name);
  }
  if (!found.head.starts_with("#!"))
    return not_executable("not-executable",
                          "'" + path + "' is neither a program nor begins with a \"#!\" line",
                          "name the language with --lang, or add a \"#!\" line");
  const std::string& real = found.real;
  const Cover* over = view_.over(real);
  SBX_TRY(
      view_.check_not_hidden("run '" + found.path + "'", real, over != nullptr && over->system));
  Launch launch = SBX_TRY(shebang(found.path, found.head, depth));
  // A version manager's tool brings the directories of its own prefix.
  if (is_interpreter_name(base_name(real)) || !found.reason.empty())
    SBX_TRY(exposure_.show_interpreter(real));
  std::string shown = view_.inside(SBX_TRY(with_real_directory(lookup_, found.path, real)));
  if (shown.empty()) shown = SBX_TRY(exposure_.show_file(real));
  launch.words.push_back(shown);
  launch.shown = std::move(shown);
  if (!found.reason.empty()) launch.interpreter.reason = found.reason;
  return launch;
}

Result<Launch> Launcher::named(const std::string& name, const std::string& script, int depth) {
  const auto found = lookup_.find(name);
  if (!found)
    return bad_interpreter("the interpreter '" + name + "' of '" + script + "' is not on PATH");
  return program(*found, name, depth);
}

Result<Launch> Launcher::shebang(const std::string& script, std::string_view head, int depth) {
  const auto line = read_shebang(head);
  if (!line) return bad_interpreter("the \"#!\" line of '" + script + "' names nothing");
  // env would get the script's own path, and start it again forever.
  if (is_env_alone(*line))
    return bad_interpreter("the \"#!\" line of '" + script + "' names env without a program");
  if (depth >= kMostInterpreters)
    return bad_interpreter("the interpreters of '" + script + "' lead in a circle");
  Launch launch;
  if (const auto words = env_command(*line)) {
    launch = SBX_TRY(named(words->front(), script, depth + 1));
    launch.words.insert(launch.words.end(), words->begin() + 1, words->end());
  } else {
    const std::string path =
        lookup_.in_system(joined(context_.working_directory, line->interpreter));
    if (!lookup_.is_executable_file(path))
      return bad_interpreter("the interpreter '" + line->interpreter + "' of '" + script +
                             "' does not exist or can't be executed");
    launch = SBX_TRY(program(path, line->interpreter, depth + 1));
    launch.words.insert(launch.words.end(), line->arguments.begin(), line->arguments.end());
  }
  launch.interpreter.path = launch.real;
  if (launch.interpreter.reason.empty()) launch.interpreter.reason = "#! line";
  if (launch.bin.empty()) launch.bin = parent_of(launch.executable);
  return launch;
}

}  // namespace sbx::plan
