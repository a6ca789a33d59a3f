#include "policy_fixture.hpp"

namespace sbx::policy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PolicyMerge : public PolicyDirectory {};
class PolicyLock : public PolicyDirectory {};
class PolicyOptions : public PolicyDirectory {};

TEST_F(PolicyMerge, LastLayerSetsAScalarAndIsItsOrigin) {
  write_file("work/base.toml", "[limits]\nmemory = \"1G\"\nprocesses = 10");
  write_file("work/p.toml", "extends = \"base.toml\"\n[limits]\nmemory = \"2G\"");
  write_file("work/later.toml", "[limits]\ncpus = 3.0");
  const Policy policy =
      loaded({"./p.toml", "./later.toml"},
             {set("limits.cpus", "4"), option("--processes", "limits.processes", "20")});
  EXPECT_EQ(policy.limits.memory.value, Bytes{2ULL << 30});
  EXPECT_EQ(policy.limits.memory.origin, (Origin{"./p.toml", 3, 10, Layer::file}));
  EXPECT_EQ(policy.limits.cpus.value, 4);
  EXPECT_EQ(policy.limits.cpus.origin, (Origin{"--set", 0, 0, Layer::command_line}));
  EXPECT_EQ(policy.limits.processes.value, 20U);
  EXPECT_EQ(policy.limits.processes.origin.text(), "--processes");
  EXPECT_EQ(policy.limits.wall_time.origin.layer, Layer::key_default);
  EXPECT_EQ(policy.name.value, "later");
}

TEST_F(PolicyMerge, ParentsAreMergedLeftToRightDepthFirst) {
  write_file("work/a.toml", "extends = \"a0.toml\"\n[environment]\npass = [\"A\"]");
  write_file("work/a0.toml", "[environment]\npass = [\"A0\"]\n[limits]\nprocesses = 1");
  write_file("work/b.toml", "[environment]\npass = [\"B\"]\n[limits]\nprocesses = 2");
  write_file("work/p.toml",
             "extends = [\"a.toml\", \"b.toml\"]\n[environment]\npass = [\"P\", \"A\"]");
  const Policy policy = loaded({"./p.toml"});
  EXPECT_THAT(values(policy.environment.pass), ElementsAre("A0", "A", "B", "P"));
  EXPECT_EQ(policy.limits.processes.value, 2U);
}

TEST_F(PolicyMerge, ParentOfSeveralDoesNotUndoWhatItsHeirsSay) {
  write_file("work/root.toml", "[limits]\nprocesses = 1");
  write_file("work/a.toml", "extends = \"root.toml\"\n[limits]\nprocesses = 2");
  write_file("work/b.toml", "extends = \"root.toml\"");
  write_file("work/p.toml", "extends = [\"a.toml\", \"b.toml\"]");
  EXPECT_EQ(loaded({"./p.toml"}).limits.processes.value, 2U);
  EXPECT_EQ(loaded({"./a.toml", "./b.toml"}).limits.processes.value, 2U);
  // Named explicitly it is a layer like any other.
  EXPECT_EQ(loaded({"./a.toml", "./root.toml"}).limits.processes.value, 1U);
}

TEST_F(PolicyMerge, ReplaceDiscardsWhatWeakerLayersSaid) {
  write_file("work/base.toml", "[environment]\npass = [\"A\", \"B\"]");
  write_file("work/p.toml", "extends = \"base.toml\"\n[environment]\npass = { replace = [\"C\"] }");
  EXPECT_THAT(values(loaded({"./p.toml"}).environment.pass), ElementsAre("C"));
  write_file("work/p.toml", "extends = \"base.toml\"\n[environment]\npass = { replace = [] }");
  EXPECT_THAT(values(loaded({"./p.toml"}).environment.pass), IsEmpty());
}

