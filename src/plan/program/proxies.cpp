#include "plan/program/proxies.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "plan/files/path_text.hpp"
#include "plan/program/versions.hpp"

namespace sbx::plan {
namespace {

using Found = Result<std::optional<ShimTarget>>;

constexpr std::size_t kSettingsLimit = std::size_t{256} << 10;

// --- rustup ---

// https://rust-lang.github.io/rustup/concepts/proxies.html
constexpr std::array<std::string_view, 10> kRustTools = {
    "cargo",    "cargo-clippy",  "cargo-fmt", "cargo-miri", "clippy-driver",
    "rust-gdb", "rust-analyzer", "rustc",     "rustdoc",    "rustfmt"};

/// rustup's proxies are symbolic or hard links to rustup itself.
bool is_rustup(const std::string& path, const std::string& real, const Lookup& lookup) {
  if (base_name(real) == "rustup") return true;
  const auto own = lookup.files().look(real);
  const auto other = lookup.files().look(joined(parent_of(path), "rustup"));
  return own && other && own->inode == other->inode && own->device == other->device;
}

/// rustup's order: variable, toolchain file, directory override, default.
Choice rust_toolchain(const std::string& home, const Lookup& lookup, const ShimContext& context) {
  if (std::string value = variable(context, "RUSTUP_TOOLCHAIN"); !value.empty())
    return {{std::move(value)}, "RUSTUP_TOOLCHAIN"};
  for (const char* name : {"rust-toolchain.toml", "rust-toolchain"}) {
    const auto file = upward(lookup.files(), context.working_directory, name);
    if (!file) continue;
    for (const Setting& setting : settings_of(file->second))
      if (setting.key == "channel" && !setting.values.empty())
        return {{setting.values.front()}, file->first};
    if (auto plain = version_words(file->second); plain.size() == 1)
      return {std::move(plain), file->first};
  }
  const std::string path = home + "/settings.toml";
  const auto text = lookup.files().read_head(path, kSettingsLimit);
  if (!text) return {{}, path};
  Choice choice{{}, path};
  std::size_t deepest = 0;
  for (const Setting& setting : settings_of(*text)) {
    if (setting.values.empty()) continue;
    const bool is_override = setting.section == "overrides" && setting.key.starts_with('/') &&
                             is_within(context.working_directory, setting.key);
    if (!is_override && setting.key != "default_toolchain") continue;
    const std::size_t depth = is_override ? setting.key.size() : 0;
    if (depth < deepest) continue;
    deepest = depth;
    choice.versions = {setting.values.front()};
  }
  return choice;
}

Found read_rustup(const std::string& path, const Lookup& lookup, const ShimContext& context) {
  std::string home = variable(context, "RUSTUP_HOME");
  if (home.empty()) home = context.home + "/.rustup";
  const std::string name(base_name(path));
  const Choice choice = rust_toolchain(home, lookup, context);
  for (const std::string& toolchain : choice.versions) {
    if (!is_version_name(toolchain)) continue;
    std::vector<std::string> directories = {toolchain};
    // "stable" abbreviates stable-x86_64-unknown-linux-gnu.
    if (const auto entries = lookup.files().list(home + "/toolchains"))
      for (const host::Entry& entry : *entries)
        if (entry.name.starts_with(toolchain + "-")) directories.push_back(entry.name);
    for (const std::string& directory : directories) {
      std::string program = home;
      program.append("/toolchains/").append(directory).append("/bin/").append(name);
      if (lookup.is_executable_file(program))
        return ShimTarget{std::move(program),
                          "proxy of rustup, toolchain " + directory + " of " + choice.where};
    }
  }
  return missing_version("rustup", name, choice);
}

// --- volta ---

/// A member of an object as text; empty when there is none.
std::string member_text(const nlohmann::json& object, const char* name) {
  if (!object.is_object()) return {};
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return {};
  return found->get<std::string>();
}

nlohmann::json object_of(const nlohmann::json& object, const char* name) {
  if (!object.is_object()) return {};
  const auto found = object.find(name);
  return found == object.end() ? nlohmann::json() : *found;
}

nlohmann::json parsed(const std::string& text) {
  return nlohmann::json::parse(text, nullptr, false);  // no exceptions: discarded when malformed
}

/// The version of "node", "npm", "yarn" or "pnpm": pinned by the project, else the user's default.
Choice volta_version(const std::string& home, const char* tool, const Lookup& lookup,
                     const ShimContext& context) {
  if (const auto package = upward(lookup.files(), context.working_directory, "package.json"))
    if (std::string pinned = member_text(object_of(parsed(package->second), "volta"), tool);
        !pinned.empty())
      return {{std::move(pinned)}, package->first};
  Choice choice{{}, home + "/tools/user/platform.json"};
  const auto text = lookup.files().read_head(choice.where, kSettingsLimit);
  if (!text) return choice;
  const nlohmann::json platform = parsed(*text);
  std::string version = member_text(platform, tool);
  const nlohmann::json node = object_of(platform, "node");
  if (version.empty())
    version = member_text(node, std::string_view(tool) == "node" ? "runtime" : tool);
  if (!version.empty()) choice.versions = {std::move(version)};
  return choice;
}

/// A program of `tool`, which has a directory of its own.
std::optional<ShimTarget> volta_image(const std::string& home, const char* tool,
                                      const std::string& name, const Choice& choice,
                                      const Lookup& lookup) {
  if (choice.versions.empty() || !is_version_name(choice.versions.front())) return std::nullopt;
  std::string program = home;
  program.append("/tools/image/").append(tool).append("/").append(choice.versions.front());
  program.append("/bin/").append(name);
  if (!lookup.is_executable_file(program)) return std::nullopt;
  return ShimTarget{std::move(program), "shim of volta, " + std::string(tool) + " " +
                                            choice.versions.front() + " of " + choice.where};
}

/// A program installed by `volta install PACKAGE`.
std::optional<ShimTarget> volta_package(const std::string& home, const std::string& name,
                                        const Lookup& lookup) {
  std::string where = home;
  where.append("/tools/user/bins/").append(name).append(".json");
  const auto text = lookup.files().read_head(where, kSettingsLimit);
  if (!text) return std::nullopt;
  const std::string package = member_text(parsed(*text), "package");
  if (package.empty() || package.starts_with('.') || package.contains("/.")) return std::nullopt;
  std::string program = home;
  program.append("/tools/image/packages/").append(package).append("/bin/").append(name);
  if (!lookup.is_executable_file(program)) return std::nullopt;
  return ShimTarget{std::move(program), "shim of volta, package " + package};
}

Found read_volta(const std::string& path, const Lookup& lookup, const ShimContext& context) {
  std::string home = variable(context, "VOLTA_HOME");
  if (home.empty()) home = parent_of(parent_of(path));
  const std::string name(base_name(path));
  const Choice node = volta_version(home, "node", lookup, context);
  const bool of_npm = name == "npm" || name == "npx";
  const bool of_yarn = name == "yarn" || name == "yarnpkg";
  const char* own = of_npm ? "npm" : of_yarn ? "yarn" : name == "pnpm" ? "pnpm" : nullptr;
  if (own != nullptr) {
    const Choice choice = volta_version(home, own, lookup, context);
    if (auto found = volta_image(home, own, name, choice, lookup)) return found;
  }
  if (name == "node" || of_npm)
    if (auto found = volta_image(home, "node", name, node, lookup)) return found;
  if (auto found = volta_package(home, name, lookup)) return found;
  return missing_version("volta", name, node);
}

// --- mise ---

/// The versions of one tool, and the file that chooses them.
struct Tool {
  std::string name;
  Choice choice;
};

void add_tool(std::vector<Tool>& tools, std::string name, std::vector<std::string> versions,
              const std::string& where) {
  if (versions.empty() || std::ranges::find(tools, name, &Tool::name) != tools.end()) return;
  tools.push_back({std::move(name), {std::move(versions), where}});
}

void add_tools_of_file(std::vector<Tool>& tools, const std::string& path, const Lookup& lookup) {
  const auto text = lookup.files().read_head(path, kSettingsLimit);
  if (!text) return;
  if (path.ends_with(".toml")) {
    for (Setting& setting : settings_of(*text)) {
      if (setting.section == "tools")
        add_tool(tools, setting.key, std::move(setting.values), path);
      else if (setting.section.starts_with("tools.") && setting.key == "version")
        add_tool(tools, setting.section.substr(6), std::move(setting.values), path);
    }
    return;
  }
  for (const std::string& line : split_words(*text, "\n")) {
    std::vector<std::string> words = version_words(line);
    if (words.size() < 2) continue;
    std::string name = std::move(words.front());
    words.erase(words.begin());
    add_tool(tools, std::move(name), std::move(words), path);
  }
}

/// Nearest first: https://mise.jdx.dev/configuration.html
std::vector<Tool> mise_tools(const std::string& data, const Lookup& lookup,
                             const ShimContext& context) {
  std::vector<Tool> tools;
  if (const auto entries = lookup.files().list(data + "/installs"))
    for (const host::Entry& entry : *entries) {
      std::string name = "MISE_";
      for (const char letter : entry.name)
        name += letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A')
                : letter == '-'                ? '_'
                                               : letter;
      name += "_VERSION";
      add_tool(tools, entry.name, split_words(variable(context, name), " "), name);
    }
  for (std::string directory = context.working_directory; !directory.empty();
       directory = directory == "/" ? "" : parent_of(directory))
    for (const char* name :
         {"mise.local.toml", ".mise.local.toml", "mise.toml", ".mise.toml", "mise/config.toml",
          ".mise/config.toml", ".config/mise.toml", ".config/mise/config.toml", ".tool-versions"})
      add_tools_of_file(tools, joined(directory, name), lookup);
  std::string settings = variable(context, "XDG_CONFIG_HOME");
  if (settings.empty()) settings = context.home + "/.config";
  add_tools_of_file(tools, settings + "/mise/config.toml", lookup);
  add_tools_of_file(tools, context.home + "/.tool-versions", lookup);
  return tools;
}

/// The program in one version of one tool.
std::optional<std::string> mise_program(const std::string& data, const Tool& tool,
                                        std::string version, const std::string& name,
                                        const Lookup& lookup) {
  if (version.starts_with("prefix:")) version.erase(0, 7);
  if (!is_version_name(version) || !is_version_name(tool.name)) return std::nullopt;
  std::string installs = data;
  installs.append("/installs/").append(tool.name);
  const std::string directory = version_directory(installs, version, lookup.files());
  for (const char* part : {"/bin/", "/"}) {
    std::string program = directory;
    program.append(part).append(name);
    if (lookup.is_executable_file(program)) return program;
  }
  return std::nullopt;
}

Found read_mise(const std::string& path, const Lookup& lookup, const ShimContext& context) {
  const std::string data = parent_of(parent_of(path));
  const std::string name(base_name(path));
  Choice asked{{}, "no settings name it"};
  for (const Tool& tool : mise_tools(data, lookup, context)) {
    for (const std::string& version : tool.choice.versions) {
      if (auto program = mise_program(data, tool, version, name, lookup))
        return ShimTarget{std::move(*program), "shim of mise, " + tool.name + " " + version +
                                                   " of " + tool.choice.where};
      if (name.starts_with(tool.name)) asked = tool.choice;
    }
  }
  if (auto found = lookup.find_beyond(name, parent_of(path)))
    return ShimTarget{std::move(*found), "shim of mise, the system's"};
  return missing_version("mise", name, asked);
}

}  // namespace

Found read_proxy(const std::string& path, const std::string& real, const Lookup& lookup,
                 const ShimContext& context) {
  const std::string_view name = base_name(path);
  const std::string_view behind = base_name(real);
  if (std::ranges::find(kRustTools, name) != kRustTools.end() && is_rustup(path, real, lookup))
    return read_rustup(path, lookup, context);
  if (behind == name) return std::nullopt;
  if (behind == "volta-shim" || behind == "volta") return read_volta(path, lookup, context);
  if (behind == "mise" || behind == "rtx") {
    if (base_name(parent_of(path)) == "shims") return read_mise(path, lookup, context);
  }
  return std::nullopt;
}

}  // namespace sbx::plan
