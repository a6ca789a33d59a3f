#include "plan/program/resolver.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/letters.hpp"
#include "base/text.hpp"
#include "plan/files/git_worktree.hpp"
#include "plan/files/grants.hpp"
#include "plan/program/misread.hpp"
#include "plan/program/shebang.hpp"

namespace sbx::plan {
namespace {

std::unexpected<Error> usage(std::string code, std::string message, std::string hint = {}) {
  return fail({.kind = ErrorKind::usage,
               .code = std::move(code),
               .message = std::move(message),
               .hint = std::move(hint)});
}

/// "docker run -v .:/w:ro": -v is --verbose here, and the directory would be the program.
std::string volume_hint(std::string_view name) {
  const bool has_mode = name.ends_with(":ro") || name.ends_with(":rw");
  if (has_mode) name.remove_suffix(3);
  const auto colon = has_mode ? name.rfind(':') : name.rfind(":/");
  if (colon == 0 || colon == std::string_view::npos || name.substr(colon).starts_with("://"))
    return {};
  return "sbx has no -v SOURCE:TARGET: --read " + shell_word(std::string(name)) +
         " shows a directory there, --write lets it be changed";
}

/// Words of "deno run".
std::vector<std::string> command_words(std::string_view command) {
  std::vector<std::string> words;
  while (!command.empty()) {
    const std::size_t end = command.find(' ');
    words.emplace_back(command.substr(0, end));
    command.remove_prefix(end == std::string_view::npos ? command.size() : end + 1);
  }
  return words;
}

}  // namespace

std::vector<std::string> search_path(const policy::Policy& policy, const host::Host& host,
                                     const std::string& system_root) {
  std::vector<std::string> directories;
  if (!policy.interpreters.venv.value.empty())
    directories.push_back(joined(policy.interpreters.venv.value, "bin"));
  if (system_root.empty()) {
    directories.insert(directories.end(), host.path.begin(), host.path.end());
  } else {
    for (const char* directory : {"/usr/local/bin", "/usr/bin", "/bin"})
      directories.push_back(system_root + directory);
  }
  return directories;
}

namespace {

/// The option that chose the policy, to be repeated in a proposed command.
std::string policy_words(const policy::Policy& policy) {
  const std::string& name = policy.files.empty() ? policy.name.value : policy.files.back();
  return name.empty() || name == "default" ? std::string() : "-p " + shell_word(name) + " ";
}

/// Most notebooks are Python's.
std::string policy_of_cells(const policy::Policy& policy) {
  const std::string words = policy_words(policy);
  return words.empty() ? "-p python " : words;
}

}  // namespace

Status Resolver::check_request() const {
  const bool code = request_.code.has_value() || request_.code_from_stdin;
  if (code && request_.language.empty())
    return usage("needs-language", "code without a file needs --lang",
                 "name its language: --lang " + language_names());
  if (!request_.language.empty() && language(request_.language) == nullptr)
    return usage("unknown-language", "--lang does not know '" + request_.language + "'",
                 did_you_mean_language(request_.language) + "it knows " + language_names());
  if (!request_.language.empty() && !code && request_.after_dashes)
    return usage("language-with-command", "--lang is for scripts; what follows -- is a command",
                 "leave out one of the two");
  if (!code && request_.operands.empty())
    return usage("no-command", "there is nothing to run", "name a script or a command");
  return {};
}

Status Resolver::use_environment() {
  const auto& venv = policy_.interpreters.venv;
  if (venv.value.empty()) return {};
  const std::string python = joined(venv.value, "bin/python");
  const auto directory = host_.files->canonical(joined(venv.value, "bin"));
  const std::string path = directory ? joined(*directory, "python") : std::string();
  if (!directory || !lookup_.is_executable_file(python) ||
      environment_of(*host_.files, path).empty())
    return fail(
        {.kind = ErrorKind::policy,
         .code = "no-venv",
         .message = "'" + venv.value + "' is not a virtual environment",
         .origin = venv.origin,
         .hint = "it has a pyvenv.cfg and bin/python; make one with `python3 -m venv DIR`"});
  SBX_TRY(exposure_.show_environment(parent_of(*directory), path));
  program_.bin_directories.push_back(view_.inside(*directory));
  return {};
}

Result<Program> Resolver::resolve() {
  SBX_TRY(check_request());
  SBX_TRY(use_environment());
  SBX_TRY(run());
  note_project_environment();
  note_repository();
  return std::move(program_);
}

/// git fails in a subdirectory if the run doesn't see the whole repository.
void Resolver::note_repository() {
  if (base_name(program_.executable) != "git") return;
  const std::string& here = host_.working_directory;
  const std::string top = repository_around(*host_.files, here);
  if (top.empty() || !view_.inside(top).empty()) return;
  std::string way = ".";
  if (top != here) {
    way = "..";
    for (int up = depth_of(here) - depth_of(top); up > 1; --up) way += "/..";
  }
  program_.notes.push_back("the program does not see the git repository '" + top +
                           "'; to share it copy-on-write, add --workspace " + way + ":overlay");
}

/// Noted only for a python program: no other uses the environment.
void Resolver::note_project_environment() {
  if (!project_) return;
  const bool uses =
      !project_->directory.empty() && program_.interpreter.prefix == project_->directory;
  if (uses) {
    program_.notes.push_back("using the virtual environment '" + project_->directory + "'");
    const Cover* over = view_.over(project_->directory);
    if (over != nullptr && over->live)
      program_.steps.push_back(plain_step(mount::ReadOnly{}, project_->directory));
  } else if (project_->directory.empty() && is_python_name(base_name(program_.executable))) {
    program_.notes.push_back(project_->note);
  }
}

Status Resolver::run() {
  if (request_.code || request_.code_from_stdin) return run_language_code();
  const std::string& operand = request_.operands.front();
  std::optional<std::string> script;
  if (!request_.after_dashes) script = SBX_TRY(script_file(operand));
  if (script) {
    SBX_TRY(run_script(operand, *script));
  } else if (!request_.language.empty()) {
    return fail({.kind = ErrorKind::not_found,
                 .code = "not-found",
                 .message = "there is no script '" + operand + "'",
                 .hint = "name a file, or give the code by -c; a command is run without --lang"});
  } else {
    SBX_TRY(run_command(operand));
  }
  return {};
}

std::string Resolver::absolute(const std::string& path) const {
  if (path.starts_with('/') || host_.working_directory.empty()) return path;
  return joined(host_.working_directory, path);
}

/// The canonical path if the operand names a file; empty if it names nothing or a directory.
Result<std::optional<std::string>> Resolver::script_file(const std::string& operand) const {
  if (operand.empty()) return std::nullopt;
  auto real = host_.files->canonical(absolute(operand));
  if (!real) return std::nullopt;
  const host::FileFacts facts = SBX_TRY(host_.files->look(*real));
  if (facts.type == host::FileType::directory) return std::nullopt;
  if (facts.type == host::FileType::regular) return std::move(*real);
  return fail({.kind = ErrorKind::not_executable,
               .code = "not-a-file",
               .message = "'" + operand + "' is not a regular file",
               .hint = "code from a pipe: sbx run --lang NAME -"});
}

void Resolver::finish(Launch launch, const std::vector<std::string>& more,
                      std::size_t operands_from) {
  program_.command = std::move(launch.words);
  program_.command.insert(program_.command.end(), more.begin(), more.end());
  for (std::size_t at = operands_from; at < request_.operands.size(); ++at)
    program_.command.push_back(request_.operands[at]);
  program_.executable = std::move(launch.executable);
  program_.interpreter = std::move(launch.interpreter);
  if (!launch.bin.empty() &&
      std::ranges::find(program_.bin_directories, launch.bin) == program_.bin_directories.end())
    program_.bin_directories.insert(program_.bin_directories.begin(), std::move(launch.bin));
}

namespace {

/// Debian's package of a command that has another name.
struct Package {
  std::string_view command;
  std::string_view name;
};
constexpr Package kPackages[] = {
    {"node", "nodejs"},    {"tsx", "nodejs"},   {"Rscript", "r-base-core"},
    {"lua", "lua5.4"},     {"php", "php-cli"},  {"cc", "gcc"},
    {"c++", "g++"},        {"go", "golang-go"}, {"javac", "default-jdk-headless"},
    {"ruby", "ruby"},      {"perl", "perl"},    {"rustc", "rustc"},
    {"python3", "python3"}};

std::string way_to_interpreter(const std::vector<std::vector<std::string>>& commands) {
  const std::string_view command =
      commands.empty() || commands.front().empty() ? std::string_view() : commands.front().front();
  const auto* const known = std::ranges::find(kPackages, command, &Package::command);
  const std::string install =
      known == std::end(kPackages)
          ? "install one"
          : "install one, on Debian: sudo apt install " + std::string(known->name);
  return install + "; or name another one under [interpreters.extensions]";
}

}  // namespace

Result<Launch> Resolver::first_of(const std::vector<std::vector<std::string>>& commands,
                                  const std::string& purpose) {
  std::string tried;
  for (const std::vector<std::string>& words : commands) {
    if (words.empty()) continue;
    tried += (tried.empty() ? "'" : ", '") + words.front() + "'";
    const std::string& path = words.front();
    const auto found = path.contains('/') ? std::optional(absolute(path)) : lookup_.find(path);
    if (!found || !lookup_.is_executable_file(*found)) continue;
    Launch launch = SBX_TRY(launcher_.program(*found, path));
    launch.words.insert(launch.words.end(), words.begin() + 1, words.end());
    if (launch.bin.empty()) launch.bin = parent_of(launch.executable);
    launch.interpreter.path = launch.real;
    SBX_TRY(check_allowed(*found, launch.real));
    launch.command = words.front();
    return launch;
  }
  if (!lookup_.has_search_path())
    return fail(
        {.kind = ErrorKind::not_found,
         .code = "no-interpreter",
         .message = "no interpreter for " + purpose + " (tried " + tried + "): PATH is not set",
         .hint = "set PATH, as PATH=/usr/bin:/bin, or give the interpreter's path: sbx run "
                 "-- /usr/bin/python3 FILE"});
  return fail({.kind = ErrorKind::not_found,
               .code = "no-interpreter",
               .message = "no interpreter for " + purpose + " is on PATH (tried " + tried + ")",
               .hint = way_to_interpreter(commands)});
}

Result<Launch> Resolver::interpreter(const Language& language, std::string reason) {
  std::vector<std::vector<std::string>> commands;
  for (const std::string_view command : language.commands) {
    commands.push_back(command_words(command));
    std::string& name = commands.back().front();
    // The recipe has the words for node itself.
    if (language.of_project && !name.starts_with(language.recipe_command))
      name = project_program(host_, request_, lookup_, view_, name).value_or(name);
  }
  Launch launch = SBX_TRY(first_of(commands, std::string(language.name)));
  if (launch.command.starts_with('/')) reason += ", the project's own";
  if (!launch.interpreter.reason.empty()) reason += ", " + launch.interpreter.reason;
  launch.interpreter.reason = std::move(reason);
  return launch;
}

namespace {

/// True if the program must be compiled, or otherwise prepared, before it runs.
bool needs_recipe(const Language& spoken, const Launch& launch) {
  return !spoken.recipe.steps.empty() &&
         (spoken.recipe_command.empty() || launch.command.starts_with(spoken.recipe_command));
}

}  // namespace

/// `source` is a path inside, or the text of the program.
Status Resolver::run_recipe(const Language& spoken, Launch compiler, SourceFrom from,
                            std::string source) {
  Launch shell = SBX_TRY(launcher_.program(lookup_.in_system("/bin/sh"), "sh"));
  std::vector<std::string> words =
      recipe_words(spoken.recipe, spoken.name, compiler.shown, from, policy_.limits.memory.value);
  if (from != SourceFrom::standard_input) words.push_back(std::move(source));
  program_.explanations.push_back("sh compiles the program with '" + compiler.shown +
                                  "', then becomes it");
  shell.interpreter = std::move(compiler.interpreter);
  shell.bin = std::move(compiler.bin);
  finish(std::move(shell), words, from == SourceFrom::file ? 1 : 0);
  return {};
}

Status Resolver::run_language_code() {
  const Language& spoken = *language(request_.language);
  Launch launch = SBX_TRY(interpreter(spoken, "--lang " + request_.language));
  if (needs_recipe(spoken, launch)) {
    if (request_.code)
      return run_recipe(spoken, std::move(launch), SourceFrom::argument, *request_.code);
    return run_recipe(spoken, std::move(launch), SourceFrom::standard_input, {});
  }
  std::vector<std::string> more;
  if (request_.code) {
    if (spoken.for_code.empty())
      return usage("no-code-option", "-c is not possible with " + request_.language,
                   "give the code on standard input: --lang " + request_.language + " -");
    more.assign(spoken.for_code.begin(), spoken.for_code.end());
    const bool is_file =
        !spoken.file_start.empty() && trimmed(*request_.code).starts_with(spoken.file_start);
    more.push_back(std::string(is_file ? spoken.before_file : "") + *request_.code);
    if (!request_.operands.empty())
      more.insert(more.end(), spoken.after_code.begin(), spoken.after_code.end());
  } else {
    more.assign(spoken.for_stdin.begin(), spoken.for_stdin.end());
  }
  finish(std::move(launch), more, 0);
  return {};
}

Result<Launch> Resolver::launch_by_extension(const std::string& typed) {
  const std::string_view name = base_name(typed);
  const std::size_t dot = name.rfind('.');
  const std::string extension(dot == std::string_view::npos || dot == 0 ? ""
                                                                        : name.substr(dot + 1));
  const auto own = policy_.interpreters.extensions.find(extension);
  const Language* known = extension.empty() ? nullptr : language_of_extension(extension);
  // The built-in table tries several names; the user's choice is taken as written.
  const bool chosen = own != policy_.interpreters.extensions.end() &&
                      (own->second.origin.layer == Layer::file ||
                       own->second.origin.layer == Layer::command_line || known == nullptr);
  if (chosen) {
    Launch launch = SBX_TRY(first_of({own->second.value}, "." + extension));
    launch.interpreter.reason = "extension ." + extension + " (" + own->second.origin.text() + ")";
    return launch;
  }
  if (known == nullptr)
    return fail(
        {.kind = ErrorKind::not_executable,
         .code = "no-interpreter",
         .message = "unknown script type: '" + typed + "'",
         .hint = extension == "ipynb"
                     ? "its cells are run by: sbx run " + policy_of_cells(policy_) + "--cells " +
                           shell_word(typed)
                     : "add a \"#!\" line, or name the language: --lang " + language_names()});
  return launch_in(*known, "extension ." + extension);
}

/// The interpreter, or the compiler together with its language.
Result<Launch> Resolver::launch_in(const Language& spoken, std::string reason) {
  Launch launch = SBX_TRY(interpreter(spoken, std::move(reason)));
  if (needs_recipe(spoken, launch)) launch.compiles = &spoken;
  return launch;
}

Result<Launch> Resolver::script_launch(const std::string& typed, const std::string& real) {
  if (!request_.language.empty())
    return launch_in(*language(request_.language), "--lang " + request_.language);
  const std::string head = host_.files->read_head(real, kHeadLimit).value_or(std::string());
  if (head.starts_with("#!")) {
    Launch launch = SBX_TRY(launcher_.shebang(typed, head));
    SBX_TRY(check_allowed(launch.words.front(), launch.real));
    return launch;
  }
  return launch_by_extension(typed);
}

/// An earlier run may have created a link in the project. It must not select a file of the
/// caller's.
Status Resolver::check_link(const std::string& typed, const std::string& real) const {
  const std::string& project = host_.working_directory;
  const std::string place = normal(absolute(typed));
  const bool leads_out = !project.empty() && is_within(place, project) && !is_within(real, project);
  if (!leads_out || !view_.inside(real).empty()) return {};
  return fail({.kind = ErrorKind::policy,
               .code = "link-leads-out",
               .message = "'" + typed + "' leads to '" + real + "', outside the working directory",
               .hint = "name that file, or grant it: --read " + real});
}

Status Resolver::run_script(const std::string& typed, const std::string& real) {
  if (!host_.files->may_read(real))
    return fail({.kind = ErrorKind::not_executable,
                 .code = "cannot-read",
                 .message = "cannot read '" + typed + "'",
                 .errno_value = EACCES,
                 .hint = cure_of_unreadable(host_, real)});
  SBX_TRY(view_.check_not_hidden("run '" + typed + "'", real, false));
  SBX_TRY(check_link(typed, real));
  const std::string path = absolute(typed);
  const std::string head = host_.files->read_head(real, 4).value_or(std::string());
  if (request_.language.empty() && is_elf(head)) {
    if (!host_.files->may_execute(real))
      return fail({.kind = ErrorKind::not_executable,
                   .code = "not-executable",
                   .message = "'" + typed + "' is a program without execute permission",
                   .hint = "chmod +x " + typed});
    Launch launch = SBX_TRY(launcher_.program(path, typed));
    SBX_TRY(check_allowed(path, launch.real));
    finish(std::move(launch), {}, 1);
    return {};
  }
  Launch launch = SBX_TRY(script_launch(typed, real));
  std::string shown = SBX_TRY(exposure_.show_file(real));
  if (works_as_typed(typed, real)) shown = typed;
  if (const Language* spoken = launch.compiles; spoken != nullptr)
    return run_recipe(*spoken, std::move(launch), SourceFrom::file, std::move(shown));
  finish(std::move(launch), {shown}, 1);
  return {};
}

/// True if the typed name leads to the same file from the working directory inside.
bool Resolver::works_as_typed(const std::string& typed, const std::string& real) const {
  if (!typed.starts_with('/') && inside_directory_ != host_.working_directory) return false;
  if (view_.inside(real) != real) return false;
  // Textual resolution is right only for leading "..": the directory before a later one may not
  // exist inside.
  const std::size_t named = typed.find_first_not_of(typed.starts_with('/') ? "/" : "./");
  const bool plain = named == std::string::npos || typed.find("/../", named) == std::string::npos;
  if (plain && normal(absolute(typed)) == real) return true;
  if (!plain) return false;
  std::vector<Hop> hops;
  const auto end = lookup_.walk(absolute(typed), hops);
  return end && *end == real && std::ranges::all_of(hops, [&](const Hop& hop) {
           return view_.inside(hop.first) == hop.first;
         });
}

namespace {

/// Quoted so that a shell takes it as one word.
std::string single_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char letter : text) quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  return quoted + "'";
}

}  // namespace

