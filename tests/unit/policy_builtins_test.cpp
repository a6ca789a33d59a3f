#include "policy/keys.hpp"
#include "policy/packed.hpp"
#include "policy/syntax.hpp"
#include "policy/write.hpp"
#include "policy_fixture.hpp"

namespace sbx::policy {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

Policy builtin(const std::string& name) {
  auto policy = load({{name}}, {}, plain_context());
  EXPECT_TRUE(policy) << policy.error().front().text();
  return policy ? std::move(*policy) : Policy{};
}

TEST(PolicyBuiltins, AreTheEleven) {
  std::vector<std::string_view> names;
  for (const Builtin& one : builtins()) names.push_back(one.name);
  EXPECT_THAT(names, ElementsAre("default", "strict", "data-analysis", "python", "node", "shell",
                                 "agent", "ci-untrusted", "offline-build", "web-fetch", "e2b"));
}

TEST(PolicyBuiltins, EachLoadsUnderItsNameWithADescription) {
  for (const Builtin& one : builtins()) {
    const Policy policy = builtin(std::string(one.name));
    EXPECT_EQ(policy.name.value, one.name);
    EXPECT_FALSE(policy.description.value.empty()) << one.name;
    EXPECT_EQ(policy.source, "built-in");
    EXPECT_THAT(policy.files, IsEmpty());
    EXPECT_FALSE(policy.locked.value) << one.name;
  }
}

TEST(PolicyBuiltins, AreHashedAlikeForEveryAccount) {
  LoadContext one = plain_context();
  LoadContext other = one;
  one.home = "/root";
  other.home = "/srv/homes/me";
  for (const Builtin& each : builtins()) {
    const auto first = load({{std::string(each.name)}}, {}, one);
    const auto second = load({{std::string(each.name)}}, {}, other);
    ASSERT_TRUE(first && second);
    EXPECT_NE(write(*first), write(*second)) << each.name;
    EXPECT_EQ(write_for_hash(*first), write_for_hash(*second)) << each.name;
  }
  const Override narrower{.key = "limits.memory", .toml = "\"1M\"", .option = "--set"};
  EXPECT_NE(write_for_hash(*load({{"default"}}, {}, one)),
            write_for_hash(*load({{"default"}}, {narrower}, one)));
}

/// Built-in policies are parsed while sbx is built; that must not change them.
TEST(PolicyBuiltins, EachSaysTheSameAsItsText) {
  for (const Builtin& one : builtins()) {
    auto file = parse_text(one.toml, std::string(one.name) + ".toml", plain_context());
    ASSERT_TRUE(file) << file.error().front().text();
    const Policy loaded = builtin(std::string(one.name));
    EXPECT_TRUE(same_rules(loaded, *file)) << one.name;
    EXPECT_EQ(loaded.limits.wall_time.origin.line, file->limits.wall_time.origin.line);
  }
}

void expect_same(const Node& left, const Node& right) {
  EXPECT_EQ(left.line, right.line);
  EXPECT_EQ(left.column, right.column);
  ASSERT_EQ(left.value.index(), right.value.index());
  EXPECT_EQ(short_text(left), short_text(right));
  const auto* list = left.as<Node::List>();
  const auto* table = left.as<Node::Table>();
  if (list != nullptr) {
    const auto& other = *right.as<Node::List>();
    ASSERT_EQ(list->size(), other.size());
    for (std::size_t i = 0; i < list->size(); ++i) expect_same(list->at(i), other.at(i));
  }
  if (table != nullptr) {
    const auto& other = *right.as<Node::Table>();
    ASSERT_EQ(table->size(), other.size());
    for (std::size_t i = 0; i < table->size(); ++i) {
      EXPECT_EQ(table->at(i).name, other.at(i).name);
      EXPECT_EQ(table->at(i).line, other.at(i).line);
      EXPECT_EQ(table->at(i).column, other.at(i).column);
      expect_same(table->at(i).value, other.at(i).value);
    }
  }
}

TEST(PolicyBuiltins, PackedNodesAreThoseOfTheText) {
  for (const PackedPolicy& policy : packed_policies()) {
    const auto text = read_toml(policy.toml);
    ASSERT_TRUE(text);
    expect_same(unpack(policy), *text);
  }
}

/// Each key or table header has a comment directly above it or above its group.
TEST(PolicyBuiltins, EveryRuleHasAReason) {
  for (const Builtin& one : builtins()) {
    bool reason = false;
    std::string_view rest = one.toml;
    while (!rest.empty()) {
      const auto end = std::min(rest.find('\n'), rest.size() - 1) + 1;
      const std::string_view line = rest.substr(0, end - 1);
      rest.remove_prefix(end);
      if (line.starts_with("#")) reason = true;
      if (line.starts_with("[")) reason = line == "[filesystem.workspace]" && one.name == "default";
      const bool rule =
          line.find(" = ") != std::string_view::npos && line[0] != '#' && line[0] != ' ';
      const bool header =
          line.starts_with("schema") || line.starts_with("name") || line.starts_with("description");
      EXPECT_TRUE(reason || header || !rule) << one.name << ": " << line;
    }
  }
}

TEST(PolicyBuiltins, DefaultSaysEveryKey) {
  const std::string_view text = builtins().front().toml;  // a view of static text
  for (const Key& key : keys()) {
    if (key.name == "filesystem.system") continue;
    const std::string last(key.name.substr(key.name.rfind('.') + 1));
    const bool stands = text.find("\n" + last + " = ") != std::string_view::npos ||
                        text.find("[" + std::string(key.name) + "]") != std::string_view::npos;
    EXPECT_TRUE(stands) << key.name;
  }
  EXPECT_NE(text.find("\nsystem = \"host\""), std::string_view::npos);
}

TEST(PolicyBuiltins, DefaultIsThatOfTheContract) {
  const Policy policy = builtin("default");
  EXPECT_EQ(policy.filesystem.workspace.mode.value, WorkspaceMode::empty);
  EXPECT_EQ(policy.network.mode.value, NetworkMode::none);
  EXPECT_EQ(policy.limits.wall_time.value, std::chrono::seconds(60));
  EXPECT_EQ(policy.limits.cpu_time.value, std::chrono::seconds(60));
  EXPECT_EQ(policy.limits.cpus.value, 2.0);
  EXPECT_EQ(policy.limits.memory.value, Bytes{1ULL << 30});
  EXPECT_EQ(policy.limits.disk.value, Bytes{512ULL << 20});
  EXPECT_EQ(policy.limits.disk_files.value, 200'000U);
  EXPECT_EQ(policy.limits.file_size.value, Bytes{256ULL << 20});
  EXPECT_EQ(policy.limits.processes.value, 128U);
  EXPECT_EQ(policy.limits.open_files.value, 1024U);
  EXPECT_THAT(values(policy.filesystem.deny), Contains("**/.env"));
  EXPECT_THAT(values(policy.filesystem.deny), Contains("/home/me/.kube"));
  EXPECT_THAT(policy.filesystem.read, IsEmpty());
  EXPECT_THAT(policy.filesystem.write, IsEmpty());
  EXPECT_THAT(policy.environment.pass, IsEmpty());
  EXPECT_EQ(policy.limits.processes.origin.file, "default.toml");
  EXPECT_EQ(policy.limits.processes.origin.layer, Layer::builtin);
}

TEST(PolicyBuiltins, StrictHasTheKeysOwnBudgetsAndNoNewProcesses) {
  const Policy policy = builtin("strict");
  const Policy keys_own = parsed("");
  EXPECT_EQ(policy.limits.wall_time.value, std::chrono::seconds(10));
  EXPECT_EQ(policy.limits.cpu_time.value, std::chrono::seconds(10));
  EXPECT_EQ(policy.limits.cpus.value, 1.0);
  EXPECT_EQ(policy.limits.memory.value, keys_own.limits.memory.value);
  EXPECT_EQ(policy.limits.disk.value, keys_own.limits.disk.value);
  EXPECT_EQ(policy.limits.disk_files.value, keys_own.limits.disk_files.value);
  EXPECT_EQ(policy.limits.file_size.value, keys_own.limits.file_size.value);
  EXPECT_EQ(policy.limits.processes.value, 32U);
  EXPECT_EQ(policy.limits.open_files.value, 128U);
  EXPECT_EQ(policy.filesystem.workspace.mode.value, WorkspaceMode::empty);
  EXPECT_THAT(values(policy.syscalls.deny), ElementsAre("@process-spawn"));
  EXPECT_EQ(values(policy.filesystem.deny), values(builtin("default").filesystem.deny));
}

TEST(PolicyBuiltins, OnesForProjectsSeeTheWorkspaceCopyOnWrite) {
  for (const char* name :
       {"data-analysis", "python", "node", "shell", "agent", "ci-untrusted", "offline-build"}) {
    EXPECT_EQ(builtin(name).filesystem.workspace.mode.value, WorkspaceMode::overlay) << name;
    EXPECT_EQ(builtin(name).network.mode.value, NetworkMode::none) << name;
  }
  for (const char* name : {"ci-untrusted", "offline-build"}) {
    const Policy policy = builtin(name);
    EXPECT_EQ(policy.limits.disk_on.value, DiskOn::directory);
    EXPECT_EQ(policy.limits.disk.value, Bytes{8ULL << 30});
    EXPECT_EQ(policy.limits.memory.value, Bytes{4ULL << 30});
  }
  EXPECT_THAT(values(builtin("data-analysis").filesystem.seed),
              ElementsAre("/home/me/.cache/matplotlib/fontlist-*.json"));
  EXPECT_THAT(values(builtin("shell").filesystem.seed),
              ElementsAre("/home/me/.gitconfig", "/home/me/.config/git/config"));
}

TEST(PolicyBuiltins, AgentIsAShellWithRoomForHours) {
  const Policy policy = builtin("agent");
  const Policy shell = builtin("shell");
  EXPECT_EQ(policy.limits.wall_time.value, std::chrono::minutes(5));
  EXPECT_EQ(policy.limits.memory.value, Bytes{2ULL << 30});
  EXPECT_EQ(policy.limits.processes.value, 256U);
  EXPECT_EQ(policy.session.idle.value, std::chrono::hours(1));
  EXPECT_EQ(policy.session.lifetime.value, std::chrono::hours(12));
  EXPECT_EQ(values(policy.filesystem.seed), values(shell.filesystem.seed));
  EXPECT_EQ(values(policy.environment.pass), values(shell.environment.pass));
}

TEST(PolicyBuiltins, WebFetchAllowsNothingUntilItIsEdited) {
  const Policy policy = builtin("web-fetch");
  EXPECT_EQ(policy.network.mode.value, NetworkMode::allow_list);
  EXPECT_THAT(policy.network.allow, IsEmpty());
  EXPECT_EQ(policy.filesystem.workspace.mode.value, WorkspaceMode::empty);
}

/// ptrace alone, and only where programs are tested: the leak checker of a sanitizer traces its own
/// process.
std::vector<std::string> calls_of(const std::string& name) {
  const bool tests_programs = name == "agent" || name == "ci-untrusted" || name == "offline-build";
  return tests_programs ? std::vector<std::string>{"ptrace"} : std::vector<std::string>{};
}

TEST(PolicyBuiltins, NoneGrantsMoreFilesOrCallsThanDefault) {
  for (const Builtin& one : builtins()) {
    const Policy policy = builtin(std::string(one.name));
    EXPECT_THAT(policy.filesystem.read, IsEmpty()) << one.name;
    EXPECT_THAT(policy.filesystem.write, IsEmpty()) << one.name;
    EXPECT_THAT(policy.filesystem.sockets, IsEmpty()) << one.name;
    EXPECT_EQ(values(policy.syscalls.allow), calls_of(std::string(one.name))) << one.name;
    EXPECT_THAT(policy.network.publish, IsEmpty()) << one.name;
    EXPECT_TRUE(policy.filesystem.landlock.value) << one.name;
    EXPECT_EQ(policy.enforcement.value, Enforcement::strict) << one.name;
  }
}

}  // namespace
}  // namespace sbx::policy
