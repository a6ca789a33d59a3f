#include <unistd.h>

#include "plan_fixture.hpp"

namespace sbx::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kPrefix = "/home/me/.pyenv/versions/3.11.7";

class PyenvTest : public PlanTest {
 protected:
  PyenvTest() {
    constexpr const char* kShim =
        "#!/usr/bin/env bash\nexport PYENV_ROOT=\"/home/me/.pyenv\"\n"
        "exec \"/home/me/.pyenv/libexec/pyenv\" exec \"$program\" \"$@\"\n";
    canned.host.path.insert(canned.host.path.begin(), "/home/me/.pyenv/shims");
    canned.files->script("/home/me/.pyenv/shims/python3", kShim)
        .script("/home/me/.pyenv/shims/flask", kShim)
        .file("/home/me/.pyenv/version", "3.11.7\n");
    for (const char* version : {"3.11.7", "3.9.2", "3.9.18"}) {
      const std::string prefix = std::string("/home/me/.pyenv/versions/") + version;
      const std::string real = std::string(version).starts_with("3.9") ? "python3.9" : "python3.11";
      canned.files->program(prefix + "/bin/" + real).link(prefix + "/bin/python3", real);
      canned.files->directory(prefix + "/lib").directory(prefix + "/secret");
    }
    canned.files->script(std::string(kPrefix) + "/bin/flask",
                         "#!" + std::string(kPrefix) + "/bin/python3.11\n");
  }
};

TEST_F(PyenvTest, AShimLeadsToTheVersionOfTheVersionFile) {
  const Plan decided = plan({"python3", "-c", "1"});
  EXPECT_EQ(decided.executable, std::string(kPrefix) + "/bin/python3.11");
  EXPECT_EQ(decided.interpreter.prefix, kPrefix);
  EXPECT_THAT(decided.interpreter.reason, HasSubstr("shim of pyenv"));
  EXPECT_THAT(decided.command, ElementsAre(std::string(kPrefix) + "/bin/python3", "-c", "1"));
  EXPECT_EQ(variable(decided, "PATH"), std::string(kPrefix) + "/bin:/usr/local/bin:/usr/bin:/bin");
}

TEST_F(PyenvTest, OnlyTheProgramDirectoriesOfThePrefixAreShown) {
  const Plan decided = plan({"python3"});
  EXPECT_THAT(decided, HasStep(MountKind::bind, std::string(kPrefix) + "/bin"));
  EXPECT_THAT(decided, HasStep(MountKind::bind, std::string(kPrefix) + "/lib"));
  EXPECT_TRUE(step_at(decided, std::string(kPrefix) + "/lib")->read_only());
  EXPECT_EQ(step_at(decided, std::string(kPrefix) + "/secret"), nullptr);
  EXPECT_EQ(step_at(decided, kPrefix), nullptr);
}

TEST_F(PyenvTest, TheVariableWinsOverTheDirectoryAndTheDirectoryOverTheRoot) {
  canned.files->file("/home/me/.python-version", "3.9.2 # old\n");
  EXPECT_THAT(plan({"python3"}).executable, HasSubstr("/3.9.2/"));
  canned.host.environment["PYENV_VERSION"] = "3.11.7";
  EXPECT_THAT(plan({"python3"}).executable, HasSubstr("/3.11.7/"));
}

TEST_F(PyenvTest, AShortVersionIsTheNewestOfItsKind) {
  canned.host.environment["PYENV_VERSION"] = "3.9";
  EXPECT_THAT(plan({"python3"}).executable, HasSubstr("/3.9.18/"));
}

TEST_F(PyenvTest, SystemIsTheNextOnThePath) {
  canned.host.environment["PYENV_VERSION"] = "system";
  EXPECT_EQ(plan({"python3"}).executable, "/usr/bin/python3.11");
}

