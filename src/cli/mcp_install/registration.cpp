#include "cli/mcp_install/registration.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/mcp_install/json_edit.hpp"
#include "cli/mcp_install/not_editable.hpp"
#include "cli/mcp_install/toml_edit.hpp"
#include "policy/quoting.hpp"

namespace sbx::cli::mcp_install {
namespace {

/// What a model calls all the time, and what only reaches the sandbox.
constexpr std::array kApproved = {"run_code", "run_command", "wait", "read_file"};
/// Longer than the longest wait_s, so that a call ends before the client gives it up.
constexpr int kSeconds = 600;

Json arguments_of(const Registration& wanted) {
  return std::vector<std::string>(wanted.words.begin() + 1, wanted.words.end());
}

Json entry_of(const Client& client, const Registration& wanted) {
  if (client.entry == Entry::one_list)
    return {{"type", "local"}, {"command", wanted.words}, {"enabled", true}};
  Json entry = Json::object();
  if (client.entry == Entry::typed || client.entry == Entry::claude) entry["type"] = "stdio";
  entry["command"] = wanted.words.front();
  entry["args"] = arguments_of(wanted);
  if (client.entry == Entry::claude) entry["alwaysLoad"] = true;
  if (client.entry == Entry::claude || client.entry == Entry::gemini)
    entry["timeout"] = kSeconds * 1000;
  if (client.entry == Entry::gemini && wanted.is_approved()) entry["trust"] = true;
  return entry;
}

std::vector<std::string> words_of(const Json& entry) {
  std::vector<std::string> words;
  const auto add = [&](const Json& value) {
    if (value.is_string()) words.push_back(value.get<std::string>());
    if (value.is_array())
      for (const Json& each : value)
        if (each.is_string()) words.push_back(each.get<std::string>());
  };
  for (const char* const member : {"command", "args"})
    if (const auto found = entry.find(member); found != entry.end()) add(*found);
  return words;
}

/// Whether an installation can have written it: what others have added to it must not be lost.
bool is_own(const Json& entry) {
  constexpr std::array kMembers = {"type",
                                   "command",
                                   "args",
                                   "alwaysLoad",
                                   "timeout",
                                   "trust",
                                   "enabled",
                                   "startup_timeout_sec",
                                   "tool_timeout_sec",
                                   "tools"};
  if (!entry.is_object() || !starts_server(words_of(entry))) return false;
  const auto has_only = [](const Json& object, const auto& names) {
    return std::ranges::all_of(object.items(), [&](const auto& each) {
      return std::ranges::find(names, std::string_view(each.key())) != names.end();
    });
  };
  const auto tools = entry.find("tools");
  return has_only(entry, kMembers) && (tools == entry.end() || has_only(*tools, kApproved));
}

std::unexpected<Error> already_there(const std::string& what) {
  return not_editable(what + " is there already and is not what sbx writes");
}

// ---- JSON ----

Status change_entry(const Client& client, const Registration& wanted, Change change,
                    JsonText& text) {
  const Names names{client.servers, wanted.name};
  const Json* const there = text.find(names);
  if (there != nullptr && !is_own(*there))
    return already_there(std::string(client.servers) + "." + wanted.name);
  return change == Change::install ? text.set(names, entry_of(client, wanted)) : text.drop(names);
}

Status change_approvals(const Client& client, const Registration& wanted, Change change,
                        JsonText& text) {
  const Names list = names_of(client.allowed_key);
  if (list.empty()) return {};
  for (const std::string_view tool : kApproved) {
    const std::string word = "mcp__" + wanted.name + "__" + std::string(tool);
    // An earlier installation may have been without a live workspace.
    SBX_TRY(change == Change::install && wanted.is_approved() ? text.add_word(list, word)
                                                              : text.drop_word(list, word));
  }
  return {};
}

Status change_shell(const Client& client, Change change, JsonText& text) {
  const Names key = names_of(client.shell_key);
  if (key.empty()) return {};  // no setting is known
  const Json value = Json::parse(client.shell_value);
  if (client.shell_is_list)
    return change == Change::install ? text.add_word(key, value.get<std::string>())
                                     : text.drop_word(key, value.get<std::string>());
  const Json* const there = text.find(key);
  if (there != nullptr && *there != value) return already_there(client.shell_key);
  return change == Change::install ? text.set(key, value) : text.drop(key);
}

Result<std::string> changed_json(const Client& client, const File& file, const Registration& wanted,
                                 Change change, const std::string& before) {
  JsonText text = SBX_TRY(JsonText::read(before));
  const std::string same = text.text();
  if (file.registers) SBX_TRY(change_entry(client, wanted, change, text));
  if (file.permits) SBX_TRY(change_approvals(client, wanted, change, text));
  if (file.permits && wanted.replaces_shell) SBX_TRY(change_shell(client, change, text));
  return text.text() == same ? before : text.text();
}

// ---- TOML ----

Block server_block(const Client& client, const Registration& wanted) {
  const std::string table = std::string(client.servers) + "." + policy::key_text(wanted.name);
  std::string list;
  for (std::size_t i = 1; i < wanted.words.size(); ++i)
    list += (i == 1 ? "" : ", ") + policy::quoted(wanted.words[i]);
  std::string lines = "[" + table + "]\n";
  if (!wanted.words.empty())
    lines += "command = " + policy::quoted(wanted.words.front()) + "\nargs = [" + list + "]\n";
  lines += "startup_timeout_sec = 10\ntool_timeout_sec = " + std::to_string(kSeconds) + "\n";
  if (wanted.is_approved())
    for (const std::string_view tool : kApproved)
      lines += "[" + table + ".tools." + std::string(tool) + "]\napproval_mode = \"approve\"\n";
  return {.about = "sbx mcp install " + std::string(client.name) + ", server " + wanted.name,
          .names = {client.servers, wanted.name},
          .lines = std::move(lines)};
}

Block shell_block(const Client& client) {
  const Names key = names_of(client.shell_key);
  return {.about = "sbx mcp install " + std::string(client.name) + ", its own shell",
          .names = {key.front()},
          .lines = "[" + key.front() + "]\n" + key.back() + " = " + client.shell_value + "\n"};
}

bool denies_shell(const Client& client, const Json* value) {
  const Json wanted = Json::parse(client.shell_value);
  if (value == nullptr) return false;
  if (!client.shell_is_list) return *value == wanted;
  return value->is_array() && std::ranges::find(*value, wanted) != value->end();
}

Result<std::string> changed_toml(const Client& client, const Registration& wanted, Change change,
                                 const std::string& before) {
  TomlText text = SBX_TRY(TomlText::read(before));
  Block server = server_block(client, wanted);
  const Json* const there = text.find(server.names);
  server.is_own = there != nullptr && is_own(*there);
  const Block shell = shell_block(client);
  if (change == Change::remove) {
    SBX_TRY(text.drop(server));
    // What is there without marks is somebody else's, and stays.
    if (wanted.replaces_shell && before.contains(text_of(shell))) SBX_TRY(text.drop(shell));
    return text.text();
  }
  SBX_TRY(text.put(server));
  if (wanted.replaces_shell && !denies_shell(client, text.find(names_of(client.shell_key))))
    SBX_TRY(text.put(shell));
  return text.text();
}

template <class Text>
Result<Found> found_in_text(const Client& client, const std::string& name,
                            const std::string& bytes) {
  const Text text = SBX_TRY(Text::read(bytes));
  Found found;
  if (const Json* const entry = text.find({client.servers, name}); entry != nullptr) {
    found.words = words_of(*entry);
    const auto enabled = entry->find("enabled");
    found.is_off = enabled != entry->end() && *enabled == false;
  }
  if (*client.shell_key == '\0') return found;
  const Json* const shell = text.find(names_of(client.shell_key));
  found.decides_shell = shell != nullptr;
  found.denies_shell = denies_shell(client, shell);
  return found;
}

}  // namespace

Result<std::vector<File>> files_of(const Client& client, Scope scope, const host::Host& host) {
  const Location registering = SBX_TRY(locate(client.registering, scope, host));
  const Location settings = SBX_TRY(locate(client.settings, scope, host));
  if (registering.path() == settings.path())
    return std::vector<File>{{.location = registering, .registers = true, .permits = true}};
  return std::vector<File>{{.location = settings, .permits = true},
                           {.location = registering, .registers = true}};
}

Result<std::string> changed_text(const Client& client, const File& file, const Registration& wanted,
                                 Change change, const std::string& text) {
  return client.format == Format::toml ? changed_toml(client, wanted, change, text)
                                       : changed_json(client, file, wanted, change, text);
}

std::string text_to_paste(const Client& client, const File& file, const Registration& wanted) {
  return changed_text(client, file, wanted, Change::install, "").value_or("");
}

std::string generic_text(const Registration& wanted) {
  Json json;
  json["mcpServers"][wanted.name] = {{"command", wanted.words.front()},
                                     {"args", arguments_of(wanted)}};
  return pretty(json);
}

Result<Found> found_in(const Client& client, const std::string& name, const std::string& text) {
  return client.format == Format::toml ? found_in_text<TomlText>(client, name, text)
                                       : found_in_text<JsonText>(client, name, text);
}

bool starts_server(const std::vector<std::string>& words) {
  if (words.size() < 2 || words[1] != "mcp") return false;
  const std::string_view program = words.front();
  return program.substr(program.rfind('/') + 1).starts_with("sbx");
}

}  // namespace sbx::cli::mcp_install
