#include "cli/options.hpp"

#include <charconv>
#include <cstdlib>
#include <string>

#include "cli/operand.hpp"
#include "policy/network_rules.hpp"
#include "policy/syntax.hpp"

namespace sbx::cli {
namespace {

Status wrong(std::string message, std::string hint = {}) {
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "bad-value",
                    .message = std::move(message),
                    .hint = std::move(hint)});
}

void set_key(std::vector<policy::Override>& layer, const char* key, std::string toml,
             const char* option, bool append = false) {
  layer.push_back({.key = key, .toml = std::move(toml), .option = option, .append = append});
}

// --- policy

Status take_policy(Invocation& typed, std::string_view value) {
  if (value.empty()) return wrong("-p needs a policy name or file");
  typed.policies.push_back({std::string(value)});
  return {};
}

/// TOML allows blanks around "=", and so do the lines that sbx itself suggests.
std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

Status take_set(Invocation& typed, std::string_view value) {
  const auto equals = value.find('=');
  if (equals == std::string_view::npos || trimmed(value.substr(0, equals)).empty())
    return wrong("--set needs KEY=VALUE, got \"" + std::string(value) + "\"",
                 "for example --set 'limits.memory=\"512M\"'");
  typed.sets.push_back({.key = std::string(trimmed(value.substr(0, equals))),
                        .toml = std::string(trimmed(value.substr(equals + 1))),
                        .option = "--set"});
  return {};
}

// --- limits

Status duration(Invocation& typed, std::string_view value, const char* key, const char* option) {
  if (!parse_duration(value))
    return wrong(
        std::string(option) + " needs a time with a unit, got \"" + std::string(value) + "\"",
        "for example 250ms, 30s, 5m or 1h");
  set_key(typed.named, key, policy::quoted(value), option);
  return {};
}

Status size(Invocation& typed, std::string_view value, const char* key, const char* option) {
  if (!parse_bytes(value))
    return wrong(
        std::string(option) + " needs a size with a unit, got \"" + std::string(value) + "\"",
        "for example 64K, 512M or 2G");
  set_key(typed.named, key, policy::quoted(value), option);
  return {};
}

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
  SBX_TRY(size(typed, value, "output.stdout", "--output"));
  return size(typed, value, "output.stderr", "--output");
}

Status take_cpus(Invocation& typed, std::string_view value) {
  double number = 0;
  const auto [end, error] =
      std::from_chars(value.data(), value.data() + value.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || end != value.data() + value.size() || !(number > 0) || number > 1e6)
    return wrong("--cpus needs a number above 0, got \"" + std::string(value) + "\"",
                 "for example 2 or 0.5");
  std::string toml(value);  // TOML wants a digit on both sides of the point
  if (toml.starts_with('.')) toml.insert(0, "0");
  if (toml.ends_with('.')) toml += "0";
  set_key(typed.named, "limits.cpus", std::move(toml), "--cpus");
  return {};
}

Result<std::uint32_t> whole_number(std::string_view value, const char* option) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size())
    return fail(Error{.kind = ErrorKind::usage,
                      .code = "bad-value",
                      .message = std::string(option) + " needs a whole number, got \"" +
                                 std::string(value) + "\""});
  return number;
}

Status take_processes(Invocation& typed, std::string_view value) {
  const auto number = SBX_TRY(whole_number(value, "--processes"));
  set_key(typed.named, "limits.processes", std::to_string(number), "--processes");
  return {};
}

// --- files

Status grant(Invocation& typed, std::string_view value, const char* key, const char* option) {
  const PathOperand path = SBX_TRY(split_path_operand(value, option));
  std::string toml = "[{ source = " + policy::quoted(path.source);
  if (!path.suffix.empty()) toml += ", target = " + policy::quoted(path.suffix);
  set_key(typed.named, key, toml + " }]", option, true);
  return {};
}

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
  set_key(typed.named, "filesystem.workspace.source", policy::quoted(workspace.folder),
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
  set_key(typed.allow_hosts, "network.allow",
          "[" + policy::quoted(policy::with_default_port(value)) + "]", "--allow-host", true);
  return {};
}

// --- environment and input

Status take_env(Invocation& typed, std::string_view value) {
  const auto equals = value.find('=');
  SBX_TRY(check_variable_name(value.substr(0, equals), "--env"));
  if (equals == std::string_view::npos)
    set_key(typed.named, "environment.pass", "[" + policy::quoted(value) + "]", "--env", true);
  else
    typed.variables.push_back(
        {.kind = VariableSource::Kind::assignment, .text = std::string(value)});
  return {};
}