TEST_F(PolicyMerge, TablesMergeKeyByKeyAndUnsetRemoves) {
  write_file("work/base.toml", "[environment.set]\nA = \"1\"\nB = \"2\"\nC = \"3\"");
  write_file("work/p.toml",
             "extends = \"base.toml\"\n[environment.set]\nB = \"two\"\nD = \"4\"\nunset = [\"C\", "
             "\"NOT_THERE\"]");
  const Policy policy = loaded({"./p.toml"});
  EXPECT_EQ(policy.environment.set.size(), 3U);
  EXPECT_EQ(policy.environment.set.at("A").value, "1");
  EXPECT_EQ(policy.environment.set.at("B").value, "two");
  EXPECT_FALSE(policy.environment.set.contains("C"));
}

TEST_F(PolicyMerge, VariableMayBeCalledUnset) {
  EXPECT_EQ(parsed("[environment.set]\nunset = \"x\"").environment.set.at("unset").value, "x");
}

TEST_F(PolicyMerge, RulesAppendAndDuplicatesAreDropped) {
  const std::string rule = "[[syscalls.rule]]\nname = \"socket\"\naction = \"deny\"\n";
  write_file("work/base.toml", rule);
  write_file("work/p.toml", "extends = \"base.toml\"\n" + rule +
                                "[[syscalls.rule]]\nname = \"bind\"\naction = \"deny\"\n");
  const Policy policy = loaded({"./p.toml"});
  ASSERT_EQ(policy.syscalls.rules.size(), 2U);
  EXPECT_EQ(policy.syscalls.rules[0].origin.file, "./base.toml");
  EXPECT_EQ(policy.syscalls.rules[1].value.name, "bind");
}

TEST_F(PolicyMerge, DenyStandsBesideAnAllowOfALaterLayer) {
  write_file("work/base.toml", "[syscalls]\ndeny = [\"ptrace\"]");
  write_file("work/p.toml", "extends = \"base.toml\"\n[syscalls]\nallow = [\"ptrace\"]");
  const Policy policy = loaded({"./p.toml"});
  EXPECT_THAT(values(policy.syscalls.deny), ElementsAre("ptrace"));
}

TEST_F(PolicyMerge, GrantSaidAgainTakesTheLaterOptional) {
  write_file("work/p.toml",
             "[filesystem]\nread = [\"/srv\", { source = \"/srv\", optional = true }, { source = "
             "\"/srv\", target = \"/x\" }]");
  EXPECT_THAT(values(loaded({"./p.toml"}).filesystem.read),
              ElementsAre(PathGrant{.source = "/srv", .optional = true},
                          PathGrant{.source = "/srv", .target = "/x"}));
}

TEST_F(PolicyMerge, PathsStartAtTheFileThatSaysThem) {
  write_file("work/deep/base.toml", "[filesystem]\nread = [\"data\", \"../up\", \"/abs//x/./y\"]");
  write_file("work/p.toml",
             "extends = \"deep/base.toml\"\n[filesystem]\nread = [\"data\", \"~/h\", \"~\"]");
  std::vector<std::string> sources;
  for (const PathGrant& grant :
       values(loaded({"./p.toml"}, {set("filesystem.seed", "[\"typed\"]")}).filesystem.read)) {
    sources.push_back(grant.source);
  }
  EXPECT_THAT(sources, ElementsAre(path("work/deep/data"), path("work/up"), "/abs/x/y",
                                   path("work/data"), path("home/h"), path("home")));
}

TEST_F(PolicyMerge, NameAndDescriptionAreNotInherited) {
  write_file("work/base.toml", "name = \"base\"\ndescription = \"of the base\"");
  write_file("work/p.toml", "extends = \"base.toml\"");
  const Policy policy = loaded({"./p.toml"});
  EXPECT_EQ(policy.name.value, "p");
  EXPECT_EQ(policy.description.value, "");
}

