#include "cli/docs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>

#include <sbx/outcome.hpp>

#include "base/json.hpp"
#include "cli/app.hpp"
#include "cli/commands.hpp"
#include "plan/filter/table.hpp"
#include "policy/keys.hpp"
#include "policy/load.hpp"
#include "policy/write.hpp"
#include "protocol/schema.hpp"
#include "record/codes.hpp"

namespace sbx::cli {
namespace {

// --- mdoc(7)

std::string unicode_escape(std::string_view& rest) {
  const auto lead = static_cast<unsigned char>(rest.front());
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  std::uint32_t point = lead & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length && i < rest.size(); ++i)
    point = point << 6 | (static_cast<unsigned char>(rest[i]) & 0x3f);
  rest.remove_prefix(std::min(length, rest.size()));
  return fmt::format("\\[u{:04X}]", point);
}

/// Escapes backslashes, quotes (macro lines interpret them) and non-ASCII characters.
std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const char c = text.front();
    if (static_cast<unsigned char>(c) >= 0x80) {
      result += unicode_escape(text);
      continue;
    }
    if (c == '\\')
      result += "\\e";
    else if (c == '"')
      result += "\\(dq";
    else
      result += c;
    text.remove_prefix(1);
  }
  return result;
}

/// Text lines: one sentence per line; no line begins with a control character.
std::string sentences(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto end = text.find(". ");
    const std::string_view sentence =
        end == std::string_view::npos ? text : text.substr(0, end + 1);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
    if (sentence.starts_with('.') || sentence.starts_with('\'')) result += "\\&";
    result += escaped(sentence) + "\n";
  }
  return result;
}

/// Escapes words of a macro line that mdoc would take for macros or delimiters.
std::string argument(std::string_view text) {
  std::string result = escaped(text);
  if (result.find(' ') != std::string::npos) result = '"' + result + '"';
  return result;
}

/// True for literal text: "sbx", "limits.disk_on", "--lang", "sbx-run(1)". Prose begins with
/// letters and hyphens only.
bool is_literal(std::string_view word) {
  while (word.ends_with(',') || word.ends_with(':') || word.ends_with(';')) word.remove_suffix(1);
  return word == "sbx" || !std::all_of(word.begin(), word.end(), [](unsigned char c) {
           return std::isalpha(c) != 0 || c == '-' || c == '\'';
         });
}

/// A sentence: the first word capitalised unless it is a literal, and exactly one full stop.
std::string sentence(std::string_view text) {
  std::string result(text);
  if (result.empty()) return result;
  if (!is_literal(text.substr(0, text.find(' '))))
    result[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(result[0])));
  if (!result.ends_with('.') && !result.ends_with('?') && !result.ends_with('!')) result += '.';
  return result;
}

// --- options

/// "Fl p , Fl \-policy Ar POLICY"; in a synopsis a bar separates the names.
std::string option_item(const OptionDoc& option, std::string_view between = " ,") {
  std::string item;
  if (!option.short_name.empty()) item += " Fl " + option.short_name.substr(1);
  if (!option.short_name.empty() && !option.long_name.empty()) item += between;
  if (!option.long_name.empty()) item += " Fl \\-" + option.long_name.substr(2);
  if (option.value.starts_with('['))
    item += " Ns Op = Ns Ar " + argument(option.value.substr(1, option.value.size() - 2));
  else if (option.choices.size() > 4)
    item += " Ar NAME";
  else if (!option.value.empty())
    item += " Ar " + argument(option.value);
  return item;
}

std::string option_entry(const OptionDoc& option) {
  std::string entry = ".It" + option_item(option) + "\n" + sentences(option.text);
  if (option.choices.size() > 4) {
    entry += ".Ar NAME\nis one of\n";
    for (std::size_t i = 0; i < option.choices.size(); ++i)
      entry += fmt::format(".Cm {}{}\n", option.choices[i],
                           i + 1 == option.choices.size() ? " ." : " ,");
  }
  return entry;
}

