#include "cli/take.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <string>

#include "base/letters.hpp"
#include "base/text.hpp"
#include "base/too_large.hpp"
#include "cli/habits.hpp"
#include "cli/operand.hpp"
#include "cli/usage.hpp"
#include "policy/network_rules.hpp"
#include "policy/syntax.hpp"
#include "policy/values.hpp"

namespace sbx::cli {
namespace {

void set_key(std::vector<policy::Override>& layer, const char* key, std::string toml,
             const char* option, bool append = false) {
  layer.push_back({.key = key, .toml = std::move(toml), .option = option, .append = append});
}

/// TOML allows these around "=", and the lines that sbx suggests contain them.
constexpr std::string_view kBlanksOfToml = " \t";

std::string as_meant(const char* option, const std::optional<std::string>& meant,
                     const char* examples) {
  if (!meant) return examples;
  return "did you mean " + std::string(option) + " " + *meant + "? " + examples;
}

Status duration(Invocation& typed, std::string_view value, const char* key, const char* option) {
  const char* const examples = "for example 250ms, 30s, 5m or 1h";
  const std::string got = "\"" + std::string(value) + "\"";
  if (!parse_duration(value))
    return is_too_large(value, parse_duration)
               ? bad_value(std::string(option) + ": " + got + " is too large", examples)
               : bad_value(std::string(option) + " needs a time such as 30s, got " + got,
                           as_meant(option, policy::meant_duration(value), examples));
  set_key(typed.named, key, policy::quoted(value), option);
  return {};
}

Status size(Invocation& typed, std::string_view value, const char* key, const char* option) {
  const char* const examples = "for example 64K, 512M or 2G";
  const std::string got = "\"" + std::string(value) + "\"";
  if (!parse_bytes(value))
    return is_too_large(value, parse_bytes)
               ? bad_value(std::string(option) + ": " + got + " is too large", examples)
               : bad_value(std::string(option) + " needs a size such as 512M, got " + got,
                           as_meant(option, policy::meant_size(value),
                                    "for example 64K, 512M or 2G: 1M is 1 MiB"));
  set_key(typed.named, key, policy::quoted(value), option);
  return {};
}

Result<std::uint32_t> whole_number(std::string_view value, const char* option) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size())
    return fail(Error{.kind = ErrorKind::usage,
                      .code = "bad-value",
                      .message = std::string(option) + " needs a whole number, got \"" +
                                 std::string(value) + "\"",
                      .hint = "for example 64"});
  return number;
}

Status grant(Invocation& typed, std::string_view value, const char* key, const char* option) {
  const PathOperand path = SBX_TRY(split_path_operand(value, option));
  std::string toml = "[{ source = " + policy::quoted(path.source);
  if (!path.suffix.empty()) toml += ", target = " + policy::quoted(path.suffix);
  set_key(typed.named, key, toml + " }]", option, true);
  return {};
}

/// "a.example,b.example:80" as an option for each; empty for one host, whose ports may be several:
/// "a.example:80,443".
std::string one_by_one(std::string_view value) {
  std::string form;
  int hosts = 0;
  for (bool more = true; more;) {
    const auto comma = value.find(',');
    const std::string part(trimmed(value.substr(0, comma), kBlanksOfToml));
    more = comma != std::string_view::npos;
    value = more ? value.substr(comma + 1) : std::string_view();
    if (part.empty()) continue;
    const bool is_port = hosts > 0 && part.find_first_not_of("0123456789-*") == std::string::npos;
    form += is_port ? "," + part : (hosts++ > 0 ? " " : "") + ("--allow-host " + shell_word(part));
  }
  return hosts > 1 ? form : std::string();
}

Result<int> descriptor(std::string_view value, const char* option) {
  const auto number = SBX_TRY(whole_number(value, option));
  if (number > 1'000'000)
    return fail(
        Error{.kind = ErrorKind::usage,
              .code = "bad-value",
              .message = std::string(option) + ": no such descriptor " + std::string(value)});
  return static_cast<int>(number);
}

}  // namespace

Status check_home(std::string_view value, const char* option) {
  if (value != "~" && !value.starts_with("~/")) return {};
  const std::string rest(value.substr(1));
  const bool is_plain = shell_word(rest) == rest;
  return bad_value(fmt::format("{}: no shell put the home in place of \"~\" in \"{}\"", option,
                               printable(value)),
                   fmt::format("{} {}; a directory of that name is ./~", option,
                               is_plain || rest.empty() ? "\"$HOME" + rest + "\""
                                                        : "\"$HOME\"" + shell_word(rest)));
}

// --- policy

Status take_session(Invocation& typed, std::string_view value) {
  if (value.empty()) return bad_value("--session needs a name", "for example --session work");
  typed.session = std::string(value);
  return {};
}

Status take_policy(Invocation& typed, std::string_view value) {
  if (value.empty())
    return bad_value("-p needs a policy name or file",
                     "for example -p python; \"sbx policy list\" names them");
  if (const std::string form = policy_habit(value); !form.empty())
    return bad_value("there is no policy \"" + std::string(value) + "\"", form);
  typed.policies.push_back({std::string(value)});
  return {};
}

