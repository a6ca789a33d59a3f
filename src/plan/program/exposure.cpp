#include "plan/program/exposure.hpp"

#include <array>

#include "plan/files/path_text.hpp"
#include "plan/program/languages.hpp"

namespace sbx::plan {
namespace {

constexpr std::array<std::string_view, 6> kParts = {"bin",     "lib",     "lib64",
                                                    "libexec", "include", "share"};
/// Additional parts of the prefix that some interpreters read.
struct MoreParts {
  std::string_view name;
  std::array<std::string_view, 4> parts;
};
constexpr std::array<MoreParts, 4> kMoreParts = {{{"go", {"src", "pkg", "go.env", "VERSION"}},
                                                  {"gofmt", {"src", "pkg", "go.env", "VERSION"}},
                                                  {"java", {"conf", "jmods", "release", "jre"}},
                                                  {"javac", {"conf", "jmods", "release", "jre"}}}};
constexpr std::size_t kConfigurationLimit = std::size_t{64} << 10;

/// The value of "home = /usr/bin" in a pyvenv.cfg.
std::string home_key(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const auto trim = [](std::string_view part) {
      const std::size_t start = part.find_first_not_of(" \t\r");
      if (start == std::string_view::npos) return std::string_view();
      return part.substr(start, part.find_last_not_of(" \t\r") - start + 1);
    };
    if (trim(line.substr(0, equals)) == "home") return std::string(trim(line.substr(equals + 1)));
  }
  return {};
}

}  // namespace

std::string environment_of(const host::Files& files, const std::string& path) {
  if (!is_python_name(base_name(path))) return {};
  const std::string directory = parent_of(parent_of(path));
  const auto facts = files.look(joined(directory, "pyvenv.cfg"));
  return facts && facts->type == host::FileType::regular ? directory : std::string();
}

Exposure::Exposure(const host::Host& host, const Lookup& lookup, View& view,
                   std::vector<Mount>& steps, std::vector<std::string>& explanations)
    : host_(host), lookup_(lookup), view_(view), steps_(steps), explanations_(explanations) {}

void Exposure::add(const std::string& source, const host::FileFacts& facts) {
  Mount step = bind_step(source, source, facts);
  step.host_source()->needs_idmap = host_.privileged && !others_may_use(facts);
  steps_.push_back(std::move(step));
  view_.add({.source = source, .target = source});
}

Result<std::string> Exposure::show_file(const std::string& real) {
  if (std::string inside = view_.inside(real); !inside.empty()) return inside;
  add(real, SBX_TRY(lookup_.files().look(real)));
  explanations_.push_back("'" + real + "' is shown alone, read-only");
  return real;
}

bool Exposure::is_private_prefix(const std::string& prefix) const {
  if (host_.home.empty()) return prefix == "/";
  const auto canonical = host_.files->canonical(host_.home);
  const std::string home = canonical ? *canonical : host_.home;
  return is_within(home, prefix) || prefix == home + "/.local";
}

Status Exposure::show_part(const std::string& path) {
  const auto facts = lookup_.files().look(path);
  if (!facts || !view_.inside(path).empty()) return {};
  if (facts->type == host::FileType::directory || facts->type == host::FileType::regular) {
    add(path, *facts);
  } else if (facts->type == host::FileType::symlink) {
    const std::string text = SBX_TRY(lookup_.files().link_target(path));
    if (!text.contains('/')) steps_.push_back(symlink_step(text, path));  // lib64 -> lib
  }
  return {};
}

Status Exposure::show_parts(const std::string& prefix) {
  for (const std::string_view part : kParts) SBX_TRY(show_part(joined(prefix, part)));
  return {};
}

Status Exposure::show_own_parts(const std::string& prefix, const std::string& real) {
  SBX_TRY(show_file(real));
  const std::string library = joined(prefix, "lib");
  const auto entries = lookup_.files().list(library);
  if (!entries) return {};
  const std::string_view name = base_name(real);
  for (const host::Entry& entry : *entries) {
    const std::string_view own = entry.name;
    if (!own.starts_with(name) && !(own.starts_with("lib") && own.substr(3).starts_with(name)))
      continue;
    const std::string path = joined(library, own);
    if (entry.type == host::FileType::directory || entry.type == host::FileType::regular)
      add(path, SBX_TRY(lookup_.files().look(path)));
    else if (entry.type == host::FileType::symlink)
      steps_.push_back(symlink_step(SBX_TRY(lookup_.files().link_target(path)), path));
  }
  return {};
}

Result<std::string> Exposure::show_interpreter(const std::string& real) {
  if (!view_.inside(real).empty()) return std::string();
  const std::string directory = parent_of(real);
  if (base_name(directory) != "bin") {
    SBX_TRY(show_file(real));
    return std::string();
  }
  std::string prefix = parent_of(directory);
  if (is_private_prefix(prefix)) {
    SBX_TRY(show_own_parts(prefix, real));
    explanations_.push_back("of '" + prefix + "' only '" + real +
                            "' and its own libraries are shown");
    return prefix;
  }
  SBX_TRY(show_parts(prefix));
  for (const MoreParts& more : kMoreParts)
    if (base_name(real) == more.name)
      for (const std::string_view part : more.parts) SBX_TRY(show_part(joined(prefix, part)));
  explanations_.push_back("the program directories of '" + prefix + "' are shown, read-only");
  return prefix;
}

Status Exposure::show_environment(const std::string& directory, const std::string& python) {
  const std::string configuration = joined(directory, "pyvenv.cfg");
  if (view_.inside(configuration).empty()) {
    SBX_TRY(show_parts(directory));
    SBX_TRY(show_file(configuration));
    explanations_.push_back("the virtual environment '" + directory + "' is shown, read-only");
  }
  const std::string real = SBX_TRY(lookup_.real(python));
  SBX_TRY(show_interpreter(real));
  SBX_TRY(show_links(python));
  // python takes its library from the prefix named by "home", not from the target of the links.
  const std::string home = home_key(
      lookup_.files().read_head(configuration, kConfigurationLimit).value_or(std::string()));
  if (!home.starts_with('/')) return {};
  const auto target = lookup_.real(joined(home, base_name(real)));
  if (target && *target == real) SBX_TRY(show_links(joined(home, base_name(real))));
  return {};
}

Status Exposure::show_links(const std::string& path) {
  std::vector<Hop> hops;
  SBX_TRY(lookup_.walk(path, hops));
  for (auto& [place, text] : hops) {
    if (!view_.inside(place).empty()) continue;
    const Cover* over = view_.over(place);
    if (over != nullptr && !over->source.empty()) continue;  // a granted tree is already visible
    steps_.push_back(symlink_step(std::move(text), place));
  }
  return {};
}

}  // namespace sbx::plan