std::string options_of(std::string_view command) {
  std::string text;
  std::string group;
  for (const CommandDoc& doc : describe_tree()) {
    if (doc.name != command) continue;
    for (const OptionDoc& option : doc.options) {
      if (option.group != group) {
        if (!group.empty()) text += ".El\n";
        group = option.group;
        text += fmt::format(".Ss {}\n.Bl -tag -width Ds\n", group);
      }
      text += option_entry(option);
    }
  }
  return text + ".El\n";
}

std::string run_options_table() {
  return options_of("run");
}

/// The options of this command alone: the page describes common ones once, in prose.
std::vector<OptionDoc> own_options(const CommandDoc& doc) {
  std::vector<OptionDoc> own;
  for (const OptionDoc& option : doc.options)
    if (doc.name != "run" && option.long_name != "--help" && option.long_name != "--color")
      own.push_back(option);
  return own;
}

/// "Nm sbx Cm policy show Oo Fl \-origin Oc Ar POLICY": brackets around each option, or "options"
/// for many. (Op would take the rest of the line.)
std::string synopsis(const CommandDoc& doc, const std::vector<OptionDoc>& options) {
  constexpr std::size_t kShown = 5;
  std::string text = fmt::format("Nm sbx Cm {}", doc.name);
  if (doc.name == "run" || options.size() > kShown) {
    text += " Oo Ar options Oc";
  } else {
    for (const OptionDoc& option : options)
      text += fmt::format(" Oo{} Oc", option_item(option, " |"));
  }
  return doc.operands.empty() ? text : text + " Ar " + argument(doc.operands);
}

/// "p | Fl \-policy", as the arguments of an Fl.
std::string flags_of(const OptionDoc& option) {
  std::string flags = option.short_name.empty() ? "" : option.short_name.substr(1);
  if (!flags.empty() && !option.long_name.empty()) flags += " | Fl ";
  return option.long_name.empty() ? flags : flags + "\\-" + option.long_name.substr(2);
}

/// The options shared with `run`: sbx-run(1) describes them.
std::string options_of_run(const std::vector<OptionDoc>& options) {
  const bool is_one = options.size() == 1;
  std::string text = is_one ? ".Pp\nThe option\n" : ".Pp\nThe options\n";
  for (std::size_t i = 0; i < options.size(); ++i)
    text += fmt::format(".Fl {}{}\n", flags_of(options[i]),
                        i + 2 < options.size()    ? " ,"
                        : i + 2 == options.size() ? "\nand"
                                                  : "");
  return text + (is_one ? "is that of" : "are those of") + "\n.Cm run ,\nsee\n.Xr sbx-run 1 .\n";
}

/// The commands of a session have a page of their own, sbx-session(1), with their options.
bool is_of_session(const CommandDoc& doc) {
  return doc.name.starts_with("session ");
}

/// The commands that `is_shown`, each with its options where it `has_options`.
std::string command_rows(bool (*is_shown)(const CommandDoc&),
                         bool (*has_options)(const CommandDoc&)) {
  const std::vector<CommandDoc> tree = describe_tree();
  const auto run = std::find_if(tree.begin(), tree.end(),
                                [](const CommandDoc& doc) { return doc.name == "run"; });
  const auto is_of_run = [&](const OptionDoc& option) {
    return std::any_of(run->options.begin(), run->options.end(), [&](const OptionDoc& each) {
      return each.long_name == option.long_name && each.text == option.text;
    });
  };
  std::string text;
  for (const CommandDoc& doc : tree) {
    if (doc.name.empty() || !is_shown(doc)) continue;
    std::vector<OptionDoc> options = own_options(doc);
    text += fmt::format(".It {}\n{}", synopsis(doc, options), sentences(doc.text));
    if (!has_options(doc)) continue;
    const auto shared =
        std::stable_partition(options.begin(), options.end(), std::not_fn(is_of_run));
    if (shared != options.begin()) {
      text += ".Bl -tag -width Ds\n";
      for (auto option = options.begin(); option != shared; ++option) text += option_entry(*option);
      text += ".El\n";
    }
    if (shared != options.end()) text += options_of_run({shared, options.end()});
  }
  return text.empty() ? text : ".Bl -tag -width Ds\n" + text + ".El\n";
}

