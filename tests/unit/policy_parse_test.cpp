#include <array>

#include "policy/keys.hpp"
#include "policy_fixture.hpp"

namespace sbx::policy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Every key of schema 1 at a value that is not its default.
constexpr std::string_view kEveryKey = R"(schema = 1
name = "everything"
description = "all of it"
extends = []
locked = true
enforcement = "best-effort"

[interpreters]
allow = ["python3", "node"]
venv = "venv"
[interpreters.extensions]
py = ["python3.12", "python3"]
unset = ["php"]

[filesystem]
system = "/srv/debian"
read = ["/srv/models", { source = "~/data", target = "/data", optional = true }]
write = ["out"]
deny = ["**/.env", "**/.env.*", "~/.ssh", "./secret"]
sockets = ["/run/service.sock"]
scan = 1000
landlock = false
seed = ["~/.cache/matplotlib/fontlist-*.json"]
[filesystem.workspace]
source = "../other"
mode = "overlay"
[filesystem.outputs]
collect = ["*.png", "out/**"]
max_bytes = "1M"
max_files = 10
max_depth = 2

[environment]
pass = ["TZ"]
set = { MPLBACKEND = "Agg", EMPTY = "" }

[syscalls]
base = "minimal"
allow = ["@debug", "personality"]
deny = ["@process-spawn"]
denied = "kill"
[[syscalls.rule]]
name = "socket"
when = { arg = 0, op = "in", value = ["AF_UNIX", "AF_INET", 10] }
action = "allow"
reason = "sockets that the network section governs"
[[syscalls.rule]]
name = "clone"
when = { arg = 0, op = "masked-eq", value = ["CLONE_NEWUSER|CLONE_NEWNS", 0] }
action = "deny"

[network]
mode = "allow-list"
allow = ["api.example.com:443", "*.example.org:443", "10.1.0.0/16:5432", "udp://ntp.example.org:123", "[2001:db8::/32]:443"]
private = true
match_sni = false
publish = ["127.0.0.1:8080:80"]
named = false

[limits]
wall_time = "1.5s"
cpu_time = "250ms"
cpus = 2.5
memory = "1G"
processes = 1
open_files = 2000
file_size = "0B"
disk = "1.5M"
disk_files = 64
disk_on = "folder"
grace = "3s"

[output]
stdout = "64K"
stderr = "0B"
exceed = "kill"
)";