TEST_F(PyenvTest, AMissingVersionIsNotFoundAndNamed) {
  canned.files->file("/home/me/project/.python-version", "3.99\n");
  const Error failure = error({"python3"});
  EXPECT_EQ(failure.kind, ErrorKind::not_found);
  EXPECT_THAT(failure.message, HasSubstr("3.99"));
  EXPECT_THAT(failure.message, HasSubstr("/home/me/project/.python-version"));
}

TEST_F(PyenvTest, AVersionFileOfTheDirectoryCannotLeadOutOfTheVersions) {
  canned.files->file("/home/me/project/.python-version", "../../../me/project/evil\n");
  canned.files->program("/home/me/project/evil/bin/python3");
  EXPECT_EQ(error({"python3"}).kind, ErrorKind::not_found);
}

TEST_F(PyenvTest, AToolOfThePrefixBringsItsInterpreter) {
  const Plan decided = plan({"flask", "run"});
  EXPECT_EQ(decided.executable, std::string(kPrefix) + "/bin/python3.11");
  EXPECT_THAT(decided.command, ElementsAre(std::string(kPrefix) + "/bin/python3.11",
                                           std::string(kPrefix) + "/bin/flask", "run"));
}

TEST_F(PyenvTest, AScriptOfThatInterpreterSeesIt) {
  canned.files->file("/home/me/project/job", "#!/usr/bin/env python3\n");
  EXPECT_EQ(plan({"job"}).interpreter.prefix, kPrefix);
}

TEST_F(PlanTest, OtherManagersOfTheKindAreFollowedToo) {
  canned.host.path.insert(canned.host.path.begin(), "/opt/rbenv/shims");
  canned.files
      ->script(
          "/opt/rbenv/shims/ruby",
          "#!/bin/sh\nexport RBENV_ROOT=\"/opt/rbenv\"\nexec \"/opt/rbenv/libexec/rbenv\" exec x\n")
      .file("/opt/rbenv/version", "3.2.0")
      .program("/opt/rbenv/versions/3.2.0/bin/ruby");
  EXPECT_EQ(plan({"ruby"}).executable, "/opt/rbenv/versions/3.2.0/bin/ruby");
}

TEST_F(PlanTest, AsdfIsFollowed) {
  canned.host.path.insert(canned.host.path.begin(), "/home/me/.asdf/shims");
  canned.files
      ->script(
          "/home/me/.asdf/shims/node",
          "#!/usr/bin/env bash\n# asdf-plugin: nodejs 20.1.0\nexec asdf exec \"node\" \"$@\"\n")
      .file("/home/me/.tool-versions", "ruby 3\nnodejs 20.1.0\n")
      .program("/home/me/.asdf/installs/nodejs/20.1.0/bin/node");
  EXPECT_EQ(plan({"node"}).executable, "/home/me/.asdf/installs/nodejs/20.1.0/bin/node");
}

TEST_F(PlanTest, AnInterpreterInTheHomeItselfShowsNextToNothing) {
  canned.host.path.insert(canned.host.path.begin(), "/home/me/.local/bin");
  canned.files->program("/home/me/.local/bin/python3.12")
      .directory("/home/me/.local/lib/python3.12")
      .directory("/home/me/.local/lib/other")
      .directory("/home/me/.local/share/keyrings");
  const Plan decided = plan({"python3.12"});
  EXPECT_EQ(decided.executable, "/home/me/.local/bin/python3.12");
  EXPECT_THAT(decided, HasStep(MountKind::bind, "/home/me/.local/bin/python3.12"));
  EXPECT_THAT(decided, HasStep(MountKind::bind, "/home/me/.local/lib/python3.12"));
  for (const char* hidden : {"/home/me/.local/bin", "/home/me/.local/lib", "/home/me/.local/share",
                             "/home/me/.local/lib/other"})
    EXPECT_EQ(step_at(decided, hidden), nullptr) << hidden;
}