std::string commands_list() {
  return command_rows([](const CommandDoc&) { return true; },
                      [](const CommandDoc& doc) { return !is_of_session(doc); });
}

std::string session_commands() {
  return command_rows(is_of_session, [](const CommandDoc&) { return true; });
}

// --- exit status

struct StatusRow {
  std::string status;
  const char* meaning;
};

std::array<StatusRow, 14> status_rows() {
  namespace status = exit_status;
  const auto number = [](int value) { return std::to_string(value); };
  return {{
      {"n", "the command exited with n"},
      {"128+N", "the command was killed by signal N"},
      {number(status::kWallTime), "the wall time was over"},
      {number(status::kCouldNot),
       "sbx could not do its job: usage, policy, set-up, a missing feature; or its init was "
       "killed"},
      {number(status::kNotExecutable), "the command can't be executed"},
      {number(status::kNotFound), "the command was not found"},
      {number(status::kMemory), "the memory budget was reached"},
      {number(status::kCpuTime), "the CPU-time budget was reached"},
      {number(status::kSize), "SIGXFSZ; more output than output.passed; disk on a live grant"},
      {number(status::kDeniedCall), "a system call was denied and denied = \"kill\""},
      {"130", "cancelled by SIGINT"},
      {"143", "cancelled by SIGTERM"},
      {"129", "cancelled by SIGHUP"},
      {"131", "cancelled by SIGQUIT"},
  }};
}

std::string exit_statuses() {
  std::string text = ".Bl -tag -width \"128+N\" -compact\n";
  for (const StatusRow& row : status_rows())
    text += fmt::format(".It {}\n{}\n", row.status, escaped(row.meaning));
  return text + ".El\n";
}

// --- policy

const char* order_text(policy::Order order) {
  switch (order) {
    case policy::Order::free:
      return "may change";
    case policy::Order::fixed:
      return "can't change";
    case policy::Order::smaller:
      return "may only get smaller";
    case policy::Order::smaller_of_unlimited:
      return "may only get smaller, where 0 means unlimited";
    case policy::Order::larger:
      return "may only become true";
    case policy::Order::subset:
      return "may only lose entries";
    case policy::Order::subset_of_all:
      return "may only lose entries; an empty list stands for everything";
    case policy::Order::superset:
      return "may only gain entries";
    case policy::Order::rules:
      return "may only gain rules that deny";
  }
  return "";
}

/// Words in order, strictest first: "none < allow-list < host".
std::string accepted(const policy::Key& key) {
  std::string text(key.accepts);
  if (key.type != policy::Type::word) {
    const auto dots = text.find("..");
    return dots == std::string::npos ? text : text.replace(dots, 2, " to ");
  }
  return fmt::format(
      "{}", fmt::join(policy::words(key), key.order == policy::Order::smaller ? " < " : ", "));
}

std::string key_entry(const policy::Key& key) {
  const std::string entry =
      fmt::format(".It Ic {}\n{}\n.br\n", key.name, escaped(sentence(key.documentation)));
  const std::string accepts = accepted(key);
  std::string form =
      fmt::format("{}{}{}", policy::type_name(key), accepts.empty() ? "" : ": ", accepts);
  if (!key.of_text())
    form += fmt::format("; default {}; below a lock it {}", policy::initial_toml(key),
                        order_text(key.order));
  return entry + escaped(sentence(form)) + "\n";
}

std::string keys() {
  std::string text = ".Bl -tag -width Ds\n";
  for (const policy::Key& key : policy::keys()) text += key_entry(key);
  return text + ".El\n";
}

