#include "hints/modules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "plan/files/path_text.hpp"

namespace sbx::hints {
namespace {

/// Where an interpreter keeps packages: PREFIX/lib/python3.N/site-packages; Debian's has
/// /usr/lib/python3 too.
std::vector<std::string> package_directories(const std::string& python) {
  const std::string prefix = plan::parent_of(plan::parent_of(python));
  std::vector<std::string> directories;
  if (prefix == "/usr") directories.emplace_back("/usr/lib/python3/dist-packages");
  const bool is_python = plan::base_name(python).starts_with("python3.");
  if (!is_python) return directories;
  const std::string version(plan::base_name(python));
  for (const char* const kind : {"/site-packages", "/dist-packages"})
    directories.push_back(plan::joined(prefix, "lib/" + version + kind));
  if (prefix == "/usr") directories.push_back("/usr/local/lib/" + version + "/dist-packages");
  return directories;
}

bool has_module(const std::string& directory, const std::string& module, const Places& places) {
  return std::ranges::any_of(std::vector{module, module + ".py"}, [&](const std::string& name) {
    return places.look(plan::joined(directory, name)).has_value();
  });
}

}  // namespace

std::string interpreter_with(const std::string& module, const std::string& chosen,
                             const host::Host& host, const Places& places) {
  const auto own = places.look(chosen);
  std::vector<std::string> directories = host.path;
  directories.emplace_back("/usr/bin");
  for (const std::string& directory : directories) {
    const std::string python = plan::joined(directory, "python3");
    const auto seen = places.look(python);
    if (!seen || seen->type != host::FileType::regular || (own && own->path == seen->path))
      continue;
    for (const std::string& packages : package_directories(seen->path))
      if (has_module(packages, module, places)) return python;
  }
  return {};
}

Hint about_absent_module(Trouble trouble, const std::string& module) {
  Hint hint{.kind = HintKind::module, .what = module, .text = {}};
  if (trouble == Trouble::node_module) {
    hint.text = fmt::format(
        "Node has no module {}, and sbx installs none; outside, npm install puts the project's "
        "into node_modules",
        module);
    hint.options = {"--read", "node_modules"};
  } else if (trouble == Trouble::r_package) {
    hint.text = fmt::format(
        "R has no package {}, and sbx installs none; outside, install.packages() as root puts "
        "one where the sandbox sees it",
        module);
  } else {
    hint.text = fmt::format(
        "Python has no module {}, and sbx installs none; outside, python3 -m venv .venv makes an "
        "environment, and .venv/bin/pip installs into it",
        module);
    hint.options = {"--venv", ".venv"};
  }
  return hint;
}

}  // namespace sbx::hints
