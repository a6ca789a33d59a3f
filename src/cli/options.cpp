#include "cli/options.hpp"

#include "cli/take.hpp"

namespace sbx::cli {
namespace {

constexpr const char* kProgram = "What to run";
constexpr const char* kPolicy = "Policy";
constexpr const char* kLimits = "Limits";
constexpr const char* kFiles = "Files";
constexpr const char* kNetwork = "Network";
constexpr const char* kInput = "Environment and input";
constexpr const char* kChanges = "Bringing things out";
constexpr const char* kAnswer = kAnswerGroup.data();
constexpr auto kEach = Repeat::each_counts;

constexpr OptionRow kRunOptions[] = {
    {"--lang", "NAME", kProgram, kOnce,
     "The language of the program: decides its interpreter before #! and the file's extension do.",
     take_lang},
    {"-c", "CODE", kProgram, Repeat::one_value,
     "Run CODE, a program in the language of --lang. What follows are its arguments.", take_code},
    {"--session", "NAME", kProgram, kOnce,
     "Run it as a call of this session, which is started first with this policy if it isn't there. "
     "See sbx-session(1).",
     take_session},
    {"--cwd", "DIR", kProgram, kOnce,
     "With --session, begin in DIR, a directory inside: an absolute path, or one from the "
     "session's "
     "directory on. It is looked up in the sandbox, with the rights of the program.",
     take_cwd},
    {"--cells", "FILE", kProgram, Repeat::one_value,
     "Run the code cells of a notebook, or of a script that is divided by lines # %% (.js: // %%), "
     "one after "
     "the "
     "other in one interpreter. --out DIR writes the notebook with its outputs there.",
     take_cells},
    {"--keep-going", "", kProgram, kOnce,
     "With --cells, go on after a cell that raised an error. The exit status is still that of the "
     "first one.",
     sets<&Invocation::cell, &CellOptions::keep_going>},
    {"--parameter", "NAME=VALUE", kProgram, kEach,
     "With --cells, give a variable this value, in a cell after the one that is tagged "
     "\"parameters\". A VALUE that is JSON is that value, any other is text.",
     take_parameter},
    {"-p,--policy", "POLICY", kPolicy, kEach,
     "A policy by name, or a policy file. May be given several times: later ones win. Without it: "
     "SBX_POLICY, then the policy of ~/.config/sbx/config.toml, then \"default\".",
     take_policy},
    {"--set", "KEY=TOML", kPolicy, kEach,
     "Set one key of the policy, as in --set 'limits.memory=\"512M\"'. A list replaces the list.",
     take_set},
    {"--isolation", "namespaces|auto|landlock", kPolicy, kOnce,
     "How the program is walled off: isolation. By default the policy's, else that of "
     "~/.config/sbx/config.toml, else namespaces. The others are weaker: sbx-security(7).",
     take_isolation},
    {"--require",
     "memory.cgroup|cpu.cgroup|processes.cgroup|landlock|namespaces|own-uid|proc|syscalls.named|"
     "network.named|trusted-policy|all",
     kPolicy, kEach,
     "Refuse to run when this could only be enforced in a weaker way, or not at all.",
     take_require},
    {"--timeout", "TIME", kLimits, kOnce,
     "Wall time: limits.wall_time. By default the policy's, 60s in \"default\".", take_timeout},
    {"--cpu-time", "TIME", kLimits, kOnce,
     "CPU time of all processes together: limits.cpu_time. By default the policy's, 60s in "
     "\"default\".",
     take_cpu_time},
    {"--cpus", "NUMBER", kLimits, kOnce,
     "CPUs used at once, fractions allowed: limits.cpus. By default the policy's, 2 in "
     "\"default\".",
     take_cpus},
    {"--memory", "SIZE", kLimits, kOnce,
     "Memory of all processes together: limits.memory. By default the policy's, 1G in \"default\".",
     take_memory},
    {"--processes", "NUMBER", kLimits, kOnce,
     "Processes and threads: limits.processes. By default the policy's, 128 in \"default\".",
     take_processes},
    {"--disk", "SIZE", kLimits, kOnce,
     "Space for everything the program writes that is not granted: limits.disk. By default the "
     "policy's, 512M in \"default\".",
     take_disk},
    {"--output", "SIZE", kLimits, kOnce,
     "Bytes of output, each of stdout and stderr: output.stdout, output.stderr and output.passed. "
     "By "
     "default the policy's, in \"default\" 1M captured and 256M passed through.",
     take_output},
    {"--workspace", "DIR[:MODE]", kFiles, kOnce,
     "The program's working directory, and how it is given: overlay (changes vanish), read-only, "
     "read-write (changes are real) or empty. Without a mode, the policy's; where that is empty, "
     "one is needed.",
     take_workspace},
    {"--read", "PATH[:TARGET]", kFiles, kEach,
     "Make a file or directory of the host readable, at TARGET if given. A colon in a name is "
     "written \\:.",
     take_read},
    {"--write", "PATH[:TARGET]", kFiles, kEach,
     "Make a file or directory of the host writable: changes are real, while the program runs.",
     take_write},
    {"--in", "FILE[:TARGET]", kFiles, kEach,
     "Copy a file in before the start, to the working directory or to TARGET. The copy is the "
     "program's: it may change it, and the host's file stays as it is.",
     take_in},
    {"--venv", "DIR", kFiles, kOnce,
     "Use the interpreter and packages of a virtual environment, read-only.", take_venv},
    {"--net", "none|host", kNetwork, kOnce,
     "No network but the sandbox's own loopback, or the host's network.", take_net},
    {"--allow-host", "HOST[:PORT]", kNetwork, kEach,
     "Let the program reach this host: network.allow, with network.mode \"allow-list\". Without "
     "PORT: "
     "443.",
     take_allow_host},
    {"--env", "NAME[=VALUE]", kInput, kEach,
     "Pass a variable of the caller on by name, or set it to VALUE (visible in ps: see --env-fd). "
     "A "
     "name that the caller has not set is not passed.",
     take_env},
    {"--env-file", "FILE", kInput, kEach,
     "Set variables from lines NAME=VALUE; empty lines and lines that begin with # are skipped.",
     take_env_file},
    {"--env-fd", "N", kInput, kEach,
     "Like --env-file, from the open descriptor N; entries may end with zero bytes. For secrets.",
     take_env_fd},
    {"--stdin", "inherit|null|FILE", kInput, kOnce, "What the program reads on standard input.",
     take_stdin},
    {"-i,--interactive", "", kInput, kOnce,
     "Give the program a terminal of the sandbox's own; if standard input is not a terminal, "
     "pipes.",
     sets<&Invocation::request, &plan::RunRequest::interactive>},
    {"--out", "DIR", kChanges, kOnce,
     "After the run, copy the files that the program created in its working directory to DIR: all, "
     "or those that match --collect or else filesystem.outputs.collect. What it left elsewhere, as "
     "in /tmp, is not copied.",
     take_out},
    {"--collect", "GLOB", kChanges, kEach,
     "With --out, copy only files that match, created or modified, or that lie in a directory of "
     "this name. Replaces the policy's patterns.",
     take_collect},
    {"--diff", "", kChanges, kOnce,
     "Show on stderr what the program changed. Where the policy's workspace is empty, this option, "
     "--apply and --keep make it a copy-on-write one.",
     sets<&Invocation::bring_out, &changes::BringOutOptions::diff>},
    {"--apply", "[GLOB]", kChanges, kEach,
     "Apply the program's changes (only files matching GLOB, if given) to the workspace. Shows "
     "them "
     "and asks first. A file that changed on the host meanwhile is a conflict and stays.",
     take_apply},
    {"--yes", "", kChanges, kOnce,
     "With --apply, do not ask; apply only if the command exits with status 0.",
     sets<&Invocation::bring_out, &changes::BringOutOptions::yes>},
    {"--keep", "NAME", kChanges, kOnce,
     "Keep the changes under a name, to look at and apply them later: see sbx-changes(1).",
     take_keep},
    {"--json", "", kAnswer, kOnce,
     "Write the record to stdout, with the program's output in it. See sbx-record(5).",
     sets<&Invocation::output, &OutputOptions::json>},
    {"--report", "FILE", kAnswer, kOnce, "Write the record to a file, in one step, at the end.",
     take_report},
    {"--report-fd", "N", kAnswer, kOnce, "Write the record to an open descriptor.", take_report_fd},
    {"--events-fd", "N", kAnswer, kOnce,
     "Write what happens to an open descriptor while it happens, one JSON object a line.",
     take_events_fd},
    {"--explain", "", kAnswer, kOnce,
     "Name the paths that exist here, were looked for and are not granted, each with the line that "
     "would grant it. The "
     "run is slower. A program can fake what it looks for.",
     sets<&Invocation::request, &plan::RunRequest::explain>},
    {"--github", "", kAnswer, kOnce,
     "In a GitHub workflow: no line that the program prints is taken for a workflow command, and "
     "what went wrong is an annotation. stderr goes to stdout too.",
     sets<&Invocation::output, &OutputOptions::github>},
    {"--die-with-parent", "", kAnswer, kOnce,
     "Cancel the run when the process that started sbx ends. Without it a run is cancelled when "
     "the "
     "record goes to a pipe only and its reader has left.",
     sets<&Invocation::die_with_parent>},
    {"--dry-run", "", kAnswer, kOnce,
     "Print what would be done and why; run nothing. To find out what can enforce the budgets, "
     "sbx makes an empty control group and removes it again.",
     sets<&Invocation::output, &OutputOptions::dry_run>},
    {"--trace-time", "", kAnswer, kOnce, "Print the stages of the start, in microseconds.",
     sets<&Invocation::output, &OutputOptions::trace_time>},
    {"-q,--quiet", "", kAnswer, kOnce, "Suppress messages, except errors that prevent the run.",
     sets<&Invocation::output, &OutputOptions::quiet>},
    {"-v,--verbose", "", kAnswer, kOnce,
     "Say also what was bound and why, and list weaker enforcement.",
     sets<&Invocation::output, &OutputOptions::verbose>},
    {"--color", "auto|always|never", kAnswer, kOnce, "Colour sbx's own messages.", take_color},
    {"-h,--help", "", kAnswer, kOnce, "Print this help.", sets<&Invocation::help>},
};

}  // namespace

std::span<const OptionRow> run_options() {
  return kRunOptions;
}

}  // namespace sbx::cli