std::string groups() {
  std::string text = ".Bl -tag -width Ds\n";
  for (std::size_t i = 0; i < plan::group_count(); ++i) {
    const plan::GroupText& group = plan::text_of(static_cast<plan::Group>(i));
    text += fmt::format(".It Cm {}\n{}\n", group.name, escaped(sentence(group.description)));
    if (group.risk[0] != '\0')
      text += escaped(sentence(fmt::format("granted, {}", group.risk))) + "\n";
    if (group.needs_privilege)
      text += "The kernel refuses these to the sandbox whatever a filter says.\n";
  }
  return text + ".El\n";
}

std::string builtin_policies() {
  std::string text = ".Bl -tag -width data-analysis -compact\n";
  for (const policy::Builtin& builtin : policy::builtins()) {
    const auto policy = policy::parse_text(builtin.toml, builtin.name, {.home = "/home/user"});
    text += fmt::format(".It Cm {}\n{}\n", builtin.name,
                        policy ? escaped(policy->description.value) : "");
  }
  return text + ".El\n";
}

// --- error codes

std::string error_codes() {
  std::string text;
  record::CodeOf of{};
  for (const record::CodeText& code : record::codes()) {
    if (text.empty() || code.of != of)
      text += fmt::format("{}About {}:\n.Bl -tag -width Ds\n", text.empty() ? "" : ".El\n.Pp\n",
                          record::place_name(code.of));
    of = code.of;
    text += fmt::format(".It Cm {}\n{}\n", code.code, escaped(sentence(code.meaning)));
    if (!code.cure.empty()) text += escaped(sentence(code.cure)) + "\n";
  }
  return text + ".El\n";
}

// --- packets

/// A type of JSON Schema in words.
std::string type_words(const Json& schema) {
  if (const auto choices = schema.find("enum"); choices != schema.end()) {
    std::string text = "one of";
    for (const Json& each : *choices)
      text += (text.ends_with("of") ? " " : ", ") +
              (each.is_string() ? each.get<std::string>() : each.dump());
    return text;
  }
  const auto type = schema.find("type");
  if (type == schema.end()) return "JSON";
  if (type->is_array()) return type_words({{"type", type->front()}}) + ", or null";
  if (*type == "array")
    return schema.contains("prefixItems") ? "pair of strings"
                                          : "list, each " + type_words(schema["items"]);
  return *type == "boolean" ? "true or false" : type->get<std::string>();
}

/// A row for each member, and for each member of what it holds: "network[].rule".
std::string member_rows(const Json& schema, const std::string& before) {
  std::string text;
  const Json none = Json::array();
  const Json& required = schema.contains("required") ? schema["required"] : none;
  for (const auto& [name, member] : schema["properties"].items()) {
    if (member.contains("const")) continue;
    const bool is_always = std::find(required.begin(), required.end(), name) != required.end();
    const bool is_list = member.contains("items");
    const Json& inner = is_list ? member["items"] : member;
    text += fmt::format(".It Va {}\n{}{}\n", before + name, type_words(member),
                        is_always ? "" : ", where there is one");
    if (inner.contains("properties"))
      text += member_rows(inner, before + name + (is_list ? "[]." : "."));
  }
  return text;
}

std::string members_of(const Json& schema) {
  const std::string rows = member_rows(schema, "");
  return rows.empty() ? rows : ".Bl -tag -width Ds -compact\n" + rows + ".El\n";
}

std::string packet_requests() {
  const Json schema = protocol::packet_schema();
  std::string text = ".Bl -tag -width Ds\n";
  for (const protocol::Operation& each : protocol::operations()) {
    text += fmt::format(".It Cm {}\n{}", each.op, sentences(sentence(each.meaning)));
    if (!each.descriptors.empty())
      text += fmt::format("Its descriptors: {}.\n", escaped(each.descriptors));
    text += "Answered by\n";
    for (const std::string_view name : {each.begun, each.event})
      if (!name.empty()) text += fmt::format(".Vt {} ,\n", name);
    text += fmt::format(".Vt {} .\n", each.answer);
    if (!each.later.empty())
      text += fmt::format("Its client may send\n.Vt {}\nmeanwhile.\n", each.later);
    text += members_of(schema["$defs"][std::string(each.request)]);
  }
  return text + ".El\n";
}

