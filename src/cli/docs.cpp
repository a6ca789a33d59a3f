#include "cli/docs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include <sbx/outcome.hpp>

#include "cli/app.hpp"
#include "cli/codes.hpp"
#include "plan/filter/table.hpp"
#include "policy/keys.hpp"
#include "policy/load.hpp"

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

/// Text for anywhere: backslashes, quotes (macro lines take them as their own) and what is not
/// ASCII.
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

/// Text lines: each sentence on its own line, a line never begins with a control character.
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

/// Words of a macro line that could be taken for macros or delimiters are made plain.
std::string argument(std::string_view text) {
  std::string result = escaped(text);
  if (result.find(' ') != std::string::npos) result = '"' + result + '"';
  return result;
}

std::string capitalised(std::string_view text) {
  std::string result(text);
  if (!result.empty())
    result[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(result[0])));
  return result;
}

// --- options

/// "Fl p , Fl \-policy Ar POLICY"
std::string option_item(const OptionDoc& option) {
  std::string item = ".It";
  if (!option.short_name.empty()) item += " Fl " + option.short_name.substr(1);
  if (!option.short_name.empty() && !option.long_name.empty()) item += " ,";
  if (!option.long_name.empty()) item += " Fl \\-" + option.long_name.substr(2);
  if (option.value.starts_with('['))
    item += " Ns Op = Ns Ar " + argument(option.value.substr(1, option.value.size() - 2));
  else if (option.choices.size() > 4)
    item += " Ar NAME";
  else if (!option.value.empty())
    item += " Ar " + argument(option.value);
  return item + "\n";
}

std::string option_entry(const OptionDoc& option) {
  std::string entry = option_item(option) + sentences(option.text);
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

std::string run_options() {
  return options_of("run");
}

std::string commands() {
  std::string text = ".Bl -tag -width Ds\n";
  for (const CommandDoc& doc : describe_tree()) {
    if (doc.name.empty()) continue;
    text += fmt::format(".It Nm sbx Cm {}", doc.name);
    for (const OptionDoc& option : doc.options)
      if (doc.name != "run" && option.group == "Options" && option.long_name != "--help" &&
          option.long_name != "--color")
        text += fmt::format(
            " Op {}Fl \\-{}",
            option.short_name.empty() ? "" : fmt::format("Fl {} | ", option.short_name[1]),
            option.long_name.substr(2));
    if (doc.name == "run") text += " Op Ar options";
    if (!doc.operands.empty()) text += " Ar " + argument(doc.operands);
    text += "\n" + sentences(doc.text);
  }
  return text + ".El\n";
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
      {"128+N", "the command died of signal N by itself"},
      {number(status::kWallTime), "the wall time was over"},
      {number(status::kCouldNot),
       "sbx could not do its job: usage, policy, set-up, or a missing feature"},
      {number(status::kNotExecutable), "the command can't be executed"},
      {number(status::kNotFound), "the command was not found"},
      {number(status::kMemory), "the memory budget was reached"},
      {number(status::kCpuTime), "the CPU-time budget was reached"},
      {number(status::kSize), "SIGXFSZ; output with exceed = \"kill\"; disk on a live grant"},
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

/// Words in their order, strictest first: "none < allow-list < host".
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
  std::string entry =
      fmt::format(".It Ic {}\n{}.\n.br\n", key.name, escaped(capitalised(key.documentation)));
  const std::string accepts = accepted(key);
  entry += escaped(fmt::format("{}{}{}", capitalised(policy::type_name(key)),
                               accepts.empty() ? "" : ": ", accepts));
  if (!key.of_text()) entry += escaped(fmt::format("; default {}", policy::initial_toml(key)));
  if (!key.of_text()) entry += escaped(fmt::format("; below a lock it {}", order_text(key.order)));
  entry += ".\n";
  return entry;
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
    text += fmt::format(".It Cm {}\n{}.\n", group.name, escaped(capitalised(group.description)));
    if (group.risk[0] != '\0') text += fmt::format("Granted, {}.\n", escaped(group.risk));
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
  CodeOf of{};
  for (const CodeText& code : codes()) {
    if (text.empty() || code.of != of)
      text += fmt::format("{}About {}:\n.Bl -tag -width Ds\n", text.empty() ? "" : ".El\n.Pp\n",
                          place_name(code.of));
    of = code.of;
    text += fmt::format(".It Cm {}\n{}.\n", code.code, escaped(capitalised(code.meaning)));
    if (!code.cure.empty()) text += fmt::format("{}.\n", escaped(capitalised(code.cure)));
  }
  return text + ".El\n";
}

struct Region {
  std::string_view name;
  std::string (*make)();
};
constexpr std::array kRegions{
    Region{"run options", run_options},   Region{"commands", commands},
    Region{"exit status", exit_statuses}, Region{"policy keys", keys},
    Region{"system call groups", groups}, Region{"built-in policies", builtin_policies},
    Region{"error codes", error_codes}};

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
  return result;
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
  for (const CodeText& code : codes()) text += fmt::format("code {}\n", code.code);
  for (const StatusRow& row : status_rows()) text += fmt::format("status {}\n", row.status);
  return text;
}

}  // namespace sbx::cli