Status take_env_file(Invocation& typed, std::string_view value) {
  if (value.empty()) return wrong("--env-file needs a file");
  typed.variables.push_back({.kind = VariableSource::Kind::file, .text = std::string(value)});
  return {};
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

Status take_env_fd(Invocation& typed, std::string_view value) {
  const int number = SBX_TRY(descriptor(value, "--env-fd"));
  typed.variables.push_back(
      {.kind = VariableSource::Kind::descriptor, .text = {}, .descriptor = number});
  return {};
}

Status take_stdin(Invocation& typed, std::string_view value) {
  if (value == "inherit") {
    typed.request.stdin_mode = plan::StdinMode::inherit;
  } else if (value == "null") {
    typed.request.stdin_mode = plan::StdinMode::null;
  } else if (value.empty()) {
    return wrong("--stdin needs inherit, null or a file");
  } else {
    typed.request.stdin_mode = plan::StdinMode::file;
    typed.request.stdin_file = std::string(value);
  }
  return {};
}

Status take_interactive(Invocation& typed, std::string_view) {
  typed.request.interactive = true;
  return {};
}

// --- what to run

Status take_lang(Invocation& typed, std::string_view value) {
  if (value.empty())
    return wrong("--lang needs the name of a language", "for example --lang python");
  typed.request.language = std::string(value);
  return {};
}

Status take_code(Invocation& typed, std::string_view value) {
  typed.request.code = std::string(value);
  return {};
}

// --- the answer

Status take_json(Invocation& typed, std::string_view) {
  typed.output.json = true;
  return {};
}
Status take_report(Invocation& typed, std::string_view value) {
  if (value.empty()) return wrong("--report needs a file");
  typed.output.report_file = std::string(value);
  return {};
}
Status take_report_fd(Invocation& typed, std::string_view value) {
  typed.output.report_fd = SBX_TRY(descriptor(value, "--report-fd"));
  return {};
}
Status take_github(Invocation& typed, std::string_view) {
  typed.output.github = true;
  return {};
}
Status take_dry_run(Invocation& typed, std::string_view) {
  typed.output.dry_run = true;
  return {};
}
Status take_explain(Invocation& typed, std::string_view) {
  typed.request.explain = true;
  return {};
}
Status take_trace_time(Invocation& typed, std::string_view) {
  typed.output.trace_time = true;
  return {};
}
Status take_require(Invocation& typed, std::string_view value) {
  typed.request.require.emplace_back(value);
  return {};
}
Status take_quiet(Invocation& typed, std::string_view) {
  typed.output.quiet = true;
  return {};
}
Status take_verbose(Invocation& typed, std::string_view) {
  typed.output.verbose = true;
  return {};
}
Status take_color(Invocation& typed, std::string_view value) {
  if (value == "always") typed.output.color = Color::always;
  if (value == "never") typed.output.color = Color::never;
  if (value == "auto") typed.output.color = Color::automatic;
  return {};
}
Status take_help(Invocation& typed, std::string_view) {
  typed.help = true;
  return {};
}

// --- bringing things out

Status take_out(Invocation& typed, std::string_view value) {
  if (value.empty()) return wrong("--out needs a folder");
  typed.bring_out.folder = std::string(value);
  return {};
}
Status take_diff(Invocation& typed, std::string_view) {
  typed.bring_out.diff = true;
  return {};
}
Status take_apply(Invocation& typed, std::string_view value) {
  typed.bring_out.apply = true;
  if (!value.empty()) typed.bring_out.patterns.emplace_back(value);
  return {};
}
Status take_keep(Invocation& typed, std::string_view value) {
  if (value.empty()) return wrong("--keep needs a name", "for example --keep cleanup");
  typed.bring_out.keep = std::string(value);
  return {};
}
Status take_yes(Invocation& typed, std::string_view) {
  typed.bring_out.yes = true;
  return {};
}

constexpr const char* kProgram = "What to run";
constexpr const char* kPolicy = "Policy";
constexpr const char* kLimits = "Limits";
constexpr const char* kFiles = "Files";
constexpr const char* kNetwork = "Network";
constexpr const char* kInput = "Environment and input";
constexpr const char* kChanges = "Bringing things out";
constexpr const char* kAnswer = kAnswerGroup.data();
constexpr auto kOnce = Repeat::last_wins;
constexpr auto kEach = Repeat::each_counts;

constexpr OptionRow kRunOptions[] = {
    {"--lang", "NAME", kProgram, kOnce,
     "The language of the program: decides its interpreter before #! and the file's extension do.",
     take_lang},
    {"-c", "CODE", kProgram, kOnce,
     "Run CODE, a program in the language of --lang. What follows are its arguments.", take_code},
    {"-p,--policy", "POLICY", kPolicy, kEach,
     "A policy by name, or a policy file. May be given several times: later ones win.",
     take_policy},
    {"--set", "KEY=TOML", kPolicy, kEach,
     "Set one key of the policy, as in --set 'limits.memory=\"512M\"'. A list replaces the list.",
     take_set},
    {"--require",
     "memory.cgroup|cpu.cgroup|processes.cgroup|landlock|syscalls.named|network.named|trusted-"
     "policy|all",
     kPolicy, kEach,
     "Refuse to run when this could only be enforced by weaker means, or not at all.",
     take_require},
    {"--timeout", "TIME", kLimits, kOnce, "Wall time: limits.wall_time.", take_timeout},
    {"--cpu-time", "TIME", kLimits, kOnce, "CPU time of all processes together: limits.cpu_time.",
     take_cpu_time},
    {"--cpus", "NUMBER", kLimits, kOnce, "CPUs used at once, fractions allowed: limits.cpus.",
     take_cpus},
    {"--memory", "SIZE", kLimits, kOnce, "Memory of all processes together: limits.memory.",
     take_memory},
    {"--processes", "NUMBER", kLimits, kOnce, "Processes and threads: limits.processes.",
     take_processes},
    {"--disk", "SIZE", kLimits, kOnce,
     "Space for everything the program writes that is not granted: limits.disk.", take_disk},
    {"--output", "SIZE", kLimits, kOnce,
     "Bytes of output, each of stdout and stderr: output.stdout and "
     "output.stderr.",
     take_output},
    {"--workspace", "DIR[:MODE]", kFiles, kOnce,
     "The program's working folder, and how it is given: overlay (changes vanish), read-only, "
     "read-write (changes are real) or empty.",
     take_workspace},
    {"--read", "PATH[:TARGET]", kFiles, kEach,
     "Make a file or folder of the host readable, at TARGET if given. A colon in a name is "
     "written \\:.",
     take_read},
    {"--write", "PATH[:TARGET]", kFiles, kEach,
     "Make a file or folder of the host writable: changes are real, while the program runs.",
     take_write},
    {"--in", "FILE[:TARGET]", kFiles, kEach,
     "Copy a file in before the start, to the working folder or to TARGET. The copy is the "
     "program's: it may change it, and the host's file stays as it is.",
     take_in},
    {"--venv", "DIR", kFiles, kOnce,
     "Use the interpreter and packages of a virtual environment, read-only.", take_venv},
    {"--net", "none|host", kNetwork, kOnce,
     "No network but the sandbox's own loopback, or the host's network.", take_net},
    {"--allow-host", "HOST[:PORT]", kNetwork, kEach,
     "Let the program reach this host: network.allow, with network.mode \"allow-list\".",
     take_allow_host},
    {"--env", "NAME[=VALUE]", kInput, kEach,
     "Pass a variable of the caller on by name, or set it to VALUE (visible in ps: see --env-fd).",
     take_env},
    {"--env-file", "FILE", kInput, kEach,
     "Set variables from lines NAME=VALUE; empty lines and lines that begin with # are skipped.",
     take_env_file},
    {"--env-fd", "N", kInput, kEach,
     "The same from an open descriptor, divided by zero bytes where there are any. For secrets.",
     take_env_fd},
    {"--stdin", "inherit|null|FILE", kInput, kOnce, "What the program reads on standard input.",
     take_stdin},
    {"-i,--interactive", "", kInput, kOnce, "Give the program a terminal of the sandbox's own.",
     take_interactive},
    {"--out", "DIR", kChanges, kOnce,
     "Copy what the program made, and filesystem.outputs.collect means, to a folder at the end.",
     take_out},
    {"--diff", "", kChanges, kOnce,
     "Show on stderr what the program changed in a copy-on-write workspace.", take_diff},
    {"--apply", "[GLOB]", kChanges, kEach,
     "Do the program's changes, or those that GLOB means, to the workspace for real. Shows them "
     "and "
     "asks first. A file that changed on the host meanwhile is a conflict and stays.",
     take_apply},
    {"--yes", "", kChanges, kOnce,
     "Apply without asking, but only what a command that exited with 0 did.", take_yes},
    {"--keep", "NAME", kChanges, kOnce,
     "Keep the changes under a name, to look at and apply them later: see sbx-changes(1).",
     take_keep},
    {"--json", "", kAnswer, kOnce,
     "Write the record to stdout; the program's output stands in it. See sbx-record(5).",
     take_json},
    {"--report", "FILE", kAnswer, kOnce, "Write the record to a file, in one step, at the end.",
     take_report},
    {"--report-fd", "N", kAnswer, kOnce, "Write the record to an open descriptor.", take_report_fd},
    {"--explain", "", kAnswer, kOnce,
     "Name the paths that exist here, were looked for and are not granted, each with the line that "
     "would grant it. The "
     "run is slower. A program can fake what it looks for.",
     take_explain},
    {"--github", "", kAnswer, kOnce,
     "In a GitHub workflow: no line that the program prints is taken for a workflow command, and "
     "what went wrong is an annotation. stderr goes to stdout too.",
     take_github},
    {"--dry-run", "", kAnswer, kOnce, "Print what would be done and why; run nothing.",
     take_dry_run},
    {"--trace-time", "", kAnswer, kOnce, "Print the stages of the start, in microseconds.",
     take_trace_time},
    {"-q,--quiet", "", kAnswer, kOnce, "Say nothing on stderr unless the program can't be run.",
     take_quiet},
    {"-v,--verbose", "", kAnswer, kOnce,
     "Say also what was bound and why, and what is enforced by weaker means.", take_verbose},
    {"--color", "auto|always|never", kAnswer, kOnce, "Colour sbx's own messages.", take_color},
    {"-h,--help", "", kAnswer, kOnce, "Print this help.", take_help},
};

}  // namespace

std::span<const OptionRow> run_options() {
  return kRunOptions;
}

}  // namespace sbx::cli
