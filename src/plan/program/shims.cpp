#include "plan/program/shims.hpp"

#include <array>
#include <vector>

#include "plan/files/path_text.hpp"
#include "plan/program/versions.hpp"

namespace sbx::plan {
namespace {

constexpr std::size_t kVersionFileLimit = 4096;

/// pyenv and the managers modelled on it.
struct Manager {
  std::string_view name;
  std::string_view root_variable;
  std::string_view version_variable;
  std::string_view version_file;
};
constexpr std::array<Manager, 6> kManagers = {{
    {"pyenv", "PYENV_ROOT", "PYENV_VERSION", ".python-version"},
    {"rbenv", "RBENV_ROOT", "RBENV_VERSION", ".ruby-version"},
    {"nodenv", "NODENV_ROOT", "NODENV_VERSION", ".node-version"},
    {"plenv", "PLENV_ROOT", "PLENV_VERSION", ".perl-version"},
    {"phpenv", "PHPENV_ROOT", "PHPENV_VERSION", ".php-version"},
    {"goenv", "GOENV_ROOT", "GOENV_VERSION", ".go-version"},
}};

Choice chosen_version(const Manager& manager, const std::string& root, const Lookup& lookup,
                      const ShimContext& context) {
  if (const std::string value = variable(context, manager.version_variable); !value.empty())
    return {split_words(value, ":"), std::string(manager.version_variable)};
  if (const auto local = upward(lookup.files(), context.working_directory, manager.version_file))
    return {version_words(local->second), local->first};
  const std::string path = root + "/version";
  if (const auto text = lookup.files().read_head(path, kVersionFileLimit)) {
    Choice choice{version_words(*text), path};
    if (!choice.versions.empty()) return choice;
  }
  return {{"system"}, path};
}

/// The text between the first pair of quotes after NAME=.
std::string quoted_value(std::string_view head, std::string_view name) {
  const std::size_t at = head.find(std::string(name) + "=\"");
  if (at == std::string_view::npos) return {};
  head.remove_prefix(at + name.size() + 2);
  return std::string(head.substr(0, head.find('"')));
}

Result<std::optional<ShimTarget>> read_env_shim(const Manager& manager, const std::string& path,
                                                std::string_view head, const Lookup& lookup,
                                                const ShimContext& context) {
  std::string root = quoted_value(head, manager.root_variable);
  if (root.empty()) root = variable(context, manager.root_variable);
  if (root.empty()) root = parent_of(parent_of(path));
  const std::string name(base_name(path));
  const Choice choice = chosen_version(manager, root, lookup, context);
  for (std::string version : choice.versions) {
    if (version == "system") {
      if (auto found = lookup.find_beyond(name, parent_of(path)))
        return ShimTarget{std::move(*found),
                          "shim of " + std::string(manager.name) + ", the system's"};
      continue;
    }
    if (version.starts_with("python-")) version.erase(0, 7);
    if (!is_version_name(version)) continue;
    std::string program =
        version_directory(root + "/versions", version, lookup.files()) + "/bin/" + name;
    if (lookup.is_executable_file(program))
      return ShimTarget{std::move(program), "shim of " + std::string(manager.name) + ", version " +
                                                version + " of " + choice.where};
  }
  return missing_version(manager.name, name, choice);
}

/// The versions of one plugin in a .tool-versions file: "python 3.11.4 system".
std::vector<std::string> tool_versions(std::string_view text, std::string_view plugin) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::vector<std::string> line = version_words(text.substr(0, end));
    if (!line.empty() && line.front() == plugin) {
      line.erase(line.begin());
      return line;
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return {};
}

std::string upper(std::string_view text) {
  std::string changed(text);
  for (char& letter : changed) {
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
    if (letter == '-') letter = '_';
  }
  return changed;
}

Choice asdf_version(const std::string& plugin, const Lookup& lookup, const ShimContext& context) {
  const std::string name = "ASDF_" + upper(plugin) + "_VERSION";
  if (const std::string value = variable(context, name); !value.empty())
    return {split_words(value, " "), name};
  const std::string local = variable(context, "ASDF_DEFAULT_TOOL_VERSIONS_FILENAME");
  const std::string file = local.empty() || local.contains('/') ? ".tool-versions" : local;
  for (std::string directory = context.working_directory; !directory.empty();
       directory = directory == "/" ? "" : parent_of(directory)) {
    const std::string path = joined(directory, file);
    const auto text = lookup.files().read_head(path, kVersionFileLimit);
    if (!text) continue;
    if (Choice choice{tool_versions(*text, plugin), path}; !choice.versions.empty()) return choice;
  }
  const std::string path = context.home + "/" + file;
  if (const auto text = lookup.files().read_head(path, kVersionFileLimit))
    return {tool_versions(*text, plugin), path};
  return {{}, path};
}

/// asdf writes "# asdf-plugin: python 3.11.4" lines into each shim: the versions that provide the
/// program.
Result<std::optional<ShimTarget>> read_asdf_shim(const std::string& path, std::string_view head,
                                                 const Lookup& lookup, const ShimContext& context) {
  constexpr std::string_view kMark = "# asdf-plugin: ";
  const std::size_t at = head.find(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = head.substr(at + kMark.size());
  const auto offer = split_words(rest.substr(0, rest.find('\n')), " \t\r");
  if (offer.empty() || offer.front().contains('/')) return std::nullopt;
  const std::string& plugin = offer.front();
  std::string data = variable(context, "ASDF_DATA_DIR");
  if (data.empty()) data = parent_of(parent_of(path));
  const std::string name(base_name(path));
  const Choice choice = asdf_version(plugin, lookup, context);
  for (const std::string& version : choice.versions) {
    if (version == "system") {
      if (auto found = lookup.find_beyond(name, parent_of(path)))
        return ShimTarget{std::move(*found), "shim of asdf, the system's"};
      continue;
    }
    if (!is_version_name(version)) continue;
    std::string program = data + "/installs/" + plugin + "/" + version + "/bin/" + name;
    if (lookup.is_executable_file(program))
      return ShimTarget{std::move(program),
                        "shim of asdf, version " + version + " of " + choice.where};
  }
  return missing_version("asdf", name, choice);
}

}  // namespace

Result<std::optional<ShimTarget>> read_shim(const std::string& path, std::string_view head,
                                            const Lookup& lookup, const ShimContext& context) {
  if (base_name(parent_of(path)) != "shims") return std::nullopt;
  for (const Manager& manager : kManagers) {
    const std::string runs = std::string(manager.name) + "\" exec ";
    if (head.contains(runs)) return read_env_shim(manager, path, head, lookup, context);
  }
  if (head.contains("asdf exec ") || head.contains("/asdf\" exec "))
    return read_asdf_shim(path, head, lookup, context);
  return std::nullopt;
}

}  // namespace sbx::plan