TEST_F(PlanTest, AToolOutsideTheSystemIsShownAlone) {
  canned.host.path.insert(canned.host.path.begin(), "/opt/x/bin");
  canned.files->program("/opt/x/bin/tool").directory("/opt/x/lib");
  const Plan decided = plan({"tool"});
  EXPECT_EQ(decided.executable, "/opt/x/bin/tool");
  EXPECT_THAT(decided, HasStep(MountKind::bind, "/opt/x/bin/tool"));
  EXPECT_EQ(step_at(decided, "/opt/x/bin"), nullptr);
  EXPECT_EQ(step_at(decided, "/opt/x/lib"), nullptr);
}

class VenvTest : public PlanTest {
 protected:
  VenvTest() {
    canned.files->file("/srv/venv/pyvenv.cfg", "home = /opt/py/bin\nversion = 3.11\n")
        .link("/srv/venv/bin/python", "python3")
        .link("/srv/venv/bin/python3", "/opt/py/bin/python3.11")
        .directory("/srv/venv/lib")
        .link("/srv/venv/lib64", "lib")
        .directory("/srv/venv/src")
        .program("/opt/py/bin/python3.11")
        .directory("/opt/py/lib")
        .script("/srv/venv/bin/pytest", "#!/srv/venv/bin/python\n");
  }
};

TEST_F(VenvTest, ItsPythonIsExecutedByItsOwnPath) {
  const Plan decided = plan({"/srv/venv/bin/python", "-V"});
  EXPECT_EQ(decided.executable, "/srv/venv/bin/python");
  EXPECT_EQ(decided.interpreter.path, "/opt/py/bin/python3.11");
  EXPECT_THAT(decided, HasStep(MountKind::bind, "/srv/venv/pyvenv.cfg"));
  EXPECT_THAT(decided, HasStep(MountKind::bind, "/srv/venv/lib"));
  EXPECT_THAT(decided, HasStep(MountKind::symlink, "/srv/venv/lib64"));
  EXPECT_THAT(decided, HasStep(MountKind::bind, "/opt/py/lib"));
  EXPECT_EQ(step_at(decided, "/srv/venv/src"), nullptr);
}

TEST_F(VenvTest, AProgramInItBringsIt) {
  const Plan decided = plan({"/srv/venv/bin/pytest"});
  EXPECT_EQ(decided.executable, "/srv/venv/bin/python");
  EXPECT_THAT(decided.command, ElementsAre("/srv/venv/bin/python", "/srv/venv/bin/pytest"));
}

TEST_F(VenvTest, ThePolicyCanNameIt) {
  canned.files->file("/home/me/project/job.py", "");
  EXPECT_EQ(plan({"job.py"}).executable, "/usr/bin/python3.11");
  set("interpreters.venv", "\"/srv/venv\"");
  const Plan decided = plan({"job.py"});
  EXPECT_EQ(decided.executable, "/srv/venv/bin/python3");
  EXPECT_EQ(plan({"pytest"}).executable, "/srv/venv/bin/python");
  EXPECT_THAT(variable(decided, "PATH"), testing::StartsWith("/srv/venv/bin:"));
}

TEST_F(VenvTest, ADirectoryThatIsNoneIsAnError) {
  set("interpreters.venv", "\"/opt/py\"");
  EXPECT_EQ(error().code, "no-venv");
}

TEST_F(VenvTest, InAGrantItNeedsNothingMore) {
  set("filesystem.read", R"(["/srv/venv", "/opt/py"])");
  const Plan decided = plan({"/srv/venv/bin/python"});
  EXPECT_EQ(decided.executable, "/srv/venv/bin/python");
  EXPECT_EQ(step_at(decided, "/srv/venv/lib"), nullptr);
}

class ProjectEnvironmentTest : public PlanTest {
 protected:
  ProjectEnvironmentTest() {
    set("filesystem.workspace.mode", "\"overlay\"");
    canned.files->file("/home/me/project/job.py", "")
        .file("/home/me/project/app/tool.py", "")
        .file("/home/me/project/.venv/pyvenv.cfg", "home = /usr/bin\n")
        .link("/home/me/project/.venv/bin/python", "/usr/bin/python3")
        .link("/home/me/project/.venv/bin/python3", "python");
  }
  static constexpr const char* kPython = "/home/me/project/.venv/bin/python3";
};