TEST_F(PolicyOptions, SetReplacesAListAndANamedOptionAppends) {
  write_file("work/p.toml", "[filesystem]\nread = [\"/a\"]");
  EXPECT_THAT(values(loaded({"./p.toml"}, {set("filesystem.read", "[\"/b\"]")}).filesystem.read),
              ElementsAre(PathGrant{.source = "/b"}));
  const Policy policy = loaded(
      {"./p.toml"}, {option("--read", "filesystem.read", "\"data\""),
                     option("--read", "filesystem.read", "[{ source = \"/c\", target = \"/d\" }]"),
                     option("--read", "filesystem.read", "{ source = \"/e\" }")});
  EXPECT_THAT(values(policy.filesystem.read),
              ElementsAre(PathGrant{.source = "/a"}, PathGrant{.source = path("work/data")},
                          PathGrant{.source = "/c", .target = "/d"}, PathGrant{.source = "/e"}));
  EXPECT_EQ(policy.filesystem.read.back().origin.text(), "--read");
}

TEST_F(PolicyOptions, NamedOptionsAreStrongerThanSetWhereverTheyStand) {
  EXPECT_EQ(loaded({"default"}, {option("--timeout", "limits.wall_time", "\"5s\""),
                                 set("limits.wall_time", "\"9s\"")})
                .limits.wall_time.value,
            std::chrono::seconds(5));
}

TEST_F(PolicyOptions, SetReachesIntoTables) {
  const Policy policy =
      loaded({"data-analysis"}, {set("environment.set.FOO", "\"x\""),
                                 set("environment.set", "{ unset = [\"MPLBACKEND\"] }")});
  EXPECT_EQ(policy.environment.set.at("FOO").value, "x");
  EXPECT_FALSE(policy.environment.set.contains("MPLBACKEND"));
}

TEST_F(PolicyOptions, MistakesNameTheOptionAndTheCure) {
  const Error bare = finding({"default"}, {set("limits.memory", "512M")});
  EXPECT_EQ(bare.code, "toml-syntax");
  EXPECT_EQ(bare.origin->text(), "--set");
  EXPECT_EQ(bare.source_line, "limits.memory=512M");
  EXPECT_EQ(bare.hint, "write --set 'limits.memory=\"512M\"'");
  const Error unit = finding({"default"}, {option("--memory", "limits.memory", "\"5MB\"")});
  EXPECT_EQ(unit.code, "bad-unit");
  EXPECT_THAT(unit.text(), HasSubstr("\"5MB\" is not a size (--memory)"));
  EXPECT_THAT(unit.hint, HasSubstr("write --memory 5M"));
  const Error unknown = finding({"default"}, {set("limits.memroy", "1")});
  EXPECT_EQ(unknown.code, "unknown-key");
  EXPECT_EQ(unknown.hint, "did you mean \"limits.memory\"?");
  EXPECT_EQ(finding({"default"}, {set("limits", "1")}).code, "unknown-key");
  EXPECT_EQ(finding({"default"}, {set("extends", "\"strict\"")}).code, "not-settable");
  EXPECT_EQ(finding({"default"}, {set("schema", "1")}).code, "not-settable");
}

TEST_F(PolicyOptions, OneOverrideIsOneValue) {
  for (const char* toml : {"1\nlimits = 2", "1\n[x]\ny = 1", "", "1 2", "\"", "}"}) {
    EXPECT_EQ(finding({"default"}, {set("limits.cpus", toml)}).code, "toml-syntax") << toml;
  }
  EXPECT_EQ(loaded({"default"}, {set("limits.cpus", "1.5 # enough")}).limits.cpus.value, 1.5);
}

TEST_F(PolicyOptions, AllowHostTurnsNoneIntoAllowList) {
  const Policy policy =
      loaded({"default"}, {option("--allow-host", "network.allow", "\"example.com:443\"")});
  EXPECT_EQ(policy.network.mode.value, NetworkMode::allow_list);
  EXPECT_EQ(policy.network.mode.origin.text(), "--allow-host");
  EXPECT_THAT(values(policy.network.allow), ElementsAre("example.com:443"));
  EXPECT_EQ(loaded({"default"}, {set("network.allow", "[\"example.com:443\"]")}).network.mode.value,
            NetworkMode::none);
}