Status take_set(Invocation& typed, std::string_view value) {
  const auto equals = value.find('=');
  if (equals == std::string_view::npos || trimmed(value.substr(0, equals), kBlanksOfToml).empty())
    return bad_value("--set needs KEY=VALUE, got \"" + std::string(value) + "\"",
                     "for example --set 'limits.memory=\"512M\"'");
  typed.sets.push_back({.key = std::string(trimmed(value.substr(0, equals), kBlanksOfToml)),
                        .toml = std::string(trimmed(value.substr(equals + 1), kBlanksOfToml)),
                        .option = "--set"});
  return {};
}

// --- limits

Status take_timeout(Invocation& typed, std::string_view value) {
  return duration(typed, value, "limits.wall_time", "--timeout");
}

Status take_cpu_time(Invocation& typed, std::string_view value) {
  return duration(typed, value, "limits.cpu_time", "--cpu-time");
}

Status take_memory(Invocation& typed, std::string_view value) {
  return size(typed, value, "limits.memory", "--memory");
}

Status take_disk(Invocation& typed, std::string_view value) {
  return size(typed, value, "limits.disk", "--disk");
}

Status take_output(Invocation& typed, std::string_view value) {
  if (value.ends_with(".ipynb") || value.contains('/'))
    return bad_value("--output is a size, and \"" + printable(value) + "\" names a file",
                     "--out DIR brings files out, with --cells the notebook too");
  SBX_TRY(size(typed, value, "output.stdout", "--output"));
  SBX_TRY(size(typed, value, "output.stderr", "--output"));
  return size(typed, value, "output.passed", "--output");
}

Status take_cpus(Invocation& typed, std::string_view value) {
  double number = 0;
  const auto [end, error] =
      std::from_chars(value.data(), value.data() + value.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || end != value.data() + value.size() || !(number > 0) || number > 1e6)
    return bad_value("--cpus needs a number above 0, got \"" + std::string(value) + "\"",
                     "for example 2 or 0.5");
  std::string toml(value);  // TOML requires a digit on both sides of the point
  if (toml.starts_with('.')) toml.insert(0, "0");
  if (toml.ends_with('.')) toml += "0";
  set_key(typed.named, "limits.cpus", std::move(toml), "--cpus");
  return {};
}

Status take_processes(Invocation& typed, std::string_view value) {
  const auto number = SBX_TRY(whole_number(value, "--processes"));
  set_key(typed.named, "limits.processes", std::to_string(number), "--processes");
  return {};
}

// --- files

Status take_read(Invocation& typed, std::string_view value) {
  return grant(typed, value, "filesystem.read", "--read");
}

Status take_write(Invocation& typed, std::string_view value) {
  return grant(typed, value, "filesystem.write", "--write");
}

Status take_in(Invocation& typed, std::string_view value) {
  PathOperand path = SBX_TRY(split_path_operand(value, "--in", Target::anywhere));
  typed.request.inputs.push_back({std::move(path.source), std::move(path.suffix)});
  return {};
}

Status take_venv(Invocation& typed, std::string_view value) {
  set_key(typed.named, "interpreters.venv", policy::quoted(value), "--venv");
  return {};
}

Status take_workspace(Invocation& typed, std::string_view value) {
  const WorkspaceOperand workspace = SBX_TRY(split_workspace_operand(value));
  set_key(typed.named, "filesystem.workspace.source", policy::quoted(workspace.directory),
          "--workspace");
  if (!workspace.mode.empty())
    set_key(typed.named, "filesystem.workspace.mode", policy::quoted(workspace.mode),
            "--workspace");
  return {};
}

// --- network

Status take_net(Invocation& typed, std::string_view value) {
  set_key(typed.named, "network.mode", policy::quoted(value), "--net");
  return {};
}

Status take_allow_host(Invocation& typed, std::string_view value) {
  if (const std::string form = one_by_one(value); !form.empty())
    return bad_value("--allow-host takes one host, got \"" + printable(value) + "\"", form);
  set_key(typed.allow_hosts, "network.allow",
          "[" + policy::quoted(policy::with_default_port(value)) + "]", "--allow-host", true);
  return {};
}

// --- environment and input

Status take_env(Invocation& typed, std::string_view value) {
  const auto equals = value.find('=');
  SBX_TRY(run::check_variable_name(value.substr(0, equals), "--env"));
  if (equals == std::string_view::npos)
    set_key(typed.named, "environment.pass", "[" + policy::quoted(value) + "]", "--env", true);
  else
    typed.variables.push_back(
        {.kind = run::VariableSource::Kind::assignment, .text = std::string(value)});
  return {};
}

Status take_env_file(Invocation& typed, std::string_view value) {
  if (value.empty())
    return bad_value("--env-file needs a file", "for example --env-file .env.test");
  SBX_TRY(check_home(value, "--env-file"));
  typed.variables.push_back({.kind = run::VariableSource::Kind::file, .text = std::string(value)});
  return {};
}

