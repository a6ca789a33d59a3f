#include "plan/program/command.hpp"

#include "plan/program/resolver.hpp"

namespace sbx::plan {

Result<Program> resolve_program(const policy::Policy& policy, const host::Host& host,
                                const RunRequest& request, const std::string& system_root,
                                const std::string& working_directory, View& view) {
  return Resolver(policy, host, request, system_root, working_directory, view).resolve();
}

Result<Program> show_interpreters(const policy::Policy& policy, const host::Host& host,
                                  const RunRequest& request, const std::string& system_root,
                                  const std::string& working_directory, View& view) {
  return Resolver(policy, host, request, system_root, working_directory, view).show_all();
}

}  // namespace sbx::plan