TEST_F(ProjectEnvironmentTest, IsUsedAndNamedOnce) {
  const Plan decided = plan({"job.py"});
  EXPECT_EQ(decided.executable, kPython);
  EXPECT_EQ(decided.interpreter.prefix, "/home/me/project/.venv");
  EXPECT_THAT(decided.notes, ElementsAre("using the virtual environment '/home/me/project/.venv'"));
}

TEST_F(ProjectEnvironmentTest, IsFoundAboveTheScript) {
  EXPECT_EQ(plan({"app/tool.py"}).executable, kPython);
  canned.host.working_directory = "/home/me/project/app";
  EXPECT_NE(plan({"tool.py"}).executable, kPython) << "the directory above is not shown";
}

TEST_F(ProjectEnvironmentTest, CodeAndCommandsUseItToo) {
  RunRequest asked;
  asked.language = "python";
  asked.code = "1";
  EXPECT_EQ(plan(asked).executable, kPython);
  EXPECT_EQ(plan({"python3"}).executable, kPython);
}

TEST_F(ProjectEnvironmentTest, OtherProgramsDoNotSpeakOfIt) {
  const Plan decided = plan({"true"});
  EXPECT_THAT(decided.notes, testing::IsEmpty());
}

TEST_F(ProjectEnvironmentTest, AnEmptyWorkspaceHasNone) {
  set("filesystem.workspace.mode", "\"empty\"");
  EXPECT_EQ(plan({"job.py"}).executable, "/usr/bin/python3.11");
}

TEST_F(ProjectEnvironmentTest, AnActivatedOneIsTheCallersChoice) {
  canned.host.environment["VIRTUAL_ENV"] = "/srv/venv";
  canned.host.path.insert(canned.host.path.begin(), "/srv/venv/bin");
  EXPECT_EQ(plan({"job.py"}).executable, "/usr/bin/python3.11");
}

TEST_F(ProjectEnvironmentTest, AnUnknownInterpreterIsNotShownUnasked) {
  canned.files->program("/home/me/private/bin/python3.12")
      .directory("/home/me/private/lib")
      .link("/home/me/project/.venv/bin/python", "/home/me/private/bin/python3.12");
  const Plan decided = plan({"job.py"});
  EXPECT_EQ(decided.executable, "/usr/bin/python3.11");
  EXPECT_EQ(step_at(decided, "/home/me/private/lib"), nullptr);
  ASSERT_EQ(decided.notes.size(), 1U);
  EXPECT_THAT(decided.notes[0], HasSubstr("is not used: its interpreter"));
  EXPECT_THAT(decided.notes[0], HasSubstr("--venv '/home/me/project/.venv'"));
  set("interpreters.venv", "\"/home/me/project/.venv\"");
  EXPECT_NE(step_at(plan({"job.py"}), "/home/me/private/lib"), nullptr) << "named, it is";
}

TEST_F(ProjectEnvironmentTest, AVersionManagersInterpreterIsKnown) {
  canned.files->program("/home/me/.local/share/uv/python/cpython-3.12/bin/python3.12")
      .link("/home/me/project/.venv/bin/python",
            "/home/me/.local/share/uv/python/cpython-3.12/bin/python3.12");
  EXPECT_EQ(plan({"job.py"}).executable, kPython);
}

TEST_F(ProjectEnvironmentTest, AProgramThatLeadsOutIsRefused) {
  canned.files->program("/home/me/private/tool")
      .link("/home/me/project/.venv/bin/pytest", "/home/me/private/tool");
  const Plan decided = plan({"job.py"});
  EXPECT_EQ(decided.executable, "/usr/bin/python3.11");
  ASSERT_EQ(decided.notes.size(), 1U);
  EXPECT_THAT(decided.notes[0], HasSubstr("'pytest' leads to '/home/me/private/tool'"));
}