Status take_env_fd(Invocation& typed, std::string_view value) {
  const int number = SBX_TRY(descriptor(value, "--env-fd"));
  typed.variables.push_back(
      {.kind = run::VariableSource::Kind::descriptor, .text = {}, .descriptor = number});
  return {};
}

Status take_stdin(Invocation& typed, std::string_view value) {
  if (value == "inherit") {
    typed.request.stdin_mode = plan::StdinMode::inherit;
  } else if (value == "open") {
    typed.request.stdin_mode = plan::StdinMode::inherit;
    typed.open_stdin = true;
  } else if (value == "null") {
    typed.request.stdin_mode = plan::StdinMode::null;
  } else if (value.empty()) {
    return bad_value("--stdin needs inherit, null or a file", "for example --stdin null");
  } else {
    SBX_TRY(check_home(value, "--stdin"));
    typed.request.stdin_mode = plan::StdinMode::file;
    typed.request.stdin_file = std::string(value);
  }
  return {};
}

// --- what to run

Status take_cwd(Invocation& typed, std::string_view value) {
  if (value.empty())
    return bad_value("--cwd needs a directory of the session", "for example --cwd src");
  typed.request.directory = std::string(value);
  return {};
}

Status take_lang(Invocation& typed, std::string_view value) {
  if (value.empty())
    return bad_value("--lang needs the name of a language", "for example --lang python");
  typed.request.language = std::string(value);
  return {};
}

Status take_cells(Invocation& typed, std::string_view value) {
  if (value.empty())
    return bad_value("--cells needs a notebook", "for example --cells report.ipynb");
  SBX_TRY(check_home(value, "--cells"));
  typed.cell.notebook = std::string(value);
  return {};
}

/// Names that a language refuses are the notebook's to refuse: only it knows the language.
Status take_parameter(Invocation& typed, std::string_view value) {
  constexpr std::string_view kFits =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
  constexpr const char* kForm = "for example --parameter rows=100";
  const auto equals = value.find('=');
  const std::string name(value.substr(0, equals));
  if (!is_utf8(value)) return bad_value("--parameter takes text that is UTF-8", kForm);
  if (equals == std::string_view::npos)
    return bad_value("--parameter needs NAME=VALUE, got \"" + printable(value) + "\"", kForm);
  if (name.empty() || is_digit(name.front()) || name.find_first_not_of(kFits) != std::string::npos)
    return bad_value("--parameter: \"" + printable(name) + "\" is not the name of a variable",
                     kForm);
  const auto same = [&name](const auto& each) { return each.first == name; };
  std::erase_if(typed.cell.parameters, same);  // the last one wins
  typed.cell.parameters.emplace_back(name, value.substr(equals + 1));
  return {};
}

Status take_code(Invocation& typed, std::string_view value) {
  typed.request.code = std::string(value);
  return {};
}

// --- the answer

Status take_report(Invocation& typed, std::string_view value) {
  if (value.empty()) return bad_value("--report needs a file", "for example --report record.json");
  SBX_TRY(check_home(value, "--report"));
  typed.output.report_file = std::string(value);
  return {};
}

Status take_report_fd(Invocation& typed, std::string_view value) {
  typed.output.report_fd = SBX_TRY(descriptor(value, "--report-fd"));
  return {};
}

Status take_events_fd(Invocation& typed, std::string_view value) {
  typed.output.events_fd = SBX_TRY(descriptor(value, "--events-fd"));
  if (typed.output.events_fd <= 2)  // otherwise the program could forge events
    return bad_value("--events-fd needs a descriptor of its own, from 3 on",
                     "in a shell: sbx run --events-fd 3 ... 3>FILE");
  return {};
}

Status take_isolation(Invocation& typed, std::string_view value) {
  set_key(typed.named, "isolation", policy::quoted(value), "--isolation");
  return {};
}

Status take_require(Invocation& typed, std::string_view value) {
  typed.request.require.emplace_back(value);
  return {};
}

Status take_color(Invocation& typed, std::string_view value) {
  if (value == "always") typed.output.color = Color::always;
  if (value == "never") typed.output.color = Color::never;
  if (value == "auto") typed.output.color = Color::automatic;
  return {};
}

// --- bringing things out

Status take_out(Invocation& typed, std::string_view value) {
  if (value.empty()) return bad_value("--out needs a directory", "for example --out results");
  SBX_TRY(check_home(value, "--out"));
  typed.bring_out.directory = std::string(value);
  return {};
}

Status take_collect(Invocation& typed, std::string_view value) {
  if (value.empty()) return bad_value("--collect needs a pattern", "for example --collect '*.png'");
  typed.bring_out.collect.emplace_back(value);
  return {};
}

Status take_apply(Invocation& typed, std::string_view value) {
  typed.bring_out.apply = true;
  if (!value.empty()) typed.bring_out.patterns.emplace_back(value);
  return {};
}

Status take_keep(Invocation& typed, std::string_view value) {
  if (value.empty()) return bad_value("--keep needs a name", "for example --keep cleanup");
  typed.bring_out.keep = std::string(value);
  return {};
}

}  // namespace sbx::cli
