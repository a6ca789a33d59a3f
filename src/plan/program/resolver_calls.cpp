// What Resolver does for a held sandbox and its calls; resolver.cpp has a run's part.

#include "plan/program/resolver.hpp"

#include <algorithm>

namespace sbx::plan {
namespace {

/// Languages whose interpreters a held sandbox shows, by their first command that is found.
constexpr const char* kShown[] = {"python", "javascript", "typescript", "ruby", "perl",
                                  "r",      "lua",        "php",        "bash", "sh",
                                  "c",      "c++",        "go",         "rust", "java"};

bool is_of_system(const std::string& directory) {
  return directory == "/usr/bin" || directory == "/bin" || directory == "/usr/local/bin";
}

}  // namespace

Result<Program> Resolver::show_all() {
  SBX_TRY(use_environment());
  for (const char* const name : kShown) {
    for (const std::string_view command : language(name)->commands) {
      const std::string word(command.substr(0, command.find(' ')));
      const auto found = lookup_.find(word);
      if (!found) continue;
      const auto launch = launcher_.program(*found, word);
      if (!launch) continue;
      if (!launch->bin.empty() && !is_of_system(launch->bin) &&
          std::ranges::find(program_.bin_directories, launch->bin) ==
              program_.bin_directories.end())
        program_.bin_directories.push_back(launch->bin);
      break;
    }
  }
  note_project_environment();
  return std::move(program_);
}

/// A call can't add to what the sandbox shows.
Status Resolver::check_shown() const {
  if (program_.steps.empty()) return {};
  const std::string path = program_.steps.front().target;
  return fail({.kind = ErrorKind::not_found,
               .code = "not-in-session",
               .message = "the session does not show '" + path + "'",
               .hint = "start it with --read " + path});
}

Status Resolver::find_in_sandbox(const std::string& operand, std::optional<Executable>& first) {
  const std::string_view name = base_name(operand);
  const std::size_t dot = name.rfind('.');
  const bool has_path = operand.contains('/');
  const bool is_script =
      dot != std::string_view::npos && dot > 0 &&
      (language_of_extension(name.substr(dot + 1)) != nullptr ||
       policy_.interpreters.extensions.contains(std::string(name.substr(dot + 1))));
  const std::string path = has_path ? operand : "./" + operand;
  if (is_script && !request_.after_dashes) {
    Launch launch = SBX_TRY(launch_by_extension(operand));
    // interpreters.allow names what may start: then the kernel does not choose by the file's first
    // line.
    if (policy_.interpreters.allow.empty()) first = Executable{path, request_.operands};
    if (const Language* spoken = launch.compiles; spoken != nullptr) {
      first.reset();
      return run_recipe(*spoken, std::move(launch), SourceFrom::file, operand);
    }
    finish(std::move(launch), {operand}, 1);
    return {};
  }
  const bool is_known = has_path ? operand.starts_with('/') && lookup_.is_executable_file(operand)
                                 : lookup_.find(operand).has_value();
  if (is_known || (!has_path && request_.after_dashes)) return run_command(operand);
  SBX_TRY(check_allowed(path, absolute(path)));
  program_.executable = path;
  program_.command = request_.operands;
  return {};
}

Result<Program> Resolver::resolve_call(std::optional<Executable>& first) {
  starts_sandbox_ = false;
  SBX_TRY(check_request());
  SBX_TRY(use_environment());
  if (request_.code || request_.code_from_stdin) {
    SBX_TRY(run_language_code());
  } else if (!request_.language.empty()) {
    const std::string& operand = request_.operands.front();
    Launch launch = SBX_TRY(launch_in(*language(request_.language), "--lang " + request_.language));
    if (const Language* spoken = launch.compiles; spoken != nullptr)
      SBX_TRY(run_recipe(*spoken, std::move(launch), SourceFrom::file, operand));
    else
      finish(std::move(launch), {operand}, 1);
  } else {
    SBX_TRY(find_in_sandbox(request_.operands.front(), first));
  }
  SBX_TRY(check_shown());
  return std::move(program_);
}

Result<Program> Resolver::resolve_interpreter() {
  SBX_TRY(use_environment());
  finish(SBX_TRY(interpreter(*language(request_.language), "--lang " + request_.language)), {}, 0);
  SBX_TRY(check_shown());
  return std::move(program_);
}

}  // namespace sbx::plan
