#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <sbx/outcome.hpp>

#include "cli/policy/command.hpp"
#include "policy/keys.hpp"
#include "policy/syntax.hpp"
#include "policy/write.hpp"

/// A starter policy: it contains what was typed and, as comments with the values in force, the
/// settings that people change most.
namespace sbx::cli::policy_verb {
namespace {

using policy::Key;
using policy::Policy;
using policy::SaidValue;

constexpr auto kOffered = std::to_array<std::string_view>(
    {"interpreters.allow", "filesystem.read", "filesystem.write", "filesystem.deny",
     "filesystem.workspace.mode", "filesystem.outputs.collect", "environment.pass", "syscalls.deny",
     "network.mode", "network.allow", "limits.wall_time", "limits.memory", "limits.cpus",
     "limits.processes", "limits.disk", "output.stdout"});

std::vector<SaidValue> typed_values(const Key& key, const Policy& policy) {
  std::vector<SaidValue> values = policy::said_values(key, policy);
  std::erase_if(values,
                [](const SaidValue& value) { return value.at.layer != Layer::command_line; });
  return values;
}

std::string joined(const std::vector<SaidValue>& values) {
  std::string text;
  for (const SaidValue& value : values) {
    text += text.empty() ? "" : ", ";
    if (!value.name.empty()) text += value.name + " = ";
    text += value.toml;
  }
  return text;
}

std::string typed_line(const Key& key, const std::vector<SaidValue>& values) {
  const std::string name(key.name.substr(key.name.rfind('.') + 1));
  if (key.is_table()) return fmt::format("{} = {{ {} }}\n", name, joined(values));
  if (key.is_list()) return fmt::format("{} = [{}]\n", name, joined(values));
  return fmt::format("{} = {}\n", name, joined(values));
}

/// A commented-out setting that people often change: the value in force, or an example entry.
std::string offered_line(const Key& key, const Policy& policy) {
  const std::string name(key.name.substr(key.name.rfind('.') + 1));
  const bool entries = key.is_list() || key.is_table();
  const std::string value =
      entries ? std::string(policy::example(key)) : policy::value_toml(key, policy);
  return fmt::format("# {} = {}\n", name, value);
}

/// Makes a parent file's path absolute, because the policy may be saved anywhere.
std::string parent_of(const std::string& operand, const Surroundings& place) {
  const std::string path = place.context.working_directory + "/" + operand;
  const auto facts = place.host.files->look(path);
  return !operand.starts_with('/') && facts && facts->type == host::FileType::regular ? path
                                                                                      : operand;
}

/// The installed schema, for editors: found relative to the program, which may be installed
/// anywhere.
std::string schema_file(const Surroundings& place) {
  const auto program = place.host.files->link_target("/proc/self/exe");
  if (!program) return {};
  const std::string directory = program->substr(0, program->rfind('/'));
  const auto file =
      place.host.files->canonical(directory + "/../share/sbx/schema/sbx.policy.1.json");
  return file ? *file : std::string();
}

std::string header(const Invocation& typed, const Policy& policy, const Surroundings& place) {
  const std::string name = typed.name.empty() ? "my-policy" : typed.name;
  std::string parents;
  for (const policy::PolicyOperand& operand : typed.policies)
    (parents += parents.empty() ? "" : ", ") += policy::quoted(parent_of(operand.text, place));
  const bool several = typed.policies.size() > 1;
  const std::string schema = schema_file(place);
  std::string text = schema.empty() ? "" : "#:schema " + schema + "\n";
  text +=
      "# Lines without \"# \" are in effect; commented ones show other keys with the values in "
      "force.\n";
  text +=
      "# sbx policy check FILE finds mistakes, sbx policy audit FILE lists what it leaves open.\n";
  text += fmt::format("schema = 1\nname = {}\n", policy::quoted(name));
  text += fmt::format("description = {}\n",
                      policy::quoted("what " + name + " is for, in one sentence"));
  text += "# Everything that is not said here is as the named policy says.\n";
  text += several ? fmt::format("extends = [{}]\n", parents)
                  : fmt::format("extends = {}\n", parents.empty() ? "\"default\"" : parents);
  text += fmt::format("# {}\n# locked = {}\n", policy::find_key("locked")->documentation,
                      policy.locked.value);
  return text;
}

std::string body(const Policy& policy) {
  std::string text;
  std::string_view section;
  for (const Key& key : policy::keys()) {
    if (section_of(key.name).empty() && key.name != "enforcement") continue;
    const std::vector<SaidValue> values = typed_values(key, policy);
    const bool offered = std::ranges::find(kOffered, key.name) != kOffered.end();
    if (values.empty() && !offered) continue;
    if (section_of(key.name) != section) {
      section = section_of(key.name);
      text += fmt::format("\n[{}]\n", section);
    }
    text += fmt::format("# {}\n", key.documentation);
    text += values.empty() ? offered_line(key, policy) : typed_line(key, values);
  }
  return text;
}

/// --env NAME=VALUE sets a variable of one run; in a file it is a key.
std::vector<policy::Override> overrides_of(const Invocation& typed) {
  std::vector<policy::Override> list = typed.sets;
  list.insert(list.end(), typed.named.begin(), typed.named.end());
  list.insert(list.end(), typed.allow_hosts.begin(), typed.allow_hosts.end());
  for (const run::VariableSource& variable : typed.variables) {
    const auto equals = variable.text.find('=');
    list.push_back({.key = "environment.set." + variable.text.substr(0, equals),
                    .toml = policy::quoted(variable.text.substr(equals + 1)),
                    .option = "--env"});
  }
  return list;
}

}  // namespace

int init(const Invocation& typed) {
  if (!typed.operands.empty())
    return usage(
        typed, "\"sbx policy init\" takes options only",
        "for example: sbx policy init --name reports -p python --read ~/data > reports.toml");
  const auto place = look();
  if (!place) return complain(typed, place.error(), exit_status::kCouldNot);
  policy::LoadContext context = place->context;
  context.default_policy.clear();  // the file names its own parents
  const auto policy = policy::load(typed.policies, overrides_of(typed), context);
  if (!policy) return complain(typed, policy.error());
  return print(header(typed, *policy, *place) + body(*policy));
}

}  // namespace sbx::cli::policy_verb
