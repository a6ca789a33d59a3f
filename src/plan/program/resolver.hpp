#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/files/path_text.hpp"
#include "plan/program/languages.hpp"
#include "plan/program/launch.hpp"
#include "plan/program/program.hpp"
#include "plan/program/project_environment.hpp"

namespace sbx::plan {

/// Host directories that are searched for commands.
[[nodiscard]] std::vector<std::string> search_path(const policy::Policy& policy,
                                                   const host::Host& host,
                                                   const std::string& system_root);

/// One resolution, from operands to a Program.
class Resolver {
 public:
  Resolver(const policy::Policy& policy, const host::Host& host, const RunRequest& request,
           const std::string& system_root, const std::string& working_directory, View& view)
      : policy_(policy),
        host_(host),
        request_(request),
        inside_directory_(working_directory),
        view_(view),
        lookup_(*host.files, system_root, search_path(policy, host, system_root)),
        exposure_(host, lookup_, view, program_.steps, program_.explanations),
        launcher_(lookup_, {host.environment, host.working_directory, host.home}, view, exposure_) {
    if (!policy.interpreters.venv.value.empty() || !system_root.empty()) return;
    project_ = project_environment(host, request, lookup_, view);
    if (project_ && !project_->directory.empty())
      lookup_.prefer_for_python(joined(project_->directory, "bin"));
  }

  /// Finds the program of a run.
  Result<Program> resolve();
  /// What a held sandbox shows for its calls.
  Result<Program> show_all();
  /// Finds the program of a call in a held sandbox, whose view this is.
  Result<Program> resolve_call(std::optional<Executable>& first);
  /// The same for an interpreter that stays: the operands are its arguments.
  Result<Program> resolve_interpreter();

 private:
  Status check_request() const;
  Status use_environment();
  Status run();
  void note_project_environment();
  void note_repository();
  Result<Launch> interpreter(const Language& language, std::string reason);
  Result<Launch> first_of(const std::vector<std::vector<std::string>>& commands,
                          const std::string& purpose);
  Status run_language_code();
  Status run_recipe(const Language& spoken, Launch compiler, SourceFrom from, std::string source);
  Status run_script(const std::string& typed, const std::string& real);
  Status check_link(const std::string& typed, const std::string& real) const;
  Result<Launch> script_launch(const std::string& typed, const std::string& real);
  Result<Launch> launch_by_extension(const std::string& typed);
  Result<Launch> launch_in(const Language& spoken, std::string reason);
  Status run_command(const std::string& name);
  Status find_in_sandbox(const std::string& operand, std::optional<Executable>& first);
  Status check_shown() const;
  [[nodiscard]] Result<std::optional<std::string>> script_file(const std::string& operand) const;
  [[nodiscard]] std::string absolute(const std::string& path) const;
  [[nodiscard]] bool works_as_typed(const std::string& typed, const std::string& real) const;
  Status check_allowed(const std::string& asked, const std::string& real);
  void finish(Launch launch, const std::vector<std::string>& more, std::size_t operands_from);

  const policy::Policy& policy_;
  const host::Host& host_;
  const RunRequest& request_;
  std::string inside_directory_;
  View& view_;
  Program program_;
  Lookup lookup_;
  Exposure exposure_;
  Launcher launcher_;
  std::optional<ProjectEnvironment> project_;
  bool starts_sandbox_ = true;  ///< and so its options show files
};

}  // namespace sbx::plan
