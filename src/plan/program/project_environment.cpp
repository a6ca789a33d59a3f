#include "plan/program/project_environment.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "plan/files/path_text.hpp"

namespace sbx::plan {
namespace {

constexpr const char* kName = ".venv";

/// Directories below the home in which version managers install interpreters.
constexpr std::array<std::string_view, 4> kStores = {".pyenv/versions", ".local/share/uv/python",
                                                     ".local/share/mise/installs/python",
                                                     ".asdf/installs/python"};

/// The directory is shown at its host path, and not as a part of the system.
bool is_of_workspace(const View& view, const std::string& directory) {
  if (directory == "/" || directory.empty() || view.inside(directory) != directory) return false;
  const Cover* over = view.over(directory);
  return over != nullptr && !over->source.empty() && !over->system;
}

/// One search, for one run.
class Search {
 public:
  Search(const host::Host& host, const Lookup& lookup, const View& view)
      : host_(host), lookup_(lookup), view_(view) {}

  [[nodiscard]] std::optional<ProjectEnvironment> from(std::string directory) const {
    for (; is_of_workspace(view_, directory); directory = parent_of(directory)) {
      const std::string place = joined(directory, kName);
      if (!lookup_.files().look(joined(place, "pyvenv.cfg"))) continue;
      const std::string why = objection(place);
      if (why.empty()) return ProjectEnvironment{.directory = place, .note = {}};
      return ProjectEnvironment{
          .directory = {},
          .note = "'" + place + "' is not used: " + why + "; --venv '" + place + "' uses it"};
    }
    return std::nullopt;
  }

 private:
  /// Why the environment isn't used by default; empty if it may be.
  [[nodiscard]] std::string objection(const std::string& place) const {
    const auto canonical = lookup_.files().canonical(place);
    if (!canonical || *canonical != place) return "it is a symbolic link";
    const std::string bin = joined(place, "bin");
    const auto python = lookup_.files().canonical(joined(bin, "python"));
    if (!python || !lookup_.is_executable_file(*python)) return "it has no bin/python";
    if (!is_known(*python)) return "its interpreter '" + *python + "' is not on PATH";
    const auto entries = lookup_.files().list(bin);
    if (!entries) return "its bin directory can't be read";
    for (const host::Entry& entry : *entries) {
      const auto real = lookup_.files().canonical(joined(bin, entry.name));
      if (real && *real != *python && !is_within(*real, place))
        return "its program '" + entry.name + "' leads to '" + *real + "'";
    }
    return {};
  }

  [[nodiscard]] bool is_known(const std::string& python) const {
    if (!view_.inside(python).empty()) return true;
    if (!host_.home.empty())
      for (const std::string_view store : kStores)
        if (is_below(python, joined(host_.home, store))) return true;
    const auto root = host_.environment.find("PYENV_ROOT");
    if (root != host_.environment.end() && is_below(python, joined(root->second, "versions")))
      return true;
    const auto on_path = lookup_.find(base_name(python));
    const auto real = on_path ? lookup_.real(*on_path) : Result<std::string>(std::string());
    return real && *real == python;
  }

  [[nodiscard]] bool is_below(const std::string& path, const std::string& store) const {
    const auto canonical = lookup_.files().canonical(store);
    return canonical && path != *canonical && is_within(path, *canonical);
  }

  const host::Host& host_;
  const Lookup& lookup_;
  const View& view_;
};

/// The caller's PATH begins with an environment, which the caller activated.
bool is_activated(const host::Host& host) {
  const auto active = host.environment.find("VIRTUAL_ENV");
  return active != host.environment.end() && !active->second.empty() &&
         std::ranges::find(host.path, joined(active->second, "bin")) != host.path.end();
}

/// The directory of the script, else the working directory.
std::string start_of(const host::Host& host, const RunRequest& request) {
  if (request.code || request.code_from_stdin || request.after_dashes || request.operands.empty())
    return host.working_directory;
  const auto script = host.files->canonical(joined(host.working_directory, request.operands[0]));
  const auto facts = script ? host.files->look(*script) : Result<host::FileFacts>({});
  if (!script || !facts || facts->type != host::FileType::regular) return host.working_directory;
  return parent_of(*script);
}

}  // namespace

std::optional<ProjectEnvironment> project_environment(const host::Host& host,
                                                      const RunRequest& request,
                                                      const Lookup& lookup, const View& view) {
  if (host.working_directory.empty() || is_activated(host)) return std::nullopt;
  return Search(host, lookup, view).from(start_of(host, request));
}

std::optional<std::string> project_program(const host::Host& host, const RunRequest& request,
                                           const Lookup& lookup, const View& view,
                                           const std::string& name) {
  if (host.working_directory.empty()) return std::nullopt;
  std::string directory = start_of(host, request);
  for (; is_of_workspace(view, directory); directory = parent_of(directory)) {
    const std::string modules = joined(directory, "node_modules");
    const std::string place = joined(modules, ".bin/" + name);
    const auto real = lookup.files().canonical(place);
    if (real && is_within(*real, modules) && lookup.is_executable_file(*real)) return place;
  }
  return std::nullopt;
}

std::string environment_named(std::string_view name) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("._-/").contains(static_cast<char>(c));
  };
  const std::string programs = parent_of(name);
  const std::string directory = parent_of(programs);
  const bool is_one = base_name(programs) == "bin" && directory != "/" &&
                      base_name(directory).ends_with("env") && !directory.starts_with('-');
  return is_one && std::ranges::all_of(name, is_plain) ? directory : std::string();
}

}  // namespace sbx::plan
