#include <array>

#include "policy/keys.hpp"
#include "policy_fixture.hpp"

namespace sbx::policy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Every key of schema 1 with a value other than its default.
constexpr std::string_view kEveryKey = R"(schema = 1
name = "everything"
description = "all of it"
extends = []
locked = true
enforcement = "best-effort"
isolation = "auto"

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
user = "me_2"
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
disk_on = "directory"
grace = "3s"

[output]
stdout = "64K"
stderr = "0B"
passed = "2M"
exceed = "kill"
results = "1M"

[session]
idle = "90s"
lifetime = "1.5h"
calls = 256
contexts = 0
cpu_time = "2h"
log = "16K"
put_aside = true
)";

TEST(PolicyParse, TakesEveryKey) {
  const Policy policy = parsed(kEveryKey);
  EXPECT_EQ(policy.name.value, "everything");
  EXPECT_EQ(policy.description.value, "all of it");
  EXPECT_TRUE(policy.locked.value);
  EXPECT_EQ(policy.enforcement.value, Enforcement::best_effort);
  EXPECT_EQ(policy.isolation.value, Isolation::automatic);
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
              testing::IsSupersetOf(
                  {"**/.env", "**/.env.*", "**/.aws", "/home/me/.ssh", "/home/me/work/secret"}));
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
  EXPECT_EQ(policy.environment.user.value, "me_2");
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
  EXPECT_EQ(policy.limits.disk_on.value, DiskOn::directory);
  EXPECT_EQ(policy.limits.grace.value, Milliseconds{3000});
  EXPECT_EQ(policy.output.stdout_.value, Bytes{65'536});
  EXPECT_EQ(policy.output.stderr_.value, Bytes{0});
  EXPECT_EQ(policy.output.passed.value, Bytes{2 << 20});
  EXPECT_EQ(policy.output.exceed.value, Exceed::kill);
  EXPECT_EQ(policy.output.results.value, Bytes{1 << 20});
  EXPECT_EQ(policy.session.idle.value, Milliseconds{90'000});
  EXPECT_EQ(policy.session.lifetime.value, Milliseconds{5'400'000});
  EXPECT_EQ(policy.session.calls.value, 256U);
  EXPECT_EQ(policy.session.contexts.value, 0U);
  EXPECT_EQ(policy.session.cpu_time.value, Milliseconds{7'200'000});
  EXPECT_EQ(policy.session.log.value, Bytes{16'384});
  EXPECT_TRUE(policy.session.put_aside.value);
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
  EXPECT_EQ(policy.limits.wall_time.origin, (Origin{"p.toml", 63, 13, Layer::file}));
  EXPECT_EQ(policy.filesystem.read.at(1).origin.text(), "p.toml:18");
  EXPECT_EQ(policy.filesystem.read.at(1).origin.column, 24);
  EXPECT_EQ(policy.environment.set.at("MPLBACKEND").origin.text(), "p.toml:37");
  EXPECT_EQ(policy.syscalls.rules.at(1).origin.text(), "p.toml:49");
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

TEST(PolicyParse, AcceptsEveryFormOfADestination) {
  const Policy policy = parsed(
      "[network]\nallow = [\"example.com:443\", \"a-b.example.com:54-65535\", \"*.x.org:*\", "
      "\"10.0.0.1:80\", \"[fd00::1]:80\", \"udp://[fd00::/8]:5\"]");
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