TEST_F(ProjectEnvironmentTest, ALinkIsRefused) {
  canned.files->file("/srv/venv/pyvenv.cfg", "home = /usr/bin\n")
      .link("/srv/venv/bin/python", "/usr/bin/python3")
      .link("/home/me/project/app/.venv", "/srv/venv");
  const Plan decided = plan({"app/tool.py"});
  EXPECT_EQ(decided.executable, "/usr/bin/python3.11");
  ASSERT_EQ(decided.notes.size(), 1U);
  EXPECT_THAT(decided.notes[0], HasSubstr("it is a symbolic link"));
}

TEST_F(ProjectEnvironmentTest, ItsProgramsDoNotHideThoseOfTheSystem) {
  constexpr const char* kOwn = "#!/home/me/project/.venv/bin/python\n";
  canned.files->script("/home/me/project/.venv/bin/git", kOwn)
      .script("/home/me/project/.venv/bin/pytest", kOwn)
      .script("/home/me/project/.venv/bin/only-here", kOwn)
      .program("/usr/bin/git")
      .script("/usr/bin/pytest", "#!/usr/bin/python3\n");
  EXPECT_EQ(plan({"git"}).executable, "/usr/bin/git");
  EXPECT_THAT(plan({"pytest"}).command, testing::Contains("/home/me/project/.venv/bin/pytest"));
  EXPECT_THAT(plan({"only-here"}).command,
              testing::Contains("/home/me/project/.venv/bin/only-here"));
}

TEST_F(ProjectEnvironmentTest, ALiveWorkspaceShowsItReadOnly) {
  set("filesystem.workspace.mode", "\"read-write\"");
  EXPECT_THAT(plan({"job.py"}), HasStep(MountKind::read_only, "/home/me/project/.venv"));
}

TEST_F(PlanTest, AsRootAPrefixThatOthersCannotReadIsIdmapped) {
  canned.privileged();
  canned.host.path.insert(canned.host.path.begin(), "/opt/py/bin");
  canned.files->directory("/opt/py/bin", 0700).directory("/opt/py/lib", 0755);
  canned.files->program("/opt/py/bin/python3.12");
  const Plan decided = plan({"python3.12"});
  EXPECT_TRUE(needs_idmap(*step_at(decided, "/opt/py/bin")));
  EXPECT_FALSE(needs_idmap(*step_at(decided, "/opt/py/lib")));
}

TEST(RealPyenv, ItsShimIsResolvedByReading) {
  const auto host = host::probe();
  ASSERT_TRUE(host.has_value());
  const std::string root = host->home + "/.pyenv";
  const auto version = host->files->read_head(root + "/version", 64);
  if (!version || ::access((root + "/shims/python3").c_str(), X_OK) != 0)
    GTEST_SKIP() << "the caller has no pyenv with a global version";
  const std::string prefix = root + "/versions/" + version->substr(0, version->find('\n'));
  host::Host clean = *host;
  clean.environment.erase("PYENV_VERSION");
  clean.working_directory = "/";
  const auto decided =
      make_plan(policy_with({}), clean, request({root + "/shims/python3", "-c", "1"}));
  // A path that names a file is a script, and this one begins with "#!", so the shim is called by
  // name.
  ASSERT_TRUE(decided.has_value()) << decided.error().text();
  clean.path.insert(clean.path.begin(), root + "/shims");
  const auto named = make_plan(policy_with({}), clean, request({"python3", "-c", "1"}));
  ASSERT_TRUE(named.has_value()) << named.error().text();
  const auto python = host->files->canonical(prefix + "/bin/python3");
  ASSERT_TRUE(python.has_value());
  EXPECT_EQ(named->executable, *python);
  EXPECT_EQ(named->interpreter.prefix, prefix);
  EXPECT_THAT(*named, HasStep(MountKind::bind, prefix + "/lib"));
}

}  // namespace
}  // namespace sbx::plan