std::string packet_answers() {
  const Json schema = protocol::packet_schema();
  std::string text = ".Bl -tag -width Ds\n";
  for (const auto& [name, definition] : schema["$defs"].items())
    if (!definition["properties"].contains("op"))
      text += fmt::format(".It Vt {}\n{}", name, members_of(definition));
  return text + ".El\n";
}

struct Region {
  std::string_view name;
  std::string (*make)();
};
constexpr std::array kRegions{
    Region{"run options", run_options_table},   Region{"commands", commands_list},
    Region{"exit status", exit_statuses},       Region{"policy keys", keys},
    Region{"system call groups", groups},       Region{"built-in policies", builtin_policies},
    Region{"error codes", error_codes},         Region{"session commands", session_commands},
    Region{"packet requests", packet_requests}, Region{"packet answers", packet_answers}};

/// Sets the line ".Os" to the product and its version: otherwise a page's footer names the system
/// that formats it.
std::string with_version(std::string page) {
  constexpr std::string_view kLine = "\n.Os";
  const auto begin = page.find(kLine);
  if (begin == std::string::npos) return page;
  return page.replace(begin, page.find('\n', begin + 1) - begin, "\n.Os sbx " SBX_VERSION);
}

std::unexpected<Error> broken(std::string message) {
  return fail(
      Error{.kind = ErrorKind::internal, .code = "broken-page", .message = std::move(message)});
}

}  // namespace

Result<std::string> with_generated_regions(std::string_view page) {
  constexpr std::string_view kBegin = ".\\\" generated: ";
  constexpr std::string_view kEnd = ".\\\" end generated";
  std::string result;
  while (true) {
    const auto begin = page.find(kBegin);
    if (begin == std::string_view::npos) break;
    const auto line_end = page.find('\n', begin);
    const auto end = page.find(kEnd, begin);
    if (line_end == std::string_view::npos || end == std::string_view::npos)
      return broken("a generated region has no end");
    const std::string_view name =
        page.substr(begin + kBegin.size(), line_end - begin - kBegin.size());
    const auto* region = std::find_if(kRegions.begin(), kRegions.end(),
                                      [&](const Region& each) { return each.name == name; });
    if (region == kRegions.end()) return broken(fmt::format("there is no region \"{}\"", name));
    result += page.substr(0, line_end + 1);
    result += region->make();
    page.remove_prefix(end);
    result += kEnd;
    page.remove_prefix(kEnd.size());
  }
  result += page;
  return with_version(std::move(result));
}

std::vector<std::string_view> generated_regions() {
  std::vector<std::string_view> names;
  for (const Region& region : kRegions) names.push_back(region.name);
  return names;
}

std::string everything_named() {
  std::string text;
  for (const CommandDoc& command : describe_tree()) {
    const std::string before = command.name.empty() ? "" : command.name + " ";
    if (!command.name.empty()) text += fmt::format("command {}\n", command.name);
    for (const OptionDoc& option : command.options)
      for (const std::string& name : {option.short_name, option.long_name})
        if (!name.empty()) text += fmt::format("option {}{}\n", before, name);
  }
  for (const policy::Key& key : policy::keys()) text += fmt::format("key {}\n", key.name);
  for (std::size_t i = 0; i < plan::group_count(); ++i)
    text += fmt::format("group {}\n", plan::text_of(static_cast<plan::Group>(i)).name);
  for (const record::CodeText& code : record::codes()) text += fmt::format("code {}\n", code.code);
  for (const StatusRow& row : status_rows()) text += fmt::format("status {}\n", row.status);
  return text;
}

}  // namespace sbx::cli
