#include "cli/guide.hpp"

#include <algorithm>

namespace sbx::cli {
namespace {

constexpr const char* kOther =
    "0 done; 2 the command line is wrong, or names something that is not there; 125 sbx could "
    "not do its job.";
constexpr const char* kOfSession =
    "0 done; 2 the command line is wrong, or there is no such session; 125 sbx could not do its "
    "job.";
constexpr const char* kApplying =
    "0 done; 1 a conflict, a pattern without a match, or the answer was no; 2 the command line "
    "is wrong, or names something that is not there; 125 something could not be read or "
    "written; 128+N signal N stopped it.";
constexpr const char* kShowing =
    "0 done; 1 the patch leaves something out; 2 the command line is wrong, or names something "
    "that is not there; 125 something could not be read.";
constexpr const char* kTransfer =
    "0 done; 1 a part could not be copied; 2 the command line is wrong; 125 sbx could not do "
    "its job.";
constexpr const char* kOfPolicy =
    "0 done; 1 the policy has mistakes; 2 the command line is wrong, or there is no such "
    "policy; 125 sbx could not do its job.";
constexpr const char* kOfProgram =
    "The command's own; 128+N when signal N killed it; 124 wall time; 125 sbx could not do its "
    "job; 126 not executable; 127 not found; 137 memory; 152 CPU time; 153 size; 159 denied "
    "call.";
constexpr const char* kOfCell =
    "0 the cell came to its end; 1 it raised an exception or its interpreter ended; the status "
    "that it asked to exit with; 124 wall time; 125 sbx could not do its job; 137 memory; "
    "152 CPU time; 153 size.";

constexpr const char* kTryRun[] = {
    "sbx run -p data-analysis --out results script.py",
    "sbx run -p strict --timeout 5s -- sh -c 'echo $((6 * 7))'",
    "sbx run --workspace .:overlay --json make test",
    "echo 'print(6*7)' | sbx run --lang python -",
};
constexpr const char* kTryPs[] = {"sbx ps", "sbx ps --json"};
constexpr const char* kTryStop[] = {"sbx stop r_0123456789abcdef", "sbx stop --all"};
constexpr const char* kTryWhy[] = {
    "sbx run --report record.json script.py; sbx why record.json",
    "sbx run --json -- cat script.py | sbx why -",
};
constexpr const char* kTryDoctor[] = {"sbx doctor", "sbx doctor -p ci-untrusted"};
constexpr const char* kTryPolicyList[] = {
    "sbx policy list",
    "sbx policy init --name mine > ~/.config/sbx/policies/mine.toml; sbx policy list",
};
constexpr const char* kTryPolicyShow[] = {"sbx policy show python",
                                          "sbx policy show --origin agent.toml"};
constexpr const char* kTryPolicyCheck[] = {"sbx policy check agent.toml",
                                           "sbx policy check --format github *.toml"};
constexpr const char* kTryPolicyExplain[] = {"sbx policy explain limits.memory",
                                             "sbx policy explain 137"};
constexpr const char* kTryPolicyDiff[] = {"sbx policy diff default agent.toml",
                                          "sbx policy diff --json python data-analysis"};
constexpr const char* kTryPolicySchema[] = {"sbx policy schema > policy.schema.json",
                                            "sbx policy schema | python3 -m json.tool"};
constexpr const char* kTryPolicyInit[] = {
    "sbx policy init --name agent -p agent > agent.toml",
    "sbx policy init --name reports -p data-analysis --read /usr/share --timeout 5m",
};
constexpr const char* kTryPolicyAudit[] = {"sbx policy audit agent.toml",
                                           "sbx policy audit --json web-fetch"};
constexpr const char* kTryStart[] = {"sbx session start work -p agent",
                                     "sbx session start -p data-analysis --memory 2G"};
constexpr const char* kTryExec[] = {"sbx session exec work -- make test",
                                    "sbx session exec -d work -- python3 -m http.server 8000"};
constexpr const char* kTryEval[] = {"sbx session eval work -c 'x = 6'",
                                    "echo 'x * 7' | sbx session eval work --json -"};
constexpr const char* kTryContext[] = {"sbx session context work --lang bash",
                                       "sbx session context work --cwd /tmp --json"};
constexpr const char* kTryClose[] = {"sbx session close work bash-1",
                                     "sbx session close --json work python-2"};
constexpr const char* kTryContexts[] = {"sbx session contexts work",
                                        "sbx session contexts --json work"};
constexpr const char* kTryInterrupt[] = {"sbx session interrupt work python",
                                         "sbx session interrupt work"};
constexpr const char* kTryRestart[] = {"sbx session restart work python",
                                       "sbx session restart work"};
constexpr const char* kTryCalls[] = {"sbx session calls work", "sbx session calls --json work"};
constexpr const char* kTryLogs[] = {"sbx session logs work 2", "sbx session logs -f work 2"};
constexpr const char* kTryWait[] = {"sbx session wait work 2", "sbx session wait --json work 2"};
constexpr const char* kTryKill[] = {"sbx session kill work 2 INT", "sbx session kill work 2"};
constexpr const char* kTrySend[] = {"sbx session send work 2 'print(6 * 7)'",
                                    "seq 100 | sbx session send work 2 - --end"};
constexpr const char* kTryPut[] = {"sbx session put work data.csv",
                                   "sbx session put work data.csv script.py /tmp"};
constexpr const char* kTryGet[] = {"sbx session get work data.csv --out results",
                                   "sbx session get work notes.md script.py --out results"};
constexpr const char* kTryStat[] = {"sbx session stat work /tmp",
                                    "sbx session stat --json work /tmp"};
constexpr const char* kTryMkdir[] = {"sbx session mkdir work /tmp/out",
                                     "sbx session mkdir work /tmp/a/b"};
constexpr const char* kTryMv[] = {"sbx session mv work /tmp/a /tmp/c",
                                  "sbx session mv --json work /tmp/out /tmp/made"};
constexpr const char* kTryRm[] = {"sbx session rm -r work /tmp/c",
                                  "sbx session rm -r --json work /tmp/made"};
constexpr const char* kTryLs[] = {"sbx session ls work", "sbx session ls work /tmp"};
constexpr const char* kTrySessionChanges[] = {"sbx session changes work",
                                              "sbx session changes --json work"};
constexpr const char* kTrySessionDiff[] = {"sbx session diff work",
                                           "sbx session diff --patch work > work.patch"};
constexpr const char* kTrySessionApply[] = {"sbx session apply --yes work '*.md'",
                                            "sbx session apply --yes work"};
constexpr const char* kTrySessionKeep[] = {"sbx session keep work monday",
                                           "sbx session keep --json work tuesday"};
constexpr const char* kTrySessionList[] = {"sbx session list", "sbx session list --json"};
constexpr const char* kTrySessionShow[] = {"sbx session show work", "sbx session show --json work"};
constexpr const char* kTryStats[] = {"sbx session stats work", "sbx session stats --json work"};
constexpr const char* kTryExtend[] = {"sbx session extend work 2h",
                                      "sbx session extend --json work 30m"};
constexpr const char* kTrySessionStop[] = {"sbx session stop --keep wednesday work",
                                           "sbx session stop --all"};
constexpr const char* kTryMcp[] = {"sbx mcp -p data-analysis",
                                   "sbx mcp -p agent --workspace .:read-only"};
constexpr const char* kTryMcpTools[] = {"sbx mcp tools -p data-analysis", "sbx mcp tools --sha256"};
constexpr const char* kTryMcpInstall[] = {
    "sbx mcp install claude --replace-shell",
    "sbx mcp install codex --print -- -p data-analysis",
};
constexpr const char* kTryMcpRemove[] = {"sbx mcp remove claude",
                                         "sbx mcp remove gemini --replace-shell"};
constexpr const char* kTryMcpCheck[] = {"sbx mcp check claude",
                                        "sbx mcp check opencode --scope project --yes"};
constexpr const char* kTryChangesList[] = {"sbx changes list", "sbx changes list --json"};
constexpr const char* kTryChangesShow[] = {"sbx changes show monday",
                                           "sbx changes show --json monday"};
constexpr const char* kTryChangesDiff[] = {"sbx changes diff monday",
                                           "sbx changes diff --patch monday > monday.patch"};
constexpr const char* kTryChangesApply[] = {"sbx changes apply --yes monday '*.md'",
                                            "sbx changes apply --yes monday"};
constexpr const char* kTryDrop[] = {"sbx changes drop monday",
                                    "sbx changes drop tuesday wednesday"};
constexpr const char* kTryCompletions[] = {
    "sbx completions bash > ~/.local/share/bash-completion/completions/sbx",
    "sbx completions fish > ~/.config/fish/completions/sbx.fish",
};
constexpr const char* kTryHelp[] = {"sbx help run", "sbx help session"};

constexpr Guide kGuides[] = {
    {"run", kTryRun, kOfProgram},
    {"ps", kTryPs, kOther},
    {"stop", kTryStop, kOther},
    {"why", kTryWhy, kOther},
    {"doctor", kTryDoctor,
     "0 programs can be run here, under each policy that was named; 1 they can't; 2 the command "
     "line is wrong, or there is no such policy; 125 sbx could not do its job."},
    {"policy list", kTryPolicyList, kOther},
    {"policy show", kTryPolicyShow, kOfPolicy},
    {"policy check", kTryPolicyCheck,
     "0 every file is good; 1 a file has mistakes, or is not there; 2 the command line is "
     "wrong; 125 sbx could not do its job."},
    {"policy explain", kTryPolicyExplain, kOther},
    {"policy diff", kTryPolicyDiff,
     "0 the two do the same; 1 they differ, or one has mistakes; 2 the command line is wrong, "
     "or there is no such policy; 125 sbx could not do its job."},
    {"policy schema", kTryPolicySchema, kOther},
    {"policy init", kTryPolicyInit, kOther},
    {"policy audit", kTryPolicyAudit, kOfPolicy},
    {"session start", kTryStart, kOfSession},
    {"session exec", kTryExec, kOfProgram},
    {"session eval", kTryEval, kOfCell},
    {"session context", kTryContext, kOfSession},
    {"session close", kTryClose, kOfSession},
    {"session contexts", kTryContexts, kOfSession},
    {"session interrupt", kTryInterrupt, kOfSession},
    {"session restart", kTryRestart, kOfSession},
    {"session calls", kTryCalls, kOfSession},
    {"session logs", kTryLogs, kOfSession},
    {"session wait", kTryWait, kOfProgram},
    {"session kill", kTryKill, kOfSession},
    {"session send", kTrySend, kOfSession},
    {"session put", kTryPut, kTransfer},
    {"session get", kTryGet, kTransfer},
    {"session ls", kTryLs, kTransfer},
    {"session stat", kTryStat, kOfSession},
    {"session mkdir", kTryMkdir, kOfSession},
    {"session mv", kTryMv, kOfSession},
    {"session rm", kTryRm, kOfSession},
    {"session changes", kTrySessionChanges, kOfSession},
    {"session diff", kTrySessionDiff, kShowing},
    {"session apply", kTrySessionApply, kApplying},
    {"session keep", kTrySessionKeep, kOfSession},
    {"session list", kTrySessionList, kOther},
    {"session show", kTrySessionShow, kOfSession},
    {"session stats", kTryStats, kOfSession},
    {"session extend", kTryExtend, kOfSession},
    {"session stop", kTrySessionStop, kOfSession},
    {"mcp", kTryMcp,
     "0 the client has ended it; 2 the command line is wrong; 125 the policy can't be enforced "
     "here, "
     "or sbx could not do its job."},
    {"mcp tools", kTryMcpTools, kOther},
    {"mcp install", kTryMcpInstall,
     "0 done, or there is nothing to change; 1 a file can't be changed, and the text to paste is "
     "on "
     "stdout; 2 the command line or the policy is wrong; 125 sbx could not do its job."},
    {"mcp remove", kTryMcpRemove,
     "0 done, or there is nothing to remove; 1 a file can't be changed, or has what sbx did not "
     "write; 2 the command line is wrong; 125 sbx could not do its job."},
    {"mcp check", kTryMcpCheck,
     "0 the server runs code; 1 it is not registered, or does not; 2 the command line is wrong; "
     "125 "
     "sbx could not do its job."},
    {"changes list", kTryChangesList, kOther},
    {"changes show", kTryChangesShow, kOther},
    {"changes diff", kTryChangesDiff, kShowing},
    {"changes apply", kTryChangesApply, kApplying},
    {"changes drop", kTryDrop, kOther},
    {"completions", kTryCompletions, kOther},
    {"help", kTryHelp, kOther},
};

constexpr const char* kListOfRunning[] = {"run", "ps", "stop", "why"};
constexpr const char* kListOfSessions[] = {
    "session start", "session exec", "session eval",   "session list", "session show",
    "session stats", "session stop", "session extend", "mcp",          "mcp tools",
    "mcp install",   "mcp remove",   "mcp check"};
constexpr const char* kListOfBackground[] = {
    "session calls",   "session logs",     "session wait",      "session kill",    "session send",
    "session context", "session contexts", "session interrupt", "session restart", "session close"};
constexpr const char* kListOfFiles[] = {"session put",   "session get",     "session ls",
                                        "session stat",  "session mkdir",   "session mv",
                                        "session rm",    "session changes", "session diff",
                                        "session apply", "session keep"};
constexpr const char* kListOfChanges[] = {"changes list", "changes show", "changes diff",
                                          "changes apply", "changes drop"};
constexpr const char* kListOfPolicies[] = {"policy list",    "policy show", "policy check",
                                           "policy explain", "policy diff", "policy schema",
                                           "policy init",    "policy audit"};
constexpr const char* kListOfMachine[] = {"doctor", "completions", "help"};

constexpr HelpGroup kGroups[] = {
    {"Run a program", kListOfRunning},
    {"Keep a sandbox for many calls", kListOfSessions},
    {"Calls in the background, and interpreters, of a session", kListOfBackground},
    {"Files and changes of a session", kListOfFiles},
    {"Changes that runs have kept", kListOfChanges},
    {"Policies", kListOfPolicies},
    {"This machine and this program", kListOfMachine},
};

}  // namespace

std::span<const HelpGroup> help_groups() {
  return kGroups;
}

const Guide* guide_of(std::string_view command) {
  const auto* const found =
      std::ranges::find_if(kGuides, [&](const Guide& guide) { return command == guide.command; });
  return found == std::end(kGuides) ? nullptr : found;
}

}  // namespace sbx::cli