TEST(PolicyParse, TakesEveryKey) {
  const Policy policy = parsed(kEveryKey);
  EXPECT_EQ(policy.name.value, "everything");
  EXPECT_EQ(policy.description.value, "all of it");
  EXPECT_TRUE(policy.locked.value);
  EXPECT_EQ(policy.enforcement.value, Enforcement::best_effort);
  EXPECT_THAT(values(policy.interpreters.allow), ElementsAre("python3", "node"));
  EXPECT_EQ(policy.interpreters.venv.value, "/home/me/work/venv");
  EXPECT_THAT(policy.interpreters.extensions.at("py").value, ElementsAre("python3.12", "python3"));
  EXPECT_FALSE(policy.interpreters.extensions.contains("php"));
  EXPECT_EQ(policy.filesystem.system.value, "/srv/debian");
  EXPECT_THAT(
      values(policy.filesystem.read),
      ElementsAre(PathGrant{.source = "/srv/models"},
                  PathGrant{.source = "/home/me/data", .target = "/data", .optional = true}));
  EXPECT_THAT(values(policy.filesystem.write),
              ElementsAre(PathGrant{.source = "/home/me/work/out"}));
  EXPECT_THAT(values(policy.filesystem.deny),
              ElementsAre("**/.env", "**/.env.*", "/home/me/.ssh", "/home/me/work/secret"));
  EXPECT_THAT(values(policy.filesystem.sockets), ElementsAre("/run/service.sock"));
  EXPECT_EQ(policy.filesystem.scan.value, 1000U);
  EXPECT_FALSE(policy.filesystem.landlock.value);
  EXPECT_THAT(values(policy.filesystem.seed),
              ElementsAre("/home/me/.cache/matplotlib/fontlist-*.json"));
  EXPECT_EQ(policy.filesystem.workspace.source.value, "../other");
  EXPECT_EQ(policy.filesystem.workspace.mode.value, WorkspaceMode::overlay);
  EXPECT_THAT(values(policy.filesystem.outputs.collect), ElementsAre("*.png", "out/**"));
  EXPECT_EQ(policy.filesystem.outputs.max_bytes.value, Bytes{1 << 20});
  EXPECT_EQ(policy.filesystem.outputs.max_files.value, 10U);
  EXPECT_EQ(policy.filesystem.outputs.max_depth.value, 2U);
  EXPECT_THAT(values(policy.environment.pass), ElementsAre("TZ"));
  EXPECT_EQ(policy.environment.set.at("MPLBACKEND").value, "Agg");
  EXPECT_EQ(policy.environment.set.at("EMPTY").value, "");
  EXPECT_EQ(policy.syscalls.base.value, SyscallBase::minimal);
  EXPECT_THAT(values(policy.syscalls.allow), ElementsAre("@debug", "personality"));
  EXPECT_THAT(values(policy.syscalls.deny), ElementsAre("@process-spawn"));
  EXPECT_EQ(policy.syscalls.denied.value, DeniedCall::kill);
  EXPECT_EQ(policy.network.mode.value, NetworkMode::allow_list);
  EXPECT_EQ(policy.network.allow.size(), 5U);
  EXPECT_TRUE(policy.network.private_.value);
  EXPECT_FALSE(policy.network.match_sni.value);
  EXPECT_THAT(values(policy.network.publish), ElementsAre("127.0.0.1:8080:80"));
  EXPECT_FALSE(policy.network.named.value);
  EXPECT_EQ(policy.limits.wall_time.value, Milliseconds{1500});
  EXPECT_EQ(policy.limits.cpu_time.value, Milliseconds{250});
  EXPECT_EQ(policy.limits.cpus.value, 2.5);
  EXPECT_EQ(policy.limits.memory.value, Bytes{1ULL << 30});
  EXPECT_EQ(policy.limits.processes.value, 1U);
  EXPECT_EQ(policy.limits.open_files.value, 2000U);
  EXPECT_EQ(policy.limits.file_size.value, Bytes{0});
  EXPECT_EQ(policy.limits.disk.value, Bytes{3 << 19});
  EXPECT_EQ(policy.limits.disk_files.value, 64U);
  EXPECT_EQ(policy.limits.disk_on.value, DiskOn::folder);
  EXPECT_EQ(policy.limits.grace.value, Milliseconds{3000});
  EXPECT_EQ(policy.output.stdout_.value, Bytes{65'536});
  EXPECT_EQ(policy.output.stderr_.value, Bytes{0});
  EXPECT_EQ(policy.output.exceed.value, Exceed::kill);
}

TEST(PolicyParse, TextOfEveryKeyLeavesNoKeyOut) {
  for (const Key& key : keys()) {
    const auto dot = key.name.rfind('.');
    const std::string last(key.name.substr(dot == std::string_view::npos ? 0 : dot + 1));
    const bool stands = kEveryKey.find("\n" + last + " = ") != std::string_view::npos ||
                        kEveryKey.starts_with(last + " = ") ||
                        kEveryKey.find("[" + std::string(key.name) + "]") != std::string_view::npos;
    EXPECT_TRUE(stands) << key.name;
  }
}

TEST(PolicyParse, EachValueKnowsItsPlace) {
  const Policy policy = parsed(kEveryKey);
  EXPECT_EQ(policy.limits.wall_time.origin, (Origin{"p.toml", 61, 13, Layer::file}));
  EXPECT_EQ(policy.filesystem.read.at(1).origin.text(), "p.toml:17");
  EXPECT_EQ(policy.filesystem.read.at(1).origin.column, 24);
  EXPECT_EQ(policy.environment.set.at("MPLBACKEND").origin.text(), "p.toml:35");
  EXPECT_EQ(policy.syscalls.rules.at(1).origin.text(), "p.toml:47");
}

TEST(PolicyParse, RulesKeepNumbersAndWords) {
  const Policy policy = parsed(kEveryKey);
  ASSERT_EQ(policy.syscalls.rules.size(), 2U);
  const SyscallRule& sockets = policy.syscalls.rules[0].value;
  EXPECT_EQ(sockets.name, "socket");
  EXPECT_EQ(sockets.argument, 0);
  EXPECT_EQ(sockets.op, RuleOperator::in);
  EXPECT_THAT(sockets.values, ElementsAre(1U, 2U, 10U));
  EXPECT_THAT(sockets.symbols, ElementsAre("AF_UNIX", "AF_INET", "10"));
  EXPECT_EQ(sockets.action, RuleAction::allow);
  EXPECT_EQ(sockets.reason, "sockets that the network section governs");
  const SyscallRule& clone = policy.syscalls.rules[1].value;
  EXPECT_EQ(clone.op, RuleOperator::masked_eq);
  EXPECT_THAT(clone.values, ElementsAre(0x10020000U, 0U));
  EXPECT_EQ(clone.action, RuleAction::deny);
}

TEST(PolicyParse, RuleWithoutConditionHoldsForEveryCall) {
  const Policy policy = parsed("[[syscalls.rule]]\nname = \"mount\"\naction = \"deny\"\n");
  EXPECT_FALSE(policy.syscalls.rules.at(0).value.has_condition);
}

TEST(PolicyParse, NegativeRuleValueIsARegister) {
  const Policy policy = parsed(
      "[[syscalls.rule]]\nname = \"x\"\nwhen = { arg = 5, op = \"eq\", value = -1 }\naction = "
      "\"deny\"\n");
  EXPECT_THAT(policy.syscalls.rules.at(0).value.values, ElementsAre(~0ULL));
}

TEST(PolicyParse, FindsEveryMistakeOfAWellFormedTextInItsOrder) {
  const Findings findings = findings_of(
      "memroy = 1\n[limits]\nmemory = 5\ntimeout = \"1s\"\nwall_time = \"1 s\"\n[nett]\nx = 1\n");
  EXPECT_THAT(codes(findings),
              ElementsAre("unknown-key", "wrong-type", "unknown-key", "bad-unit", "unknown-key"));
  int line = 0;
  for (const Error& error : findings) {
    EXPECT_GT(error.origin->line, line) << error.message;
    line = error.origin->line;
    EXPECT_EQ(error.kind, ErrorKind::policy);
    EXPECT_EQ(error.origin->file, "p.toml");
    EXPECT_FALSE(error.source_line.empty());
    EXPECT_FALSE(error.hint.empty()) << error.message;
  }
}

struct Mistake {
  std::string_view text;
  std::string_view code;
  int line;
  int column;
  std::string_view message;
  std::string_view hint;
};

void PrintTo(const Mistake& mistake, std::ostream* out) {
  *out << testing::PrintToString(std::string(mistake.text));
}

class PolicyMistake : public testing::TestWithParam<Mistake> {};

TEST_P(PolicyMistake, IsToldWithPlaceValueAndCure) {
  const Mistake& mistake = GetParam();
  const Findings findings = findings_of(mistake.text);
  ASSERT_THAT(codes(findings), ElementsAre(std::string(mistake.code))) << mistake.text;
  const Error& error = findings.front();
  EXPECT_EQ(error.origin->line, mistake.line) << mistake.text;
  EXPECT_EQ(error.origin->column, mistake.column) << mistake.text;
  EXPECT_THAT(error.message, HasSubstr(std::string(mistake.message)));
  EXPECT_THAT(error.hint, HasSubstr(std::string(mistake.hint)));
  EXPECT_THAT(std::string(mistake.text), HasSubstr(error.source_line));
}

constexpr auto kMistakes = std::to_array<Mistake>({
    // text itself
    {"a = ", "toml-syntax", 1, 5, "end-of-file", "quotes"},
    {"[limits]\nwall_time = 30s", "toml-syntax", 2, 15, "expected digit", "quotes"},
    {"[limits]\ncpus = 1\ncpus = 2", "duplicate-key", 3, 8, "cannot redefine", "stands once"},
    {"[limits]\n[limits]", "duplicate-key", 2, 1, "cannot redefine", "stands once"},
    {"name = \"\xff\"", "invalid-utf8", 1, 8, "invalid utf-8", "UTF-8"},
    // keys
    {"memroy = 1", "unknown-key", 1, 1, "unknown key \"memroy\"",
     "did you mean \"limits.memory\"?"},
    {"[limits]\n  memroy = \"1G\"", "unknown-key", 2, 3, "\"limits.memroy\"",
     "did you mean \"memory\"?"},
    {"[limits]\nxyzzy = 1", "unknown-key", 2, 1, "\"limits.xyzzy\"", "wall_time, cpu_time"},
    {"[netwrk]\nmode = \"none\"", "unknown-key", 1, 2, "\"netwrk\"", "did you mean \"network\"?"},
    {"limits = 5", "wrong-type", 1, 10, "limits is a table, not an integer", "wall_time"},
    {"schema = 2", "unsupported-schema", 1, 10, "schema 2", "schema = 1"},
    {"schema = \"1\"", "unsupported-schema", 1, 10, "schema \"1\"", "schema = 1"},
    {"extends = 5", "wrong-type", 1, 11, "extends: 5", "extends = \"default\""},
    // scalars
    {"locked = \"true\"", "wrong-type", 1, 10, "locked: \"true\" is a string, not true or false",
     "write locked = true"},
    {"name = 5", "wrong-type", 1, 8, "name: 5 is an integer, not a string", "write name ="},
    {"[limits]\nmemory = 512", "wrong-type", 2, 10, "limits.memory: 512 is an integer, not a size",
     "write memory = \"512M\""},
    {"[limits]\nmemory = \"512MB\"", "bad-unit", 2, 10, "\"512MB\" is not a size",
     "write memory = \"512M\"; the units are B, K, M, G, T"},
    {"[limits]\nmemory = \"1 gib\"", "bad-unit", 2, 10, "\"1 gib\"", "write memory = \"1G\""},
    {"[limits]\nmemory = \"lots\"", "bad-unit", 2, 10, "\"lots\"", "write memory = \"512M\""},
    {"[limits]\nmemory = \"1K\"", "out-of-range", 2, 10, "\"1K\" is not from 1M to 1024T",
     "write memory = \"1M\""},
    {"[limits]\nmemory = \"99999999999999999999G\"", "out-of-range", 2, 10,
     "is not from 1M to 1024T", "write memory = \"1024T\""},
    {"[limits]\nwall_time = 30", "wrong-type", 2, 13, "30 is an integer, not a duration",
     "write wall_time = \"30s\""},
    {"[limits]\nwall_time = \"5 minutes\"", "bad-unit", 2, 13, "\"5 minutes\" is not a duration",
     "write wall_time = \"5m\""},
    {"[limits]\nwall_time = \"1d\"", "bad-unit", 2, 13, "\"1d\"", "write wall_time = \"24h\""},
    {"[limits]\nwall_time = \"0s\"", "out-of-range", 2, 13, "from 1ms to 8760h",
     "write wall_time = \"1ms\""},
    {"[limits]\ncpus = \"two\"", "wrong-type", 2, 8, "\"two\" is a string, not a number",
     "write cpus = 1.5"},
    {"[limits]\ncpus = nan", "out-of-range", 2, 8, "nan is not from 0.01 to 4096", "write cpus"},
    {"[limits]\ncpus = inf", "out-of-range", 2, 8, "inf", "write cpus"},
    {"[limits]\ncpus = 0", "out-of-range", 2, 8, "0 is not from 0.01", "write cpus = 0.01"},
    {"[limits]\nprocesses = \"128\"", "wrong-type", 2, 13, "\"128\" is a string, not an integer",
     "write processes = 128"},
    {"[limits]\nprocesses = -1", "out-of-range", 2, 13, "-1 is not from 1 to",
     "write processes = 1"},
    {"[limits]\nprocesses = 1.5", "wrong-type", 2, 13, "1.5 is a number, not an integer",
     "write processes"},
    {"[filesystem.outputs]\nmax_files = -1", "out-of-range", 2, 13, "-1 is negative",
     "max_files = 0"},
    {"[limits]\ndisk = \"0B\"", "out-of-range", 2, 8, "from 64K", "write disk = \"64K\""},
    {"[network]\nmode = \"allowlist\"", "unknown-word", 2, 8,
     "\"allowlist\" is not one of \"none\", \"allow-list\", \"host\"",
     "did you mean \"allow-list\"?"},
    {"[network]\nmode = false", "wrong-type", 2, 8, "false is a boolean, not a word",
     "write mode = \"none\""},
    {"[network]\nmode = 1979-05-27", "wrong-type", 2, 8, "a date", "write mode"},
    {"name = \"a\\u0000b\"", "nul-in-text", 1, 8, "has a NUL", "kernel"},
    // lists
    {"[filesystem]\nread = \"/srv\"", "wrong-type", 2, 8,
     "\"/srv\" is a string, not a list of paths", "write read = [\"/srv\"]"},
    {"[filesystem]\nread = [5]", "wrong-type", 2, 9, "5 is an integer, not a string", "quotes"},
    {"[filesystem]\nread = { replac = [] }", "wrong-type", 2, 8, "{…} is a table", "write read"},
    {"[filesystem]\nread = { replace = [], more = 1 }", "unknown-key", 2, 24,
     "filesystem.read.more", "replace"},
    {"[environment]\npass = [\"A=B\"]", "bad-variable", 2, 9, "\"A=B\" is not the name",
     "environment.set"},
    {"[environment]\npass = [\"\"]", "empty-text", 2, 9, "\"\" says nothing", ""},
    {"[interpreters]\nallow = [\"python3 -c\"]", "bad-command", 2, 10, "\"python3 -c\"",
     "one name"},
    {"[syscalls]\nallow = [\"Ptrace\"]", "bad-call-name", 2, 10, "\"Ptrace\"", "@debug"},
    {"[syscalls]\ndeny = [\"@\"]", "bad-call-name", 2, 9, "\"@\"", "@debug"},
    {"[network]\nallow = [\"https://example.com\"]", "bad-destination", 2, 10, "is a URL",
     "\"example.com:443\""},
    {"[network]\nallow = [\"example.com:70000\"]", "bad-destination", 2, 10, "no port",
     "8000-8100"},
    {"[network]\nallow = [\"exa mple.com:1\"]", "bad-destination", 2, 10, "has a blank",
     "HOST:PORT"},
    {"[network]\nallow = [\"10.0.0.0/33:1\"]", "bad-destination", 2, 10, "no prefix length",
     "\"10.0.0.0/8:443\""},
    {"[network]\nallow = [\"[::1:443\"]", "bad-destination", 2, 10, "closing bracket", "HOST:PORT"},
    {"[network]\nallow = [\"a.*.com:443\"]", "bad-destination", 2, 10, "has a *",
     "\"*.example.org:443\""},
    {"[network]\nallow = [\"example.com:53\"]", "bad-destination", 2, 10, "port 53",
     "without a rule"},
    {"[network]\npublish = [\"0.0.0.0:80:80\"]", "bad-publication", 2, 12, "loopback",
     "127.0.0.1:8080:80"},
    {"[filesystem.outputs]\ncollect = [\"../x\"]", "bad-pattern", 2, 12, "leaves the workspace",
     "out/**"},
    {"[filesystem]\ndeny = [\"secret.pem\"]", "bad-pattern", 2, 9, "every file of that name",
     "\"**/secret.pem\""},
    {"[filesystem]\ndeny = [\"**/\"]", "bad-pattern", 2, 9, "names nothing", "**/.env"},
    // paths and grants
    {"[filesystem]\nread = [\"$HOME/x\"]", "bad-path", 2, 9, "variables are not expanded", "~"},
    {"[filesystem]\nread = [\"~bob/x\"]", "bad-path", 2, 9, "another user", "write the path out"},
    {"[filesystem]\nread = [\"/\"]", "forbidden-grant", 2, 9, "\"/\" can't be granted",
     "folders that are needed"},
    {"[filesystem]\nwrite = [\"/home/../proc/self\"]", "forbidden-grant", 2, 10,
     "\"/proc/self\" can't be granted", "its own /proc"},
    {"[filesystem]\nread = [\"/sys\"]", "forbidden-grant", 2, 9, "\"/sys\"", "no /sys"},
    {"[filesystem]\nread = [\"/dev/sda\"]", "forbidden-grant", 2, 9, "\"/dev/sda\"",
     "its own /dev"},
    {"[filesystem]\nread = [{ source = \"/srv\", target = \"/dev\" }]", "forbidden-grant", 2, 37,
     "\"/dev\"", "its own /dev"},
    {"[filesystem]\nread = [{ source = \"/srv\", target = \"x\" }]", "bad-path", 2, 37,
     "target \"x\" is not absolute", "\"/data\""},
    {"[filesystem]\nread = [{ target = \"/x\" }]", "missing-key", 2, 9, "without source",
     "source ="},
    {"[filesystem]\nread = [{ source = \"/x\", optional = 1 }]", "wrong-type", 2, 37,
     "optional = 1", "optional = true"},
    {"[filesystem]\nread = [{ source = \"/x\", sorce = \"/y\" }]", "unknown-key", 2, 26,
     "filesystem.read.sorce", "did you mean \"source\"?"},
    {"[filesystem]\nsystem = \"/\"", "forbidden-grant", 2, 10, "\"/\" can't be granted", ""},
    {"[filesystem.workspace]\nsource = \"~bob\"", "bad-path", 2, 10, "another user", ""},
    // tables
    {"[environment]\nset = [\"A=B\"]", "wrong-type", 2, 7, "is a list, not a table of strings",
     "{ NAME = \"value\" }"},
    {"[environment.set]\nA = 5", "wrong-type", 2, 5, "5 is an integer, not a string", "quotes"},
    {"[environment.set]\n\"A B\" = \"x\"", "bad-variable", 2, 1, "\"A B\"", "letters"},
    {"[environment.set]\nA = \"x\\u0000\"", "nul-in-text", 2, 5, "NUL", ""},
    {"[interpreters.extensions]\npy = \"python3\"", "wrong-type", 2, 6,
     "not a list of program names", "write py = [\"python3\"]"},
    {"[interpreters.extensions]\npy = []", "wrong-type", 2, 6, "not a list of program names",
     "python3"},
    {"[interpreters.extensions]\n\".py\" = [\"python3\"]", "bad-extension", 2, 1, "\".py\"",
     "without the dot"},
    // rules
    {"[syscalls]\nrule = [5]", "wrong-type", 2, 9, "a rule is a table", "[[syscalls.rule]]"},
    {"[[syscalls.rule]]\naction = \"deny\"", "missing-key", 1, 1, "without name", "name = "},
    {"[[syscalls.rule]]\nname = \"x\"", "missing-key", 1, 1, "without action", "\"deny\""},
    {"[[syscalls.rule]]\nname = \"@debug\"\naction = \"deny\"", "bad-call-name", 2, 8, "is a group",
     "syscalls.deny"},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"alow\"", "unknown-word", 3, 10,
     "action = \"alow\"", "did you mean \"allow\"?"},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"deny\"\nreason = 1", "wrong-type", 4, 10,
     "reason = 1", "reason"},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"deny\"\nwhy = \"\"", "unknown-key", 4, 1,
     "syscalls.rule.why", "reason"},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"deny\"\nwhen = 1", "wrong-type", 4, 8,
     "when is a table", "arg = 0"},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"deny\"\nwhen = { op = \"eq\", value = 1 }",
     "missing-key", 4, 8, "without arg", "arg = 0"},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"deny\"\nwhen = { arg = 6, op = \"eq\", value = 1 "
     "}",
     "out-of-range", 4, 16, "arg = 6", "first"},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"deny\"\nwhen = { arg = 0, op = \"eq\" }",
     "missing-key", 4, 8, "without value", "value"},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"deny\"\nwhen = { arg = 0, op = \"eq\", value = "
     "[1] }",
     "wrong-type", 4, 38, "does not fit", "op = \"in\""},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"deny\"\nwhen = { arg = 0, op = \"in\", value = 1 "
     "}",
     "wrong-type", 4, 38, "does not fit", "a list"},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"deny\"\nwhen = { arg = 0, op = \"in\", value = "
     "[] }",
     "wrong-type", 4, 38, "does not fit", "a list"},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"deny\"\nwhen = { arg = 0, op = \"masked-eq\", "
     "value = [1] }",
     "wrong-type", 4, 45, "a mask and a value", ""},
    {"[[syscalls.rule]]\nname = \"x\"\naction = \"deny\"\nwhen = { arg = 0, op = \"eq\", value = "
     "\"AF_UNX\" }",
     "unknown-symbol", 4, 38, "\"AF_UNX\"", "did you mean \"AF_UNIX\"?"},
});
INSTANTIATE_TEST_SUITE_P(Each, PolicyMistake, testing::ValuesIn(kMistakes));