TEST_F(PolicyOptions, AllowHostContradictsTheHostsNetwork) {
  const Error error =
      finding({"default"}, {option("--allow-host", "network.allow", "\"example.com:443\""),
                            option("--net", "network.mode", "\"host\"")});
  EXPECT_EQ(error.code, "allow-host-with-host");
  EXPECT_THAT(error.message, HasSubstr("network.mode = \"host\" of --net"));
}

struct Change {
  std::string_view sealed;    ///< in the locked policy
  std::string_view narrower;  ///< allowed in a later layer
  std::string_view wider;     ///< not allowed there; empty: none
};
void PrintTo(const Change& change, std::ostream* out) {
  *out << change.sealed << " / " << change.wider;
}

class PolicyLockOrder : public PolicyDirectory, public testing::WithParamInterface<Change> {};

TEST_P(PolicyLockOrder, NarrowingPassesAndWideningNamesBothPlaces) {
  const Change& change = GetParam();
  write_file("work/base.toml", "locked = true\n" + std::string(change.sealed));
  write_file("work/same.toml", std::string(change.sealed));
  write_file("work/narrower.toml", std::string(change.narrower));
  EXPECT_TRUE(load_all({"./base.toml", "./same.toml"}));
  EXPECT_TRUE(load_all({"./base.toml", "./narrower.toml"})) << change.narrower;
  if (change.wider.empty()) return;
  write_file("work/wider.toml", std::string(change.wider));
  EXPECT_TRUE(load_all({"./wider.toml"})) << "a wrong text shows nothing";
  const Error error = finding({"./base.toml", "./wider.toml"});
  EXPECT_EQ(error.code, "widens-locked");
  EXPECT_EQ(error.origin->file, "./wider.toml");
  EXPECT_THAT(error.message, HasSubstr("locked at ./base.toml:1"));
}

