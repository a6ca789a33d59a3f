#include <fmt/format.h>

#include <sbx/outcome.hpp>

#include "cli/policy/command.hpp"
#include "base/text.hpp"

namespace sbx::cli::policy_verb {
namespace {

constexpr std::string_view kBroken = "does not parse: sbx policy check says why";

void append_folder(std::string& text, const std::string& folder, const Place& place) {
  const auto names = place.host.files->list(folder);
  if (!names) return;
  for (const auto& [name, type] : *names) {
    if (!name.ends_with(".toml")) continue;
    const auto policy = policy::load({{folder + "/" + name}}, {}, place.context);
    text += fmt::format("{:<16} {:<10} {}\n", printable(name.substr(0, name.size() - 5)), "file",
                        policy ? printable(policy->description.value) : kBroken);
    text += fmt::format("{:<27} {}\n", "", printable(folder + "/" + name));
  }
}

}  // namespace

int list(const Invocation& typed) {
  if (!typed.operands.empty()) return usage(typed, "\"sbx policy list\" takes no operands");
  const auto place = look();
  if (!place) return complain(typed, place.error(), exit_status::kCouldNot);
  std::string text;
  for (const policy::Builtin& builtin : policy::builtins()) {
    const auto policy = policy::parse_text(builtin.toml, builtin.name, place->context);
    text += fmt::format("{:<16} {:<10} {}\n", builtin.name, "built-in",
                        policy ? policy->description.value : kBroken);
  }
  for (const std::string& folder : place->context.policy_folders)
    append_folder(text, folder, *place);
  return print(text);
}

}  // namespace sbx::cli::policy_verb
