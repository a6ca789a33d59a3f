#include "plan_fixture.hpp"

namespace sbx::plan {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class RustupTest : public PlanTest {
 protected:
  RustupTest() {
    canned.host.path.insert(canned.host.path.begin(), "/home/me/.cargo/bin");
    canned.files->program("/home/me/.cargo/bin/rustup")
        .link("/home/me/.cargo/bin/rustc", "rustup")
        .file("/home/me/.rustup/settings.toml",
              "version = \"12\"\ndefault_toolchain = \"stable-x86_64-unknown-linux-gnu\"\n\n"
              "[overrides]\n\"/home/me/old\" = \"1.70-x86_64-unknown-linux-gnu\"\n");
    for (const char* toolchain : {"stable", "nightly", "1.70"}) {
      const std::string prefix =
          std::string("/home/me/.rustup/toolchains/") + toolchain + "-x86_64-unknown-linux-gnu";
      canned.files->program(prefix + "/bin/rustc").directory(prefix + "/lib");
    }
  }
  std::string toolchain() {
    const std::string path = plan({"rustc"}).executable;
    const std::string head = "/home/me/.rustup/toolchains/";
    return path.starts_with(head) ? path.substr(head.size(), path.find('-') - head.size()) : path;
  }
};

TEST_F(RustupTest, AProxyLeadsToTheDefaultToolchainAndShowsIt) {
  const Plan decided = plan({"rustc", "-V"});
  const std::string prefix = "/home/me/.rustup/toolchains/stable-x86_64-unknown-linux-gnu";
  EXPECT_EQ(decided.executable, prefix + "/bin/rustc");
  EXPECT_THAT(decided, HasStep(MountKind::bind, prefix + "/lib"));
  EXPECT_THAT(decided.interpreter.reason, HasSubstr("proxy of rustup"));
}

TEST_F(RustupTest, TheVariableWinsOverTheFileOverTheDirectoryOverTheDefault) {
  EXPECT_EQ(toolchain(), "stable");
  canned.host.working_directory = "/home/me/old/x";
  EXPECT_EQ(toolchain(), "1.70");
  canned.files->file("/home/me/old/rust-toolchain.toml", "[toolchain]\nchannel = \"nightly\"\n");
  EXPECT_EQ(toolchain(), "nightly");
  canned.host.environment["RUSTUP_TOOLCHAIN"] = "stable";
  EXPECT_EQ(toolchain(), "stable");
}

TEST_F(RustupTest, AToolchainFileCannotLeadElsewhere) {
  canned.files->file("/home/me/project/rust-toolchain", "../../project/evil\n")
      .program("/home/me/project/evil/bin/rustc");
  EXPECT_EQ(error({"rustc"}).kind, ErrorKind::not_found);
}

class VoltaTest : public PlanTest {
 protected:
  VoltaTest() {
    canned.host.path.insert(canned.host.path.begin(), "/home/me/.volta/bin");
    canned.files->program("/opt/volta/volta-shim")
        .file("/home/me/.volta/tools/user/platform.json",
              R"({"node": {"runtime": "20.1.0", "npm": null}, "yarn": "4.0.1"})");
    for (const char* name : {"node", "npm", "yarn", "tsc", "gone"})
      canned.files->link(std::string("/home/me/.volta/bin/") + name, "/opt/volta/volta-shim");
    const std::string tools = "/home/me/.volta/tools";
    for (const char* version : {"20.1.0", "18.0.0"}) {
      const std::string image = tools + "/image/node/" + version;
      canned.files->program(image + "/bin/node")
          .file(image + "/lib/node_modules/npm/bin/npm-cli.js", "#!/usr/bin/env node\n", 0755)
          .link(image + "/bin/npm", "../lib/node_modules/npm/bin/npm-cli.js");
    }
    canned.files->script(tools + "/image/yarn/4.0.1/bin/yarn", "#!/usr/bin/env node\n")
        .file(tools + "/user/bins/tsc.json", R"({"name": "tsc", "package": "typescript"})")
        .file(tools + "/image/packages/typescript/lib/node_modules/typescript/bin/tsc",
              "#!/usr/bin/env node\n", 0755)
        .link(tools + "/image/packages/typescript/bin/tsc",
              "../lib/node_modules/typescript/bin/tsc");
  }
};

TEST_F(VoltaTest, NodeIsThatOfTheUserUnlessTheProjectPinsOne) {
  EXPECT_EQ(plan({"node"}).executable, "/home/me/.volta/tools/image/node/20.1.0/bin/node");
  canned.files->file("/home/me/project/package.json", R"({"volta": {"node": "18.0.0"}})");
  const Plan decided = plan({"node"});
  EXPECT_EQ(decided.executable, "/home/me/.volta/tools/image/node/18.0.0/bin/node");
  EXPECT_THAT(decided.interpreter.reason, HasSubstr("/home/me/project/package.json"));
}

TEST_F(VoltaTest, ToolsBringTheirNode) {
  const std::string node = "/home/me/.volta/tools/image/node/20.1.0/bin/node";
  for (const char* name : {"npm", "yarn", "tsc"}) {
    const Plan decided = plan({name});
    EXPECT_EQ(decided.executable, node) << name;
    EXPECT_THAT(decided.command[1], HasSubstr("/.volta/tools/image/")) << name;
  }
}

TEST_F(VoltaTest, WhatIsMalformedOrMissingIsNotFound) {
  EXPECT_EQ(error({"gone"}).kind, ErrorKind::not_found);
  canned.files->file("/home/me/.volta/tools/user/platform.json", "{");
  EXPECT_THAT(error({"node"}).message, HasSubstr("platform.json"));
}

TEST_F(VoltaTest, APinCannotLeadElsewhere) {
  canned.files->file("/home/me/project/package.json",
                     R"({"volta": {"node": "../../../../project/evil"}})");
  canned.files->program("/home/me/project/evil/bin/node");
  EXPECT_EQ(error({"node"}).kind, ErrorKind::not_found);
}

class MiseTest : public PlanTest {
 protected:
  MiseTest() {
    canned.host.path.insert(canned.host.path.begin(), "/home/me/.local/share/mise/shims");
    canned.files->program("/home/me/.local/bin/mise");
    for (const char* name : {"node", "npm", "python3"})
      canned.files->link(std::string("/home/me/.local/share/mise/shims/") + name,
                         "/home/me/.local/bin/mise");
    const std::string installs = "/home/me/.local/share/mise/installs/";
    for (const char* version : {"20.1.0", "18.0.0"})
      canned.files->program(installs + "node/" + version + "/bin/node");
    canned.files->program(installs + "python/3.12.1/bin/python3.12")
        .link(installs + "python/3.12.1/bin/python3", "python3.12")
        .file("/home/me/.config/mise/config.toml",
              "[tools]\nnode = \"20\" # newest\npython = ['3.12', \"3.11\"]\n");
  }
};

TEST_F(MiseTest, AShimLeadsToTheVersionOfTheNearestFile) {
  const std::string installs = "/home/me/.local/share/mise/installs/";
  EXPECT_EQ(plan({"node"}).executable, installs + "node/20.1.0/bin/node");
  EXPECT_EQ(plan({"python3"}).executable, installs + "python/3.12.1/bin/python3.12");
  canned.files->file("/home/me/project/mise.toml", "[tools]\nnode = {version = \"18.0.0\"}\n");
  EXPECT_EQ(plan({"node"}).executable, installs + "node/18.0.0/bin/node");
  canned.host.environment["MISE_NODE_VERSION"] = "20.1.0";
  EXPECT_THAT(plan({"node"}).interpreter.reason, HasSubstr("MISE_NODE_VERSION"));
}

TEST_F(MiseTest, WithoutAVersionTheSystemsIsTaken) {
  canned.files->file("/home/me/.config/mise/config.toml", "");
  EXPECT_EQ(plan({"node"}).executable, "/usr/bin/node");
}

TEST_F(MiseTest, AVersionCannotLeadElsewhere) {
  canned.files->file("/home/me/project/.mise.toml",
                     "[tools]\nnode = \"../../../../../project/evil\"\n");
  canned.files->program("/home/me/project/evil/bin/node");
  EXPECT_EQ(plan({"node"}).executable, "/usr/bin/node");
}

// --- compiled languages ---

class RecipeTest : public PlanTest {
 protected:
  RecipeTest() {
    canned.files->program("/usr/bin/gcc-12").link("/usr/bin/cc", "gcc-12");
    canned.files->program("/usr/bin/g++-12").link("/usr/bin/c++", "/etc/alternatives/c++");
    canned.files->link("/etc/alternatives/c++", "/usr/bin/g++-12");
    canned.files->file("/home/me/project/job.c", "").file("/home/me/project/job.cpp", "");
  }
};

TEST_F(RecipeTest, ASourceIsCompiledByAShellThatBecomesTheProgram) {
  const Plan decided = plan({"job.c", "--json", "x"});
  EXPECT_EQ(decided.executable, "/usr/bin/sh");
  ASSERT_EQ(decided.command.size(), 8U);
  EXPECT_THAT(decided.command[2], HasSubstr("exec \"$build/program\" \"$@\""));
  EXPECT_EQ(decided.command[4], "/usr/bin/cc");
  EXPECT_THAT(std::vector(decided.command.end() - 2, decided.command.end()),
              ElementsAre("--json", "x"));
  EXPECT_EQ(decided.interpreter.path, "/usr/bin/gcc-12");
  EXPECT_THAT(decided.interpreter.reason, HasSubstr("extension .c"));
}

TEST_F(RecipeTest, TheCompilerKeepsTheNameThatTellsItsLanguage) {
  EXPECT_THAT(plan({"job.cpp"}).command, Contains("/usr/bin/c++"));
}

TEST_F(RecipeTest, CodeIsAnArgumentOfTheShellAndNeverPartOfItsScript) {
  RunRequest asked = request({"a b"});
  asked.language = "c";
  asked.code = "int main(){} // $(touch /tmp/x)";
  const Plan decided = plan(asked);
  EXPECT_THAT(decided.command[2], testing::Not(HasSubstr("touch")));
  EXPECT_THAT(std::vector(decided.command.end() - 2, decided.command.end()),
              ElementsAre(*asked.code, "a b"));
}

TEST_F(RecipeTest, AnAllowedInterpreterIsTheCompiler) {
  set("interpreters.allow", "[\"python3\"]");
  EXPECT_EQ(error({"job.c"}).code, "interpreter-not-allowed");
  set("interpreters.allow", "[\"cc\"]");
  EXPECT_EQ(plan({"job.c"}).executable, "/usr/bin/sh");
}

TEST_F(RecipeTest, AMissingCompilerIsNamed) {
  canned.files->file("/home/me/project/job.rs", "");
  const Error failure = error({"job.rs"});
  EXPECT_EQ(failure.kind, ErrorKind::not_found);
  EXPECT_THAT(failure.message, HasSubstr("'rustc'"));
}

TEST_F(RecipeTest, NodeNeedsARecipeForTypeScriptAndOtherRunTimesDoNot) {
  canned.files->file("/home/me/project/job.ts", "");
  EXPECT_EQ(plan({"job.ts"}).executable, "/usr/bin/sh");
  canned.files->program("/usr/local/bin/bun");
  EXPECT_EQ(plan({"job.ts"}).executable, "/usr/local/bin/bun");
}

}  // namespace
}  // namespace sbx::plan