constexpr auto kChanges = std::to_array<Change>({
    {"enforcement = \"strict\"", "", "enforcement = \"best-effort\""},
    {"enforcement = \"best-effort\"", "enforcement = \"strict\"", ""},
    {"", "isolation = \"namespaces\"", "isolation = \"auto\""},
    {"isolation = \"auto\"", "isolation = \"namespaces\"", "isolation = \"landlock\""},
    {"[interpreters]\nallow = [\"a\", \"b\"]", "[interpreters]\nallow = { replace = [\"a\"] }",
     "[interpreters]\nallow = [\"c\"]"},
    {"[interpreters]\nallow = [\"a\"]", "", "[interpreters]\nallow = { replace = [] }"},
    {"[interpreters]\nallow = []", "[interpreters]\nallow = [\"a\"]", ""},
    {"[interpreters]\nvenv = \"/a\"", "", "[interpreters]\nvenv = \"/b\""},
    {"[interpreters.extensions]\npy = [\"a\"]", "", "[interpreters.extensions]\npy = [\"b\"]"},
    {"[interpreters.extensions]\npy = [\"a\"]", "", "[interpreters.extensions]\nxy = [\"b\"]"},
    {"[interpreters.extensions]\npy = [\"a\"]", "", "[interpreters.extensions]\nunset = [\"py\"]"},
    {"[filesystem]\nsystem = \"host\"", "", "[filesystem]\nsystem = \"/srv/root\""},
    {"[filesystem]\nread = [\"/a\", \"/b\"]",
     "[filesystem]\nread = { replace = [{ source = \"/a\", optional = true }] }",
     "[filesystem]\nread = [\"/c\"]"},
    {"[filesystem]\nread = [\"/a\"]", "", "[filesystem]\nread = [\"/a/below\"]"},
    {"[filesystem]\nread = [\"/a\"]", "",
     "[filesystem]\nread = [{ source = \"/a\", target = \"/b\" }]"},
    {"[filesystem]\nwrite = [\"/a\"]", "",
     "[filesystem]\nwrite = [{ source = \"/a\", special = true }]"},
    {"[filesystem]\nwrite = [{ source = \"/a\", special = true }]",
     "[filesystem]\nwrite = { replace = [\"/a\"] }", ""},
    {"[filesystem]\nwrite = [\"/a\"]", "[filesystem]\nwrite = { replace = [] }",
     "[filesystem]\nwrite = [\"/b\"]"},
    {"[filesystem]\ndeny = [\"**/a\"]", "[filesystem]\ndeny = [\"**/b\"]",
     "[filesystem]\ndeny = { replace = [\"**/b\"] }"},
    {"[filesystem]\nsockets = [\"/a\"]", "[filesystem]\nsockets = { replace = [] }",
     "[filesystem]\nsockets = [\"/b\"]"},
    {"[filesystem]\nscan = 100", "[filesystem]\nscan = 99", "[filesystem]\nscan = 101"},
    {"[filesystem]\nlandlock = true", "", "[filesystem]\nlandlock = false"},
    {"[filesystem]\nlandlock = false", "[filesystem]\nlandlock = true", ""},
    {"[filesystem]\nseed = [\"/a\"]", "[filesystem]\nseed = { replace = [] }",
     "[filesystem]\nseed = [\"/b\"]"},
    {"[filesystem.workspace]\nsource = \".\"", "", "[filesystem.workspace]\nsource = \"..\""},
    {"[filesystem.workspace]\nmode = \"read-only\"", "[filesystem.workspace]\nmode = \"empty\"",
     "[filesystem.workspace]\nmode = \"overlay\""},
    {"[filesystem.workspace]\nmode = \"overlay\"", "[filesystem.workspace]\nmode = \"read-only\"",
     "[filesystem.workspace]\nmode = \"read-write\""},
    {"[filesystem.outputs]\ncollect = [\"a\"]", "[filesystem.outputs]\ncollect = { replace = [] }",
     "[filesystem.outputs]\ncollect = [\"b\"]"},
    {"[filesystem.outputs]\nmax_bytes = \"1M\"", "[filesystem.outputs]\nmax_bytes = \"1K\"",
     "[filesystem.outputs]\nmax_bytes = \"2M\""},
    {"[filesystem.outputs]\nmax_files = 5", "[filesystem.outputs]\nmax_files = 4",
     "[filesystem.outputs]\nmax_files = 6"},
    {"[filesystem.outputs]\nmax_depth = 5", "[filesystem.outputs]\nmax_depth = 4",
     "[filesystem.outputs]\nmax_depth = 6"},
    {"[environment]\npass = [\"A\"]", "[environment]\npass = { replace = [] }",
     "[environment]\npass = [\"B\"]"},
    {"[environment]\nset = { A = \"1\" }", "", "[environment]\nset = { A = \"2\" }"},
    {"[environment]\nset = { A = \"1\" }", "", "[environment]\nset = { B = \"2\" }"},
    {"[environment]\nset = { A = \"1\" }", "", "[environment]\nset = { unset = [\"A\"] }"},
    {"[syscalls]\nbase = \"minimal\"", "[syscalls]\nbase = \"none\"",
     "[syscalls]\nbase = \"default\""},
    {"[syscalls]\nallow = [\"a\"]", "[syscalls]\nallow = { replace = [] }",
     "[syscalls]\nallow = [\"b\"]"},
    {"[syscalls]\ndeny = [\"a\"]", "[syscalls]\ndeny = [\"b\"]",
     "[syscalls]\ndeny = { replace = [] }"},
    {"[syscalls]\ndenied = \"kill\"", "", "[syscalls]\ndenied = \"errno\""},
    {"[syscalls]\ndenied = \"errno\"", "[syscalls]\ndenied = \"kill\"", ""},
    {"[syscalls]\nrule = []", "[[syscalls.rule]]\nname = \"a\"\naction = \"deny\"",
     "[[syscalls.rule]]\nname = \"a\"\naction = \"allow\""},
    {"[[syscalls.rule]]\nname = \"a\"\naction = \"deny\"", "",
     "[syscalls]\nrule = { replace = [] }"},
    {"[network]\nmode = \"allow-list\"", "[network]\nmode = \"none\"",
     "[network]\nmode = \"host\""},
    {"[network]\nallow = [\"a.org:1\"]", "[network]\nallow = { replace = [] }",
     "[network]\nallow = [\"b.org:1\"]"},
    {"[network]\nprivate = false", "", "[network]\nprivate = true"},
    {"[network]\nprivate = true", "[network]\nprivate = false", ""},
    {"[network]\nmatch_sni = true", "", "[network]\nmatch_sni = false"},
    {"[network]\npublish = [\"1:1\"]", "[network]\npublish = { replace = [] }",
     "[network]\npublish = [\"2:2\"]"},
    {"[network]\nnamed = true", "", "[network]\nnamed = false"},
    {"[limits]\nwall_time = \"5s\"", "[limits]\nwall_time = \"4s\"",
     "[limits]\nwall_time = \"6s\""},
    {"[limits]\ncpu_time = \"5s\"", "[limits]\ncpu_time = \"4s\"", "[limits]\ncpu_time = \"6s\""},
    {"[limits]\ncpus = 2.0", "[limits]\ncpus = 1.5", "[limits]\ncpus = 2.5"},
    {"[limits]\nmemory = \"5M\"", "[limits]\nmemory = \"4M\"", "[limits]\nmemory = \"6M\""},
    {"[limits]\nprocesses = 5", "[limits]\nprocesses = 4", "[limits]\nprocesses = 6"},
    {"[limits]\nopen_files = 50", "[limits]\nopen_files = 40", "[limits]\nopen_files = 60"},
    {"[limits]\nfile_size = \"5M\"", "[limits]\nfile_size = \"4M\"",
     "[limits]\nfile_size = \"6M\""},
    {"[limits]\ndisk = \"5M\"", "[limits]\ndisk = \"4M\"", "[limits]\ndisk = \"6M\""},
    {"[limits]\ndisk_files = 500", "[limits]\ndisk_files = 400", "[limits]\ndisk_files = 600"},
    {"[limits]\ndisk_on = \"memory\"", "", "[limits]\ndisk_on = \"directory\""},
    {"[limits]\ngrace = \"5s\"", "[limits]\ngrace = \"4s\"", "[limits]\ngrace = \"6s\""},
    {"[session]\nidle = \"5m\"", "[session]\nidle = \"4m\"", "[session]\nidle = \"6m\""},
    {"[session]\nlifetime = \"5h\"", "[session]\nlifetime = \"4h\"",
     "[session]\nlifetime = \"6h\""},
    {"[session]\ncalls = 5", "[session]\ncalls = 4", "[session]\ncalls = 6"},
    {"[session]\ncontexts = 5", "[session]\ncontexts = 0", "[session]\ncontexts = 6"},
    {"[session]\ncpu_time = \"5h\"", "[session]\ncpu_time = \"4h\"",
     "[session]\ncpu_time = \"6h\""},
    {"[session]\ncpu_time = \"5h\"", "", "[session]\ncpu_time = \"0s\""},
    {"[session]\ncpu_time = \"0s\"", "[session]\ncpu_time = \"8760h\"", ""},
    {"[session]\nlog = \"5M\"", "[session]\nlog = \"0B\"", "[session]\nlog = \"6M\""},
    {"[output]\nstdout = \"5M\"", "[output]\nstdout = \"4M\"", "[output]\nstdout = \"6M\""},
    {"[output]\nstderr = \"5M\"", "[output]\nstderr = \"4M\"", "[output]\nstderr = \"6M\""},
    {"[output]\nexceed = \"kill\"", "", "[output]\nexceed = \"truncate\""},
    {"[output]\nexceed = \"truncate\"", "[output]\nexceed = \"kill\"", ""},
    {"", "", "locked = false"},
    {"", "name = \"other\"\ndescription = \"other\"", ""},
});
INSTANTIATE_TEST_SUITE_P(Each, PolicyLockOrder, testing::ValuesIn(kChanges));

