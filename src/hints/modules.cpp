#include "hints/modules.hpp"

#include <algorithm>
#include <vector>

#include "plan/files/path_text.hpp"

namespace sbx::hints {
namespace {

/// Where an interpreter keeps packages: PREFIX/lib/python3.N/site-packages; Debian's has
/// /usr/lib/python3 too.
std::vector<std::string> package_folders(const std::string& python) {
  const std::string prefix = plan::parent_of(plan::parent_of(python));
  std::vector<std::string> folders;
  if (prefix == "/usr") folders.emplace_back("/usr/lib/python3/dist-packages");
  const bool is_python = plan::base_name(python).starts_with("python3.");
  if (!is_python) return folders;
  const std::string version(plan::base_name(python));
  for (const char* const kind : {"/site-packages", "/dist-packages"})
    folders.push_back(plan::joined(prefix, "lib/" + version + kind));
  if (prefix == "/usr") folders.push_back("/usr/local/lib/" + version + "/dist-packages");
  return folders;
}

bool has_module(const std::string& folder, const std::string& module, const Places& places) {
  return std::ranges::any_of(std::vector{module, module + ".py"}, [&](const std::string& name) {
    return places.look(plan::joined(folder, name)).has_value();
  });
}

}  // namespace

std::string interpreter_with(const std::string& module, const std::string& chosen,
                             const host::Host& host, const Places& places) {
  const auto own = places.look(chosen);
  std::vector<std::string> folders = host.path;
  folders.emplace_back("/usr/bin");
  for (const std::string& folder : folders) {
    const std::string python = plan::joined(folder, "python3");
    const auto seen = places.look(python);
    if (!seen || seen->type != host::FileType::regular || (own && own->path == seen->path))
      continue;
    for (const std::string& packages : package_folders(seen->path))
      if (has_module(packages, module, places)) return python;
  }
  return {};
}

}  // namespace sbx::hints
