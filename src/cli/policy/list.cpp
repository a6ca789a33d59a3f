#include <fmt/format.h>

#include <algorithm>

#include <sbx/outcome.hpp>

#include "base/text.hpp"
#include "cli/policy/command.hpp"

namespace sbx::cli::policy_verb {
namespace {

constexpr std::string_view kBroken = "does not parse: sbx policy check says why";

bool is_builtin(std::string_view name) {
  return std::ranges::any_of(policy::builtins(),
                             [&](const policy::Builtin& each) { return each.name == name; });
}

/// The bare name is an error ("shadows-builtin").
std::string hidden_words(const std::string& directory, const std::string& file) {
  return "has the name of a built-in policy: rename it, or use -p " +
         shell_word(directory + "/" + file);
}

void append_directory(std::string& text, const std::string& directory, const Surroundings& place) {
  const auto names = place.host.files->list(directory);
  if (!names) return;
  for (const auto& [name, type] : *names) {
    if (!name.ends_with(".toml")) continue;
    const auto policy = policy::load({{directory + "/" + name}}, {}, place.context);
    const std::string short_name = name.substr(0, name.size() - 5);
    text += fmt::format("{:<16} {:<10} {}\n", printable(short_name), "file",
                        !policy                             ? std::string(kBroken)
                        : is_builtin(short_name)            ? hidden_words(directory, name)
                        : policy->description.value.empty() ? "(no description)"
                                                            : printable(policy->description.value));
    text += fmt::format("{:<27} {}\n", "", printable(directory + "/" + name));
  }
}

}  // namespace

int list(const Invocation& typed) {
  if (!typed.operands.empty())
    return usage(typed, "\"sbx policy list\" takes no operands", "leave it out: sbx policy list");
  const auto place = look();
  if (!place) return complain(typed, place.error(), exit_status::kCouldNot);
  std::string text;
  for (const policy::Builtin& builtin : policy::builtins()) {
    const auto policy = policy::parse_text(builtin.toml, builtin.name, place->context);
    text += fmt::format("{:<16} {:<10} {}\n", builtin.name, "built-in",
                        policy ? policy->description.value : kBroken);
  }
  for (const std::string& directory : place->context.policy_directories)
    append_directory(text, directory, *place);
  return print_fitted(text);
}

}  // namespace sbx::cli::policy_verb
