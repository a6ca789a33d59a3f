#include "plan_fixture.hpp"

namespace sbx::plan {
namespace {

using testing::HasSubstr;

TEST_F(PlanTest, ADirectoryIsReadThroughAnOverlayAndAFileThroughABind) {
  canned.files->directory("/srv/models").file("/srv/notes.txt");
  set("filesystem.read", R"(["/srv/models", "/srv/notes.txt"])");
  const Plan decided = plan();
  ASSERT_THAT(decided, HasStep(MountKind::overlay, "/srv/models"));
  EXPECT_TRUE(step_at(decided, "/srv/models")->read_only());
  EXPECT_TRUE(step_at(decided, "/srv/models")->host_source()->is_directory);
  ASSERT_THAT(decided, HasStep(MountKind::bind, "/srv/notes.txt"));
  EXPECT_EQ(step_at(decided, "/srv/notes.txt")->origin.text(), "--set");
  EXPECT_EQ(step_at(decided, "/srv/notes.txt")->host_source()->inode,
            canned.files->look("/srv/notes.txt")->inode);
}

TEST_F(PlanTest, ASourceIsResolvedAndAppearsAsWritten) {
  canned.files->directory("/mnt/disk/data").link("/srv/data", "/mnt/disk/data");
  set("filesystem.read", R"(["/srv/data"])");
  const Plan decided = plan();
  EXPECT_EQ(step_at(decided, "/srv/data")->source(), "/mnt/disk/data");
}

TEST_F(PlanTest, ATargetIsHonoured) {
  canned.files->directory("/srv/data");
  set("filesystem.read", R"([{ source = "/srv/data", target = "/data" }])");
  EXPECT_EQ(step_at(plan(), "/data")->source(), "/srv/data");
}

TEST_F(PlanTest, AMissingGrantIsAnErrorUnlessItIsOptional) {
  set("filesystem.read", R"(["/srv/missing"])");
  const Error failure = error();
  EXPECT_EQ(failure.code, "missing-grant");
  EXPECT_EQ(failure.errno_value, ENOENT);
  EXPECT_THAT(failure.hint, HasSubstr("optional"));
  set("filesystem.read", R"([{ source = "/srv/missing", optional = true }])");
  EXPECT_EQ(step_at(plan(), "/srv/missing"), nullptr);
}

TEST_F(PlanTest, WhatTheCallerCannotReadIsAnError) {
  canned.files->directory("/srv/shut", 0700).shut("/srv/shut");
  set("filesystem.read", R"(["/srv/shut"])");
  EXPECT_EQ(error().code, "unreadable-grant");
  EXPECT_THAT(error().hint, HasSubstr("chmod u+rx /srv/shut, or leave out --set"));
}

TEST_F(PlanTest, TheKernelsDirectoriesAreNeverGranted) {
  canned.files->link("/srv/way", "/proc").directory("/dev/shm/x").directory("/srv/data");
  for (const char* path :
       {"[\"/proc\"]", "[\"/sys\"]", "[\"/dev\"]", "[\"/\"]", "[\"/srv/way\"]"}) {
    policy.filesystem.read.clear();
    const std::string text(path);
    policy.filesystem.read.push_back({.value = {.source = text.substr(2, text.size() - 4)}});
    EXPECT_EQ(error().code, "forbidden-grant") << path;
  }
  policy.filesystem.read = {{.value = {.source = "/srv/data", .target = "/proc/x"}}};
  EXPECT_EQ(error().code, "forbidden-grant");
  policy.filesystem.read = {{.value = {.source = "/srv/data"}}};
  plan();
}

TEST_F(PlanTest, AGrantMayNotCoverTheHomeOfTheSandbox) {
  policy.filesystem.read = {{.value = {.source = "/home"}}};
  EXPECT_EQ(error().code, "forbidden-grant");
  policy.filesystem.read = {{.value = {.source = "/home/me/project"}}};
  plan();
}

TEST_F(PlanTest, SpecialFilesAreNotGranted) {
  canned.files->special("/srv/s", host::FileType::socket).special("/srv/p", host::FileType::fifo);
  policy.filesystem.read = {{.value = {.source = "/srv/s"}}};
  EXPECT_THAT(error().hint, HasSubstr("filesystem.sockets"));
  policy.filesystem.read = {{.value = {.source = "/srv/p"}}};
  EXPECT_EQ(error().code, "not-grantable");
}

TEST_F(PlanTest, NestedGrantsAreMountedShallowToDeep) {
  canned.files->directory("/srv/a/b/c");
  policy = policy_with({{"filesystem.read", R"(["/srv/a/b/c", "/srv/a"])"},
                        {"filesystem.write", R"(["/srv/a/b"])"}});
  const Plan decided = plan();
  EXPECT_LT(position_of(decided, "/srv/a"), position_of(decided, "/srv/a/b"));
  EXPECT_LT(position_of(decided, "/srv/a/b"), position_of(decided, "/srv/a/b/c"));
}

TEST_F(PlanTest, WriteBeatsReadAtOnePath) {
  canned.files->directory("/srv/a");
  policy =
      policy_with({{"filesystem.write", R"(["/srv/a"])"}, {"filesystem.read", R"(["/srv/a"])"}});
  const Plan decided = plan();
  ASSERT_THAT(decided, HasStep(MountKind::bind, "/srv/a"));
  EXPECT_FALSE(step_at(decided, "/srv/a")->read_only());
  EXPECT_EQ(std::ranges::count(decided.mounts, "/srv/a", &Mount::target), 1);
}

TEST_F(PlanTest, TwoSourcesAtOnePlaceAreAnError) {
  canned.files->directory("/srv/a").directory("/srv/b");
  set("filesystem.read",
      R"([{ source = "/srv/a", target = "/x" }, { source = "/srv/b", target = "/x" }])");
  EXPECT_EQ(error().code, "two-grants");
}

TEST_F(PlanTest, WhatTheSystemShowsNeedsNoStep) {
  canned.files->directory("/usr/share/fonts");
  set("filesystem.read", R"(["/usr/share/fonts", "/bin/true"])");
  const Plan decided = plan();
  EXPECT_EQ(step_at(decided, "/usr/share/fonts"), nullptr);
  EXPECT_EQ(step_at(decided, "/bin/true"), nullptr);
}

TEST_F(PlanTest, AMountPointThatAReadOnlyGrantLacksIsAnError) {
  canned.files->directory("/srv/a").directory("/srv/b").directory("/srv/c/in");
  set("filesystem.read",
      R"([{ source = "/srv/a", target = "/d" }, { source = "/srv/b", target = "/d/in" }])");
  EXPECT_EQ(error().code, "no-mount-point");
  set("filesystem.read",
      R"([{ source = "/srv/c", target = "/d" }, { source = "/srv/b", target = "/d/in" }])");
  EXPECT_EQ(step_at(plan(), "/d/in")->source(), "/srv/b");
}

TEST_F(PlanTest, ALinkInAGrantStandsWhereItLeads) {
  canned.files->directory("/mnt/x").link("/srv/a/x", "/mnt/x").directory("/srv/a");
  set("filesystem.read", R"(["/srv/a", "/srv/a/x"])");
  EXPECT_THAT(plan(), HasStep(MountKind::overlay, "/mnt/x"));
}

TEST_F(PlanTest, AGrantThroughADirectoryThatIsALinkInsideMakesItADirectory) {
  canned.files->directory("/var/tmp/build");
  EXPECT_THAT(plan(), HasStep(MountKind::symlink, "/var/tmp"));
  set("filesystem.read", R"(["/var/tmp/build"])");
  const Plan decided = plan();
  EXPECT_THAT(decided, HasStep(MountKind::scratch, "/var/tmp"));
  EXPECT_THAT(decided, HasStep(MountKind::overlay, "/var/tmp/build"));
}

TEST_F(PlanTest, AGrantedFileOfEtcReplacesTheSyntheticOne) {
  canned.files->file("/etc/hosts", "mine");
  EXPECT_THAT(plan(), HasStep(MountKind::file, "/etc/hosts"));
  set("filesystem.read", R"(["/etc/hosts"])");
  const Plan decided = plan();
  EXPECT_THAT(decided, HasStep(MountKind::bind, "/etc/hosts"));
  EXPECT_EQ(std::ranges::count(decided.mounts, "/etc/hosts", &Mount::target), 1);
}

class SubmountTest : public PlanTest {
 protected:
  SubmountTest() {
    canned.files->directory("/srv/a/disk/deep").special("/srv/a/disk/s", host::FileType::socket);
    canned.mounts(
        "1 0 8:1 / / rw - ext4 d rw\n2 1 8:2 / /srv/a/disk rw - xfs d rw\n"
        "3 2 8:3 / /srv/a/disk/deep rw - ext4 d rw\n4 1 8:4 / /srv/ab rw - ext4 d rw\n");
  }
};

TEST_F(SubmountTest, AsRootEachGetsAStepOfItsOwn) {
  canned.privileged();
  set("filesystem.read", R"([{ source = "/srv/a", target = "/data" }])");
  const Plan decided = plan();
  ASSERT_THAT(decided, HasStep(MountKind::overlay, "/data"));
  EXPECT_FALSE(is_recursive(*step_at(decided, "/data")));
  ASSERT_THAT(decided, HasStep(MountKind::overlay, "/data/disk"));
  EXPECT_EQ(step_at(decided, "/data/disk/deep")->source(), "/srv/a/disk/deep");
  EXPECT_EQ(step_at(decided, "/data/b"), nullptr);
  set("filesystem.write", R"(["/srv/a"])");
  const Plan live = plan();
  ASSERT_THAT(live, HasStep(MountKind::bind, "/srv/a/disk"));
  EXPECT_FALSE(step_at(live, "/srv/a/disk")->read_only());
}

TEST_F(SubmountTest, ForAnOrdinaryUserTheyComeAlongInABindWithoutItsSockets) {
  set("filesystem.read", R"(["/srv/a"])");
  const Plan decided = plan();
  ASSERT_THAT(decided, HasStep(MountKind::bind, "/srv/a"));
  EXPECT_TRUE(is_recursive(*step_at(decided, "/srv/a")));
  EXPECT_TRUE(step_at(decided, "/srv/a")->read_only());
  EXPECT_EQ(step_at(decided, "/srv/a/disk"), nullptr);
  EXPECT_THAT(decided, HasStep(MountKind::mask_file, "/srv/a/disk/s"));
  EXPECT_TRUE(is_degraded(decided, "'/srv/a'"));
}

TEST_F(SubmountTest, AnOrdinaryUserGetsACopyOfThemAndThatIsSaid) {
  policy = policy_with({{"filesystem.workspace.source", "\"/srv/a\""},
                        {"filesystem.workspace.mode", "\"overlay\""}});
  EXPECT_TRUE(is_degraded(plan(), "filesystem.workspace.mode"));
  canned.privileged();
  EXPECT_THAT(plan(), HasStep(MountKind::overlay, "/srv/a/disk"));
}

class LiveMemoryTest : public PlanTest {
 protected:
  std::vector<std::string> in_memory(const std::string& mounts, const char* grants) {
    canned.files->directory("/srv/a/disk").directory("/srv/up").file("/srv/f", "", 0644);
    canned.mounts("1 0 8:1 / / rw - ext4 d rw\n" + mounts);
    set("filesystem.write", grants);
    return plan().live_in_memory;
  }
};

TEST_F(LiveMemoryTest, ALiveGrantOnATmpfsIsCountedByItsGrowthAndThatIsSaid) {
  const std::string tmpfs = "2 1 0:5 / /srv rw - tmpfs t rw,size=1024k\n";
  EXPECT_THAT(in_memory(tmpfs, R"(["/srv/a", "/srv/f"])"),
              testing::ElementsAre("/srv/a", "/srv/f"));
  EXPECT_TRUE(is_degraded(plan(), "limits.disk"));
  set("filesystem.write", "[]");
  set("filesystem.read", R"(["/srv/a"])");
  EXPECT_THAT(plan().live_in_memory, testing::IsEmpty());
}

TEST_F(LiveMemoryTest, WhatIsMountedInTheGrantOrLaterOverItDecides) {
  const std::string within = "2 1 0:5 / /srv/a/disk rw - tmpfs t rw\n";
  EXPECT_THAT(in_memory(within, R"(["/srv/a"])"), testing::ElementsAre("/srv/a/disk"));
  const std::string under = "2 1 0:5 / /srv rw - tmpfs t rw\n3 2 8:2 / /srv rw - xfs d rw\n";
  EXPECT_THAT(in_memory(under, R"(["/srv/a"])"), testing::IsEmpty());
  const std::string beside = "2 1 0:5 / /srv/ab rw - tmpfs t rw\n";
  EXPECT_THAT(in_memory(beside, R"(["/srv/a"])"), testing::IsEmpty());
}

TEST_F(LiveMemoryTest, AnOverlayLiesWhereItsUpperLayerDoes) {
  const std::string overlay =
      "2 1 0:5 / /srv/a rw - overlay o rw,lowerdir=/l,upperdir=/srv/up/u,workdir=/srv/up/w\n";
  EXPECT_THAT(in_memory(overlay, R"(["/srv/a"])"), testing::IsEmpty());
  EXPECT_THAT(plan().live_on_overlay, testing::ElementsAre("/srv/a"));
  EXPECT_THAT(in_memory(overlay + "3 1 0:6 / /srv/up rw - tmpfs t rw\n", R"(["/srv/a"])"),
              testing::ElementsAre("/srv/a"));
}

TEST_F(LiveMemoryTest, MemoryThatIsNotCountedIsRefused) {
  for (const char* mount : {"ramfs r rw", "hugetlbfs h rw", "tmpfs t rw,size=0k"}) {
    canned.files->directory("/srv/a");
    canned.mounts("2 1 0:5 / /srv/a rw - " + std::string(mount) + "\n");
    set("filesystem.write", R"(["/srv/a"])");
    EXPECT_EQ(error().code, "uncountable-grant") << mount;
  }
}

TEST_F(PlanTest, AKernelFileSystemInAGrantIsAnErrorThatNamesIt) {
  canned.files->directory("/srv/chroot/proc");
  canned.mounts("2 1 0:5 / /srv/chroot/proc rw - proc proc rw\n");
  set("filesystem.read", R"(["/srv/chroot"])");
  const Error failure = error();
  EXPECT_EQ(failure.code, "unusable-submount");
  EXPECT_THAT(failure.message, HasSubstr("/srv/chroot/proc"));
}

TEST_F(PlanTest, OnlyRootNeedsIdmaps) {
  canned.files->directory("/srv/a").file("/srv/open", "", 0644).file("/srv/shut", "", 0600);
  set("filesystem.read", R"(["/srv/a", "/srv/open", "/srv/shut"])");
  for (const Mount& step : plan().mounts) EXPECT_FALSE(needs_idmap(step)) << step.target;
  canned.privileged();
  const Plan decided = plan();
  EXPECT_TRUE(needs_idmap(*step_at(decided, "/srv/a"))) << "what lies below is not known";
  EXPECT_FALSE(needs_idmap(*step_at(decided, "/srv/open")));
  EXPECT_TRUE(needs_idmap(*step_at(decided, "/srv/shut")));
  EXPECT_FALSE(needs_idmap(*step_at(decided, "/usr")));
}

TEST_F(PlanTest, TheOwnerOfTheSourceIsKept) {
  canned.files->directory("/srv/a").owner("/srv/a", 1001, 1002);
  set("filesystem.read", R"(["/srv/a"])");
  const Plan decided = plan();
  EXPECT_EQ(step_at(decided, "/srv/a")->host_source()->owner_uid, 1001U);
  EXPECT_EQ(step_at(decided, "/srv/a")->host_source()->owner_gid, 1002U);
}

TEST_F(PlanTest, SocketsInALiveGrantAreMaskedAndTheirDirectoriesPinned) {
  canned.files->special("/srv/a/run/x/agent.sock", host::FileType::socket).file("/srv/a/plain");
  set("filesystem.write", R"(["/srv/a"])");
  const Plan decided = plan();
  EXPECT_THAT(decided, HasStep(MountKind::mask_file, "/srv/a/run/x/agent.sock"));
  EXPECT_THAT(decided, HasStep(MountKind::pinned, "/srv/a/run"));
  EXPECT_THAT(decided, HasStep(MountKind::pinned, "/srv/a/run/x"));
  EXPECT_LT(position_of(decided, "/srv/a/run/x"), position_of(decided, "/srv/a/run/x/agent.sock"));
  EXPECT_EQ(step_at(decided, "/srv/a/plain"), nullptr);
  EXPECT_TRUE(is_degraded(decided, "'/srv/a'"));
}

TEST_F(PlanTest, ALiveGrantWithTooManyEntriesNamesTheKey) {
  canned.files->file("/srv/a/1").file("/srv/a/2").file("/srv/a/3");
  set("filesystem.write", R"(["/srv/a"])");
  policy.filesystem.scan.value = 2;
  const Error failure = error();
  EXPECT_EQ(failure.code, "too-many-entries");
  EXPECT_THAT(failure.hint, HasSubstr("filesystem.scan"));
  policy.filesystem.scan.value = 3;
  plan();
}

TEST_F(PlanTest, ASocketThatIsGrantedIsBound) {
  canned.files->special("/run/db.sock", host::FileType::socket)
      .special("/srv/a/own.sock", host::FileType::socket);
  policy = policy_with({{"filesystem.write", R"(["/srv/a"])"},
                        {"filesystem.sockets", R"(["/run/db.sock", "/srv/a/own.sock"])"}});
  const Plan decided = plan();
  EXPECT_THAT(decided, HasStep(MountKind::bind, "/run/db.sock"));
  EXPECT_THAT(decided, HasStep(MountKind::bind, "/srv/a/own.sock"));
  canned.files->file("/srv/file");
  set("filesystem.sockets", R"(["/srv/file"])");
  EXPECT_EQ(error().code, "not-a-socket");
  set("filesystem.sockets", R"(["/srv/no"])");
  EXPECT_EQ(error().code, "missing-grant");
}

TEST_F(PlanTest, SeedsAreCopiedToTheSamePlaceOfTheNewHome) {
  canned.files->file("/home/me/.cache/mpl/fontlist-3.json", "fonts")
      .file("/home/me/.cache/mpl/other.json", "x");
  set("filesystem.seed", R"(["~/.cache/mpl/fontlist-*.json", "~/.missing"])");
  const Plan decided = plan();
  const Mount* seed = step_at(decided, "/home/sandbox/.cache/mpl/fontlist-3.json");
  ASSERT_NE(seed, nullptr);
  EXPECT_EQ(content_of(*seed), "fonts");
  EXPECT_LT(position_of(decided, "/home/sandbox"), seed - decided.mounts.data());
  EXPECT_EQ(step_at(decided, "/home/sandbox/.cache/mpl/other.json"), nullptr);
  canned.files->file("/srv/x");
  set("filesystem.seed", R"(["/srv/x"])");
  EXPECT_EQ(error().code, "seed-outside-home");
}

TEST_F(PlanTest, OfGitsSettingsOnlyTheIdentityIsCopied) {
  canned.files->file("/home/me/.gitconfig",
                     "[User]\n\tname = Me Myself\n\temail=\"me@example.org\"\n\tsigningKey = X\n"
                     "[url \"https://me:secret@example.org/\"]\n\tinsteadOf = x:\n\tname = y\n"
                     "[init] defaultBranch = main\n[http]\n\textraHeader = secret\n"
                     "[user]\n\tname = a\\\n\tsecret = b\n");
  set("filesystem.seed", R"(["~/.gitconfig"])");
  const Plan decided = plan();
  const Mount* seed = step_at(decided, "/home/sandbox/.gitconfig");
  ASSERT_NE(seed, nullptr);
  EXPECT_EQ(content_of(*seed),
            "[user]\n\tname = Me Myself\n[user]\n\temail=\"me@example.org\"\n"
            "[init]\n\tdefaultBranch = main\n");
}

TEST_F(PlanTest, PolicyFilesAreReadOnlyInLiveGrants) {
  canned.files->file("/srv/a/conf/p.toml");
  set("filesystem.write", R"(["/srv/a"])");
  policy.files = {"/srv/a/conf/p.toml", "/home/me/elsewhere.toml"};
  const Plan decided = plan();
  EXPECT_THAT(decided, HasStep(MountKind::read_only, "/srv/a/conf/p.toml"));
  EXPECT_THAT(decided, HasStep(MountKind::pinned, "/srv/a/conf"));
  EXPECT_EQ(step_at(decided, "/home/me/elsewhere.toml"), nullptr);
}

}  // namespace
}  // namespace sbx::plan