TEST_F(PolicyLock, MessageHasBothValuesAndBothPlaces) {
  write_file("work/base.toml", "schema = 1\nlocked = true\n[limits]\nmemory = \"1G\"\n");
  write_file("work/p.toml", "extends = \"base.toml\"\n[limits]\nmemory = \"2G\"\n");
  const Error error = finding({"./p.toml"});
  EXPECT_EQ(error.message,
            "limits.memory: \"2G\" allows more than \"1G\" of ./base.toml:4, and the policy is "
            "locked at ./base.toml:2");
  EXPECT_EQ(error.origin->text(), "./p.toml:3");
  EXPECT_EQ(error.source_line, "memory = \"2G\"");
  EXPECT_FALSE(error.hint.empty());
}

TEST_F(PolicyLock, DefaultsOfKeysAreSealedToo) {
  write_file("work/base.toml", "locked = true");
  EXPECT_THAT(finding({"./base.toml"}, {option("--memory", "limits.memory", "\"2G\"")}).message,
              HasSubstr("\"256M\" of built-in default"));
}

TEST_F(PolicyLock, CommandLineIsALaterLayer) {
  write_file("work/base.toml", "locked = true\n[filesystem]\nread = [\"/a\"]");
  EXPECT_TRUE(load_all({"./base.toml"}, {option("--timeout", "limits.wall_time", "\"1s\"")}));
  const Error error = finding({"./base.toml"}, {option("--read", "filesystem.read", "\"/b\"")});
  EXPECT_EQ(error.code, "widens-locked");
  EXPECT_EQ(error.origin->text(), "--read");
  EXPECT_EQ(finding({"./base.toml"}, {option("--net", "network.mode", "\"host\"")}).code,
            "widens-locked");
}

