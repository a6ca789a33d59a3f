#include "cli/completions/completions.hpp"

#include <cctype>

namespace sbx::cli {

std::string completion_script(const std::vector<CommandDoc>& tree, std::string_view shell) {
  if (shell == "bash") return completion::bash_script(tree);
  if (shell == "zsh") return completion::zsh_script(tree);
  if (shell == "fish") return completion::fish_script(tree);
  return {};
}

std::string for_program(std::string_view script, std::string_view program) {
  constexpr std::string_view kName = "sbx";
  if (program == kName) return std::string(script);
  std::string identifier(program);
  for (char& c : identifier)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  std::string text;
  for (auto at = script.find(kName); at != std::string_view::npos; at = script.find(kName)) {
    const char before = at == 0 ? '\n' : script[at - 1];
    const std::string_view rest = script.substr(at + kName.size());
    const bool is_word = std::string_view(" (\"\n").contains(before) &&
                         (rest.starts_with(' ') || rest.starts_with('\n'));
    text += script.substr(0, at);
    text += before == '_' ? std::string_view(identifier) : is_word ? program : kName;
    script = rest;
  }
  return text.append(script);
}

}  // namespace sbx::cli
