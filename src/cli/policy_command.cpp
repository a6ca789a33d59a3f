#include "cli/policy_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/sys.hpp"
#include "cli/context.hpp"
#include "cli/text.hpp"
#include "cli/words.hpp"
#include "host/host.hpp"
#include "plan/filter/table.hpp"
#include "policy/keys.hpp"
#include "policy/load.hpp"
#include "policy/locate.hpp"

namespace sbx::cli {
namespace {

constexpr int kDone = 0;
constexpr int kFindings = 1;
constexpr int kUsage = 2;

int print(const std::string& text) {
  return sys::write_all(STDOUT_FILENO, text) ? kDone : exit_status::kCouldNot;
}

int complain(const std::string& text, int status) {
  (void)sys::write_all(STDERR_FILENO, text);  // nowhere else to tell it
  return status;
}

int complain(const Invocation& typed, const Error& error, int status) {
  return complain(error_text(error, paint_for(typed.output.color, STDERR_FILENO)), status);
}

int usage(const Invocation& typed, std::string message, std::string hint = {}) {
  const Error error{.kind = ErrorKind::usage,
                    .code = "usage",
                    .message = std::move(message),
                    .hint = std::move(hint)};
  return complain(typed, error, kUsage);
}

struct Place {
  host::Host host;
  policy::LoadContext context;
};

Result<Place> look() {
  Place place;
  place.host = SBX_TRY(host::probe());
  place.context = SBX_TRY(load_context(place.host));
  return place;
}

// --- list

std::string first_description(std::string_view toml, std::string_view name,
                              const policy::LoadContext& context) {
  const auto policy = policy::parse_text(toml, name, context);
  return policy ? policy->description.value : "does not parse: sbx policy check says why";
}

void append_folder(std::string& text, const std::string& folder, const Place& place) {
  const auto names = place.host.files->list(folder);
  if (!names) return;
  for (const auto& [name, type] : *names) {
    if (!name.ends_with(".toml")) continue;
    const auto policy = policy::load({{folder + "/" + name}}, {}, place.context);
    text += fmt::format("{:<16} {:<10} {}\n", printable(name.substr(0, name.size() - 5)), "file",
                        policy ? printable(policy->description.value)
                               : "does not parse: sbx policy check says why");
    text += fmt::format("{:<27} {}\n", "", printable(folder + "/" + name));
  }
}

int list(const Invocation& typed) {
  if (!typed.operands.empty()) return usage(typed, "\"sbx policy list\" takes no operands");
  const auto place = look();
  if (!place) return complain(typed, place.error(), exit_status::kCouldNot);
  std::string text;
  for (const policy::Builtin& builtin : policy::builtins())
    text += fmt::format("{:<16} {:<10} {}\n", builtin.name, "built-in",
                        first_description(builtin.toml, builtin.name, place->context));
  for (const std::string& folder : place->context.policy_folders)
    append_folder(text, folder, *place);
  return print(text);
}

// --- show

int show_effective(const Invocation& typed, const Place& place) {
  const auto policy = policy::load({{typed.operands.front()}}, {}, place.context);
  if (!policy)
    return complain(findings_text(policy.error(), paint_for(typed.output.color, STDERR_FILENO)),
                    kFindings);
  return print(policy::write(*policy));
}

/// The text as it stands: of a built-in, or of the file that the name leads to.
int show_text(const Invocation& typed, const Place& place) {
  const policy::LookIn where{.folder = place.context.working_directory};
  const auto text = policy::locate(typed.operands.front(), where, place.context);
  if (!text) return complain(typed, text.error(), kFindings);
  return print(std::string(text->text()));
}

int show(const Invocation& typed) {
  if (typed.operands.size() != 1)
    return usage(typed, "\"sbx policy show\" needs one policy", "\"sbx policy list\" names them");
  const auto place = look();
  if (!place) return complain(typed, place.error(), exit_status::kCouldNot);
  return typed.effective ? show_effective(typed, *place) : show_text(typed, *place);
}

// --- check

int check(const Invocation& typed) {
  if (typed.operands.empty()) return usage(typed, "\"sbx policy check\" needs a file");
  const auto place = look();
  if (!place) return complain(typed, place.error(), exit_status::kCouldNot);
  std::size_t findings = 0;
  std::string text;
  for (const std::string& file : typed.operands) {
    const auto policy = policy::load({{file}}, {}, place->context);
    if (policy) {
      text += fmt::format("{}: good\n", printable(file));
      continue;
    }
    findings += policy.error().size();
    text += findings_text(policy.error(), paint_for(typed.output.color, STDOUT_FILENO));
  }
  if (findings > 0) text += fmt::format("{} finding{}\n", findings, findings == 1 ? "" : "s");
  const int printed = print(text);
  return printed != kDone ? printed : findings > 0 ? kFindings : kDone;
}

// --- explain

std::string key_text(const policy::Key& key) {
  std::string text = fmt::format("{}\n  {}\n", key.name, key.documentation);
  text += fmt::format("  type      {}\n", policy::type_name(key));
  if (!key.accepts.empty()) text += fmt::format("  accepts   {}\n", key.accepts);
  if (!key.of_text()) text += fmt::format("  default   {}\n", policy::initial_toml(key));
  if (!key.enforced()) text += fmt::format("  not yet   {}\n", key.missing.why);
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

int explain(const Invocation& typed) {
  if (typed.operands.size() != 1)
    return usage(typed, "\"sbx policy explain\" needs one key", "for example limits.memory");
  const std::string& name = typed.operands.front();
  if (const policy::Key* key = policy::find_key(name)) return print(key_text(*key));
  if (const auto group = plan::find_group(name)) return print(group_text(*group));
  std::string text;
  if (policy::is_section(name))
    for (const policy::Key& key : policy::keys())
      if (key.name.starts_with(name + ".")) text += (text.empty() ? "" : "\n") + key_text(key);
  if (!text.empty()) return print(text);
  const bool is_group = name.starts_with('@');
  const std::string_view meant = is_group ? plan::nearest_name(name) : policy::suggest_key(name);
  return usage(typed, fmt::format("there is no {} \"{}\"", is_group ? "group" : "key", name),
               meant.empty() ? "sbx-policy(5) lists keys and groups"
                             : fmt::format("did you mean \"{}\"?", meant));
}

}  // namespace

int policy_command(const Invocation& typed) {
  if (typed.command == "policy list") return list(typed);
  if (typed.command == "policy show") return show(typed);
  if (typed.command == "policy check") return check(typed);
  return explain(typed);
}

}  // namespace sbx::cli