TEST_F(PolicyLock, AllowHostCannotOpenALockedNetwork) {
  write_file("work/base.toml", "locked = true\n[network]\nallow = [\"a.org:443\"]");
  const Error error =
      finding({"./base.toml"}, {option("--allow-host", "network.allow", "\"a.org:443\"")});
  EXPECT_EQ(error.code, "widens-locked");
  EXPECT_THAT(error.message, HasSubstr("network.mode"));
}

TEST_F(PolicyLock, SealHoldsWhatStandsAtTheEndOfTheLockedText) {
  write_file("work/base.toml", "locked = true\n[limits]\nprocesses = 50");
  write_file("work/p.toml", "[limits]\nprocesses = 20");
  EXPECT_TRUE(load_all({"./p.toml", "./base.toml"}))
      << "a layer before the seal is not bound by it";
  EXPECT_EQ(
      loaded({"./base.toml", "./p.toml"}, {set("limits.processes", "40")}).limits.processes.value,
      40U);
  write_file("work/p.toml", "locked = true\n[limits]\nprocesses = 20");
  EXPECT_EQ(finding({"./base.toml", "./p.toml"}, {set("limits.processes", "40")}).code,
            "widens-locked");
}

TEST_F(PolicyLock, EachWideningIsToldOnce) {
  write_file("work/base.toml", "locked = true");
  write_file("work/p.toml", "[limits]\nprocesses = 500\nopen_files = 5000");
  auto policy =
      load_all({"./base.toml", "./p.toml"},
               {set("limits.cpus", "9"), option("--timeout", "limits.wall_time", "\"1h\"")});
  ASSERT_FALSE(policy);
  EXPECT_THAT(codes(policy.error()),
              ElementsAre("widens-locked", "widens-locked", "widens-locked", "widens-locked"));
}

}  // namespace
}  // namespace sbx::policy