TEST(PolicyParse, CuresThatAreTomlParse) {
  for (const Mistake& mistake : kMistakes) {
    for (const Error& error : findings_of(mistake.text)) {
      const bool simple =
          error.code == "wrong-type" || error.code == "bad-unit" || error.code == "out-of-range";
      if (!simple || !error.hint.starts_with("write ") ||
          error.message.find("rule") != std::string::npos)
        continue;
      std::string line = error.hint.substr(6, error.hint.find(';') - 6);
      if (!error.message.starts_with("limits.")) continue;
      EXPECT_TRUE(parse_text("[limits]\n" + line, "p.toml", plain_context())) << line;
    }
  }
}

TEST(PolicyParse, AcceptsEveryFormOfADestination) {
  const Policy policy = parsed(
      "[network]\nallow = [\"example.com:443\", \"a-b.example.com:54-65535\", \"*.x.org:*\", "
      "\"10.0.0.1:80\", \"[::1]:80\", \"udp://[fd00::/8]:5\"]");
  EXPECT_EQ(policy.network.allow.size(), 6U);
}

TEST(PolicyParse, HasNoFindingsForAnEmptyText) {
  EXPECT_TRUE(parse_text("", "p.toml", plain_context()));
}

TEST(PolicyParse, CallsAPolicyWithoutANameByItsFile) {
  EXPECT_EQ(parsed("").name.value, "p");
  EXPECT_EQ(parse_text("", "/srv/deep/agent.toml", plain_context())->name.value, "agent");
}

TEST(PolicyParse, SaysWhenTheCallerHasNoHome) {
  LoadContext context = plain_context();
  context.home.clear();
  const auto policy = parse_text("[filesystem]\nread = [\"~/x\"]", "p.toml", context);
  ASSERT_FALSE(policy);
  EXPECT_THAT(codes(policy.error()), ElementsAre("no-home"));
}

TEST(PolicyParse, BuiltinsNeedNoHome) {
  LoadContext context = plain_context();
  context.home.clear();
  const auto policy = load({{"data-analysis"}}, {}, context);
  ASSERT_TRUE(policy) << policy.error().front().text();
  EXPECT_THAT(values(policy->filesystem.deny), testing::Contains("**/.ssh"));
  EXPECT_THAT(values(policy->filesystem.seed), IsEmpty());
}

TEST(PolicyParse, SelfContainedTextKnowsBuiltinsButNoFiles) {
  EXPECT_EQ(parsed("extends = \"strict\"").limits.processes.value, 32U);
  EXPECT_THAT(codes(findings_of("extends = \"./other.toml\"")), ElementsAre("no-such-file"));
}

}  // namespace
}  // namespace sbx::policy
