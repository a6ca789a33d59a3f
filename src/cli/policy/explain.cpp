#include <fmt/format.h>

#include "cli/policy/command.hpp"
#include "plan/filter/table.hpp"
#include "policy/keys.hpp"
#include "policy/write.hpp"
#include "record/codes.hpp"
#include "record/terms.hpp"

namespace sbx::cli::policy_verb {
namespace {

std::string key_text(const policy::Key& key) {
  std::string text = fmt::format("{}\n  {}\n", key.name, key.documentation);
  text += fmt::format("  type      {}\n", policy::type_name(key));
  if (!key.accepts.empty()) text += fmt::format("  accepts   {}\n", key.accepts);
  if (!key.of_text()) text += fmt::format("  default   {}\n", policy::initial_toml(key));
  return text;
}

std::string group_text(plan::Group group) {
  const plan::GroupText& about = plan::text_of(group);
  std::string text = fmt::format("{}\n  {}\n", about.name, about.description);
  if (about.risk[0] != '\0') text += fmt::format("  risk      {}\n", about.risk);
  for (const plan::Call& call : plan::calls())
    if (call.group == group) text += fmt::format("  {:<24} {}\n", call.name, call.reason);
  return text;
}

std::string call_text(const plan::Call& call) {
  std::string text = fmt::format("{}\n  {}\n", call.name, call.reason);
  text += fmt::format("  group     {}\n", plan::text_of(call.group).name);
  if (plan::find_absent_call(call.name) == nullptr) return text;
  text += "  absent    on this machine's architecture";
  const std::string_view successor = plan::used_instead(call.name);
  return text + (successor.empty() ? "\n" : fmt::format("; programs use {}\n", successor));
}

std::string code_text(const std::string& name, const record::CodeText& code) {
  std::string text = fmt::format("{}\n  {}\n", name, code.meaning);
  text += fmt::format("  about     {}\n", record::place_name(code.of));
  if (!code.cure.empty()) text += fmt::format("  fix       {}\n", code.cure);
  return text;
}

std::string section_text(const std::string& name) {
  std::string text;
  for (const policy::Key& key : policy::keys())
    if (key.name.starts_with(name + ".")) text += (text.empty() ? "" : "\n") + key_text(key);
  return text;
}

std::string_view meant_name(const std::string& name) {
  if (name.starts_with('@')) return plan::nearest_name(name);
  std::vector<std::string_view> names;
  for (const record::CodeText& code : record::codes()) names.push_back(code.code);
  const std::vector<std::string_view> terms = record::term_names();
  if (const auto near = policy::nearest(name, terms); !near.empty()) return near;
  const bool like_a_code = name.find('-') != std::string::npos;
  if (const auto near = policy::nearest(name, names); like_a_code && !near.empty()) return near;
  if (const auto key = policy::suggest_key(name); !key.empty()) return key;
  return plan::nearest_name(name);
}

}  // namespace

int explain(const Invocation& typed) {
  if (typed.operands.size() != 1)
    return usage(typed, "\"sbx policy explain\" needs one key, group, code, status or exit status",
                 "for example limits.memory, @debug, unknown-key, degraded or 137");
  const std::string& name = typed.operands.front();
  if (const policy::Key* key = policy::find_key(name)) return print_fitted(key_text(*key));
  if (const auto group = plan::find_group(name)) return print_fitted(group_text(*group));
  if (const record::CodeText* code = record::find_code(name))
    return print_fitted(code_text(name, *code));
  if (const std::string term = record::term_text(name); !term.empty()) return print_fitted(term);
  if (policy::is_section(name)) return print_fitted(section_text(name));
  for (const plan::Call* call : {plan::find_call(name), plan::find_absent_call(name)})
    if (call != nullptr) return print_fitted(call_text(*call));
  const std::string_view meant = meant_name(name);
  return usage(
      typed, fmt::format("there is no key, group or code \"{}\"", name),
      meant.empty()
          ? "sbx-policy(5) lists keys and groups, sbx-record(5) codes and the words of records"
          : fmt::format("did you mean \"{}\"?", meant));
}

}  // namespace sbx::cli::policy_verb
