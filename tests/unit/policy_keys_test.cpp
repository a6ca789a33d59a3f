#include "policy/apply.hpp"
#include "policy/keys.hpp"

#include <array>
#include <set>

#include "policy/values.hpp"
#include "policy/write.hpp"
#include "policy_fixture.hpp"

namespace sbx::policy {
namespace {

TEST(PolicyKeys, EachHasANameOfItsOwnAndOneLineOfDocumentation) {
  std::set<std::string_view> names;
  for (const Key& key : keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    EXPECT_FALSE(key.documentation.empty()) << key.name;
    EXPECT_EQ(key.documentation.find('\n'), std::string_view::npos) << key.name;
    EXPECT_EQ(find_key(key.name), &key);
    EXPECT_FALSE(is_section(key.name)) << key.name;
  }
}

TEST(PolicyKeys, EachHasAPlaceOfItsOwnInAPolicy) {
  Policy policy;
  std::set<const void*> places;
  for (const Key& key : keys()) {
    if (key.of_text()) continue;
    const void* place = std::visit(
        [](const auto& at) -> const void* {
          using At = std::decay_t<decltype(at)>;
          if constexpr (std::is_same_v<At, std::monostate>)
            return nullptr;
          else if constexpr (std::is_same_v<At, Choice>)
            return at.value;
          else
            return at;
        },
        key.slot(policy));
    EXPECT_TRUE(place != nullptr && places.insert(place).second) << key.name;
  }
}

TEST(PolicyKeys, EachDefaultIsWhatTheKeyAccepts) {
  for (const Key& key : keys()) {
    if (key.type == Type::parents) continue;
    const std::string toml = initial_toml(key);
    const auto dot = key.name.rfind('.');
    const std::string text = dot == std::string_view::npos
                                 ? std::string(key.name) + " = " + toml
                                 : "[" + std::string(key.name.substr(0, dot)) + "]\n" +
                                       std::string(key.name.substr(dot + 1)) + " = " + toml;
    auto policy = parse_text(text, "p.toml", plain_context());
    ASSERT_TRUE(policy) << text << ": " << policy.error().front().text();
    policy->name = {};
    // The list of credentials is in the policy "default", not in the table.
    Policy expected = key.entry == Entry::hidden ? initial_policy() : parsed("");
    expected.name = {};
    EXPECT_TRUE(same_rules(*policy, expected)) << text;
  }
}

TEST(PolicyKeys, DefaultsAreThoseOfTheContract) {
  const Policy policy = parsed("");
  EXPECT_EQ(policy.filesystem.workspace.mode.value, WorkspaceMode::empty);
  EXPECT_EQ(policy.network.mode.value, NetworkMode::none);
  EXPECT_EQ(policy.limits.wall_time.value, std::chrono::seconds(30));
  EXPECT_EQ(policy.limits.cpu_time.value, std::chrono::seconds(30));
  EXPECT_EQ(policy.limits.cpus.value, 1.0);
  EXPECT_EQ(policy.limits.memory.value, Bytes{256ULL << 20});
  EXPECT_EQ(policy.limits.disk.value, Bytes{64ULL << 20});
  EXPECT_EQ(policy.limits.disk_files.value, 10'000U);
  EXPECT_EQ(policy.limits.file_size.value, Bytes{64ULL << 20});
  EXPECT_EQ(policy.limits.processes.value, 64U);
  EXPECT_EQ(policy.limits.open_files.value, 256U);
  EXPECT_EQ(policy.syscalls.base.value, SyscallBase::default_);
  EXPECT_EQ(policy.syscalls.denied.value, DeniedCall::errno_);
  EXPECT_EQ(policy.enforcement.value, Enforcement::strict);
  EXPECT_EQ(policy.output.passed.value, Bytes{256ULL << 20});
  EXPECT_EQ(policy.output.exceed.value, Exceed::automatic);
  EXPECT_EQ(policy.output.results.value, Bytes{8ULL << 20});
  EXPECT_EQ(policy.session.idle.value, std::chrono::minutes(30));
  EXPECT_EQ(policy.session.lifetime.value, std::chrono::hours(8));
  EXPECT_EQ(policy.session.calls.value, 16U);
  EXPECT_EQ(policy.session.contexts.value, 8U);
  EXPECT_EQ(policy.session.cpu_time.value, Milliseconds{0});
  EXPECT_EQ(policy.session.log.value, Bytes{8ULL << 20});
  EXPECT_FALSE(policy.session.put_aside.value);
  EXPECT_TRUE(policy.filesystem.landlock.value);
  EXPECT_TRUE(same_rules(parsed("[filesystem]\ndeny = []"), policy));
  EXPECT_THAT(policy.filesystem.deny,
              testing::Contains(testing::Field(&Sourced<std::string>::value, "**/.ssh")));
  EXPECT_TRUE(parsed("[filesystem]\ndeny = { replace = [] }").filesystem.deny.empty());
  EXPECT_EQ(policy.interpreters.extensions.at("py").value, std::vector<std::string>{"python3"});
  EXPECT_EQ(policy.limits.memory.origin.text(), "built-in default");
}

TEST(PolicyKeys, WordsStandInTheOrderOfTheirEnumerationNarrowestFirst) {
  EXPECT_EQ(words(*find_key("network.mode")),
            (std::vector<std::string_view>{"none", "allow-list", "host"}));
  EXPECT_EQ(words(*find_key("filesystem.workspace.mode")),
            (std::vector<std::string_view>{"empty", "read-only", "overlay", "read-write"}));
  EXPECT_EQ(parsed("[network]\nmode = \"allow-list\"").network.mode.value, NetworkMode::allow_list);
  EXPECT_EQ(parsed("[filesystem.workspace]\nmode = \"read-write\"").filesystem.workspace.mode.value,
            WorkspaceMode::read_write);
  EXPECT_EQ(parsed("[syscalls]\nbase = \"minimal\"").syscalls.base.value, SyscallBase::minimal);
  EXPECT_EQ(parsed("[limits]\ndisk_on = \"directory\"").limits.disk_on.value, DiskOn::directory);
  EXPECT_EQ(parsed("[output]\nexceed = \"kill\"").output.exceed.value, Exceed::kill);
  EXPECT_EQ(parsed("[syscalls]\ndenied = \"kill\"").syscalls.denied.value, DeniedCall::kill);
  EXPECT_EQ(parsed("enforcement = \"best-effort\"").enforcement.value, Enforcement::best_effort);
}

TEST(PolicyKeys, SuggestsTheKeyThatWasMeant) {
  EXPECT_EQ(suggest_key("limits.memroy"), "limits.memory");
  EXPECT_EQ(suggest_key("memory"), "limits.memory");
  EXPECT_EQ(suggest_key("memroy"), "limits.memory");
  EXPECT_EQ(suggest_key("limit.memory"), "limits.memory");
  EXPECT_EQ(suggest_key("limits.timeout"), "limits.wall_time");
  EXPECT_EQ(suggest_key("filesystem.mode"), "filesystem.workspace.mode");
  EXPECT_EQ(suggest_key("extend"), "extends");
  EXPECT_EQ(suggest_key("xyzzy"), "");
  EXPECT_EQ(suggest_key(std::string(100'000, 'a')), "");
}

TEST(PolicyKeys, NamesTypesAndExamplesForEveryKey) {
  for (const Key& key : keys()) {
    EXPECT_FALSE(type_name(key).empty()) << key.name;
    if (key.type != Type::word)
      EXPECT_FALSE(example(key).empty()) << key.name;
    else
      EXPECT_GE(words(key).size(), 2U) << key.name;
  }
}

TEST(PolicyValues, WhatWasMeantIsOfferedOnlyWhereItIsTaken) {
  for (const auto& [typed, meant] : std::initializer_list<std::pair<const char*, const char*>>{
           {"256MiB", "256M"}, {"256m", "256M"}, {"1Gi", "1G"}, {"512 MB", "512M"}, {"7", "7M"}})
    EXPECT_EQ(meant_size(typed), meant) << typed;
  for (const auto& [typed, meant] : std::initializer_list<std::pair<const char*, const char*>>{
           {"1m30s", "90s"}, {"1h30m", "90m"}, {"5", "5s"}, {"5 min", "5m"}, {"1m30", nullptr}})
    EXPECT_EQ(meant_duration(typed),
              meant == nullptr ? std::nullopt : std::optional<std::string>(meant))
        << typed;
  for (const char* nothing : {"0", "", "lots", "-1", "MiB"})
    EXPECT_FALSE(meant_size(nothing)) << nothing;
  for (const char* nothing : {"0", "", "soon", "-1s", "s"})
    EXPECT_FALSE(meant_duration(nothing)) << nothing;
}

TEST(PolicyKeys, NearestIsNoNonsense) {
  constexpr std::array<std::string_view, 6> kOptions{"--in",    "--out",    "--set",
                                                     "--write", "--memory", "--timeout"};
  for (const char* typed : {"--bind", "--mount", "--user", "--private", "--x"})
    EXPECT_EQ(nearest(typed, kOptions), "") << typed;
  EXPECT_EQ(nearest("--memroy", kOptions), "--memory");
  EXPECT_EQ(nearest("--timeot", kOptions), "--timeout");
}

}  // namespace
}  // namespace sbx::policy