Status Resolver::run_command(const std::string& name) {
  const auto not_found = [](std::string message, std::string hint = {}) {
    return fail({.kind = ErrorKind::not_found,
                 .code = "not-found",
                 .message = std::move(message),
                 .hint = std::move(hint)});
  };
  constexpr const char* kNameOne =
      "name a program that is installed here, on PATH, or a file by its path, as ./script.py";
  if (name.empty()) return not_found("the name of the command is empty", kNameOne);
  // A call has no option that shows files.
  const std::string volume = starts_sandbox_ ? volume_hint(name) : "";
  std::optional<std::string> path = lookup_.find(name);
  if (!path && name.contains('/')) {
    path = absolute(name);
    const auto real = lookup_.real(*path);
    if (!real && name.starts_with("/dev/fd/"))
      return not_found("a descriptor of the caller is not a script",
                       starts_sandbox_ ? "code from a pipe: sbx run --lang NAME -"
                                       : "code from a pipe: --lang NAME -");
    if (!real && real.error().errno_value != ENOENT && real.error().errno_value != 0)
      return fail({.kind = ErrorKind::not_found,
                   .code = "not-found",
                   .message = "'" + name + "' can't be reached",
                   .errno_value = real.error().errno_value,
                   .hint = real.error().errno_value == EACCES
                               ? cure_of_unreadable(host_, absolute(name))
                               : kNameOne});
    if (!real) {
      const std::string similar = lookup_.similar_file(name, absolute(name));
      const std::string environment = environment_named(name);
      if (!environment.empty() && !lookup_.real(absolute(environment)))
        return not_found("there is no virtual environment '" + environment + "'",
                         "python3 -m venv " + environment + " makes it");
      return not_found("there is no file '" + name + "'", !similar.empty()
                                                              ? "did you mean '" + similar + "'?"
                                                          : volume.empty() ? kNameOne
                                                                           : volume);
    }
    if (lookup_.is_directory(*path))
      return fail({.kind = ErrorKind::not_executable,
                   .code = "not-executable",
                   .message = "'" + name + "' is a directory",
                   .hint = kNameOne});
    if (!lookup_.is_executable_file(*path))
      return fail({.kind = ErrorKind::not_executable,
                   .code = "not-executable",
                   .message = "'" + name + "' can't be executed",
                   .errno_value = EACCES,
                   .hint = "chmod +x " + shell_word(name) + ", or name its language: --lang NAME"});
  }
  if (!path && !lookup_.has_search_path())
    return not_found("there is no command '" + name + "': PATH is not set",
                     "give the program's path, or set PATH");
  if (!path && !request_.after_dashes && lookup_.is_directory(absolute(name)))
    return fail({.kind = ErrorKind::not_executable,
                 .code = "not-executable",
                 .message = "'" + name + "' is a directory",
                 .hint = kNameOne});
  if (!path && name.find_first_of(" \t\n|&;<>") != std::string::npos)
    return not_found("there is no command '" + name + "'",
                     (starts_sandbox_ ? "for a shell line: sbx run --lang bash -c "
                                      : "for a shell line: -- sh -c ") +
                         single_quoted(name));
  const auto here = path ? Result<host::FileFacts>({}) : host_.files->look(absolute(name));
  if (!path && request_.after_dashes && here && here->type == host::FileType::regular)
    return not_found("there is no command '" + name + "' on PATH",
                     "for the file here write ./" + name + ", or leave out --");
  if (!path) {
    const std::string meant =
        meant_form(request_.operands, starts_sandbox_ ? "sbx run" : "sbx session exec NAME");
    std::string similar = lookup_.similar(name);
    if (similar.empty() && !request_.after_dashes)
      similar = lookup_.similar_file(name, absolute(name));
    return not_found("there is no command '" + name + "' on PATH" +
                         (request_.after_dashes ? "" : " and no such file"),
                     !meant.empty()     ? meant
                     : !similar.empty() ? "did you mean '" + similar + "'?"
                     : volume.empty()   ? kNameOne
                                        : volume);
  }
  Launch launch = SBX_TRY(launcher_.program(*path, name));
  if (!policy_.interpreters.allow.empty()) {
    const std::string behind = SBX_TRY(launcher_.behind(*path));
    SBX_TRY(check_allowed(*path, behind));
  }
  finish(std::move(launch), {}, 1);
  return {};
}

/// `interpreters.allow`: names searched on PATH, or paths. Compared by the files they lead to.
Status Resolver::check_allowed(const std::string& asked, const std::string& real) {
  const auto& allow = policy_.interpreters.allow;
  if (allow.empty()) return {};
  const bool from_system =
      view_.over(parent_of(asked)) != nullptr && view_.over(parent_of(asked))->system;
  for (const auto& entry : allow) {
    if (!entry.value.contains('/') && from_system && base_name(asked) == entry.value) return {};
    const auto found =
        entry.value.contains('/') ? std::optional(entry.value) : lookup_.find(entry.value);
    if (!found) continue;
    const auto behind = launcher_.behind(*found);
    if (behind && *behind == real) return {};
  }
  return fail({.kind = ErrorKind::policy,
               .code = "interpreter-not-allowed",
               .message = "'" + real + "' is not among interpreters.allow",
               .origin = allow.front().origin,
               .hint = "interpreters.allow = [\"" + std::string(base_name(asked)) + "\"]"});
}

}  // namespace sbx::plan
