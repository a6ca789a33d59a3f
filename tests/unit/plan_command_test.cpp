#include <elf.h>

#include "plan/program/languages.hpp"
#include "plan/program/shebang.hpp"
#include "plan_fixture.hpp"

namespace sbx::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

RunRequest command(std::vector<std::string> operands) {
  RunRequest asked = request(std::move(operands));
  asked.after_dashes = true;
  return asked;
}

RunRequest code(std::string language, std::string text, std::vector<std::string> arguments = {}) {
  RunRequest asked = request(std::move(arguments));
  asked.language = std::move(language);
  asked.code = std::move(text);
  return asked;
}

TEST(ShebangLine, IsReadAsTheKernelReadsIt) {
  const auto line = read_shebang("#! /usr/bin/awk  -f  -x \nrest");
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->interpreter, "/usr/bin/awk");
  EXPECT_THAT(line->arguments, ElementsAre("-f  -x"));
  EXPECT_FALSE(read_shebang("#!\nx").has_value());
  EXPECT_FALSE(read_shebang("# !/bin/sh").has_value());
}

TEST(ShebangLine, EnvIsSeenThrough) {
  EXPECT_THAT(*env_command({"/usr/bin/env", {"python3"}}), ElementsAre("python3"));
  EXPECT_THAT(*env_command({"/usr/bin/env", {"-S python3 -u 'a b'"}}),
              ElementsAre("python3", "-u", "a b"));
  EXPECT_FALSE(env_command({"/usr/bin/env", {"-i sh"}}).has_value());
  EXPECT_FALSE(env_command({"/usr/bin/env", {"-S A=1 sh"}}).has_value());
  EXPECT_FALSE(env_command({"/bin/sh", {"-e"}}).has_value());
}

TEST_F(PlanTest, ACommandIsFoundOnThePathOfTheCaller) {
  const Plan decided = plan({"true", "--json", "-x"});
  EXPECT_EQ(decided.executable, "/usr/bin/true");
  EXPECT_THAT(decided.command, ElementsAre("true", "--json", "-x"));
  EXPECT_EQ(decided.interpreter.path, "");
}

TEST_F(PlanTest, AnUnknownCommandIsNotFoundAndTheNearestIsSuggested) {
  const Error failure = error({"pyhton3"});
  EXPECT_EQ(failure.kind, ErrorKind::not_found);
  EXPECT_THAT(failure.hint, HasSubstr("'python3'"));
  EXPECT_EQ(error({"xyzzy"}).hint,
            "name a program that is installed here, on PATH, or a file by its path, as "
            "./script.py");
}

TEST_F(PlanTest, AnInterpreterThatIsMissingIsToldWithItsPackage) {
  canned.files->file("/home/me/project/a.rb");
  const Error failure = error({"a.rb"});
  EXPECT_EQ(failure.code, "no-interpreter");
  EXPECT_THAT(failure.hint, HasSubstr("sudo apt install ruby"));
}

TEST_F(PlanTest, AnExistingFileIsAScriptUnlessDashesSayCommand) {
  canned.files->script("/home/me/project/true", "#!/bin/sh\n");
  EXPECT_THAT(plan({"true"}).command, ElementsAre("/bin/sh", "true"));
  EXPECT_EQ(plan(command({"true"})).executable, "/usr/bin/true");
}

TEST_F(PlanTest, ADirectoryOfThatNameIsNoScript) {
  canned.files->directory("/home/me/project/true");
  EXPECT_EQ(plan({"true"}).executable, "/usr/bin/true");
}

TEST_F(PlanTest, AScriptIsRunByItsExtension) {
  canned.files->file("/home/me/project/job.py", "print(1)");
  const Plan decided = plan({"job.py", "a"});
  EXPECT_EQ(decided.executable, "/usr/bin/python3.11");
  EXPECT_THAT(decided.command, ElementsAre("python3", "job.py", "a"));
  EXPECT_EQ(decided.interpreter.path, "/usr/bin/python3.11");
  EXPECT_THAT(decided.interpreter.reason, HasSubstr("extension .py"));
}

TEST_F(PlanTest, TheShebangLineWinsOverTheExtensionAndTheOptionOverBoth) {
  canned.files->file("/home/me/project/job.py", "#!/usr/bin/perl -w\n");
  EXPECT_THAT(plan({"job.py"}).command, ElementsAre("/usr/bin/perl", "-w", "job.py"));
  RunRequest asked = request({"job.py"});
  asked.language = "bash";
  EXPECT_THAT(plan(asked).command, ElementsAre("bash", "job.py"));
}

TEST_F(PlanTest, EnvInAShebangLineIsResolvedOnTheHost) {
  canned.files->file("/home/me/project/job", "#!/usr/bin/env -S python3 -u\n");
  const Plan decided = plan({"job"});
  EXPECT_EQ(decided.executable, "/usr/bin/python3.11");
  EXPECT_THAT(decided.command, ElementsAre("python3", "-u", "job"));
}

TEST_F(PlanTest, EnvThatDoesMoreThanFindingRunsInside) {
  canned.files->file("/home/me/project/job", "#!/usr/bin/env -S A=1 python3\n");
  EXPECT_THAT(plan({"job"}).command, ElementsAre("/usr/bin/env", "-S A=1 python3", "job"));
}

TEST_F(PlanTest, AScriptMayHaveAnyName) {
  canned.files->file("/home/me/project/...", "#!/bin/sh\n").file("/home/me/project/.x.py", "");
  EXPECT_THAT(plan({"..."}).command, ElementsAre("/bin/sh", "..."));
  EXPECT_THAT(plan({".x.py"}).command, ElementsAre("python3", ".x.py"));
}

TEST_F(PlanTest, AMissingInterpreterIsNotExecutable) {
  canned.files->file("/home/me/project/job", "#!/usr/bin/nothing\n");
  EXPECT_EQ(error({"job"}).kind, ErrorKind::not_executable);
  EXPECT_THAT(error({"job"}).message, HasSubstr("/usr/bin/nothing"));
  canned.files->file("/home/me/project/job", "#!/usr/bin/env nothing\n");
  EXPECT_EQ(error({"job"}).kind, ErrorKind::not_executable);
}

TEST_F(PlanTest, AProgramRunsItself) {
  canned.files->program("/home/me/project/a.out");
  const Plan decided = plan({"./a.out"});
  EXPECT_EQ(decided.executable, "/home/me/project/a.out");
  EXPECT_THAT(decided.command, ElementsAre("./a.out"));
  canned.files->file("/home/me/project/b.out",
                     "\x7f"
                     "ELF",
                     0644);
  EXPECT_EQ(error({"./b.out"}).kind, ErrorKind::not_executable);
}

/// The first 64 bytes of an ELF file, elf(5): class 1 or 2, little-endian or big-endian, built for
/// `machine`.
std::string elf_header(int wide, int order, unsigned machine) {
  std::string head(64, '\0');
  head.replace(0, 4,
               "\x7f"
               "ELF");
  head[4] = static_cast<char>(wide);
  head[5] = static_cast<char>(order);
  head[6] = 1;
  head[order == 1 ? 16 : 17] = 2;
  head[order == 1 ? 18 : 19] = static_cast<char>(machine & 0xff);
  head[order == 1 ? 19 : 18] = static_cast<char>(machine >> 8);
  return head;
}

TEST_F(PlanTest, AProgramOfAnotherArchitectureIsNamed) {
#if defined(__x86_64__)
  constexpr unsigned kOwn = EM_X86_64;
  constexpr unsigned kOther = EM_AARCH64;
  constexpr const char* kOtherName = "64-bit Arm";
#else
  constexpr unsigned kOwn = EM_AARCH64;
  constexpr unsigned kOther = EM_X86_64;
  constexpr const char* kOtherName = "x86-64";
#endif
  const std::string path = "/home/me/project/foreign";
  const auto refusal = [&](const std::string& head) {
    canned.files->file(path, head, 0755);
    const Error failure = error({"./foreign"});
    EXPECT_EQ(failure.kind, ErrorKind::not_executable);
    EXPECT_EQ(failure.code, "foreign-architecture");
    return failure.message;
  };
  EXPECT_THAT(refusal(elf_header(2, 1, kOther)), HasSubstr(kOtherName));
  EXPECT_THAT(refusal(elf_header(1, 1, EM_386)), HasSubstr("32-bit x86"));
  EXPECT_THAT(refusal(elf_header(1, 1, EM_ARM)), HasSubstr("32-bit Arm"));
  EXPECT_THAT(refusal(elf_header(1, 1, EM_X86_64)), HasSubstr("x32"));
  EXPECT_THAT(refusal(elf_header(2, 2, kOwn)), HasSubstr("big-endian"));
  EXPECT_THAT(refusal(elf_header(2, 1, 4711)), HasSubstr("ELF number 4711"));
  canned.files->script("/home/me/project/script", "#!" + path + "\n");
  EXPECT_EQ(error({"./script"}).code, "foreign-architecture");
  // The twin: what this machine was built for, and what the kernel has another interpreter for.
  canned.files->file(path, elf_header(2, 1, kOwn), 0755);
  EXPECT_EQ(plan({"./foreign"}).executable, path);
  canned.files->file(path, elf_header(2, 1, EM_RISCV), 0755);
  const std::string entry =
      "interpreter /usr/bin/qemu-riscv64-static\nflags: F\noffset 0\n"
      "magic 7f454c460201010000000000000000000200f300\n"
      "mask ffffffffffffff00fffffffffffffffffeffffff\n";
  canned.files->directory("/proc/sys/fs/binfmt_misc")
      .file("/proc/sys/fs/binfmt_misc/register")
      .file("/proc/sys/fs/binfmt_misc/qemu-riscv64", "disabled\n" + entry);
  EXPECT_EQ(error({"./foreign"}).code, "foreign-architecture");
  canned.files->file("/proc/sys/fs/binfmt_misc/qemu-riscv64", "enabled\n" + entry);
  EXPECT_EQ(plan({"./foreign"}).executable, path);
  EXPECT_THAT(refusal(elf_header(2, 1, EM_S390)), HasSubstr("S/390"));
}

TEST_F(PlanTest, NothingRunsUnderAnEmulatorOfSinglePrograms) {
  canned.host.emulated = true;
  const Error failure = error({"true"});
  EXPECT_EQ(failure.kind, ErrorKind::host);
  EXPECT_EQ(failure.code, "emulated");
  canned.host.emulated = false;
  EXPECT_FALSE(plan({"true"}).executable.empty());
}

TEST_F(PlanTest, TextOfUnknownKindIsNotExecutableWithAHint) {
  canned.files->file("/home/me/project/notes.txt", "hello");
  const Error failure = error({"notes.txt"});
  EXPECT_EQ(failure.kind, ErrorKind::not_executable);
  EXPECT_THAT(failure.hint, HasSubstr("--lang"));
}

TEST_F(PlanTest, WhatIsNoRegularFileIsNotExecutable) {
  canned.files->special("/home/me/project/pipe", host::FileType::fifo);
  EXPECT_EQ(error({"pipe"}).kind, ErrorKind::not_executable);
}

TEST_F(PlanTest, APathThatNamesNothingIsNotFound) {
  EXPECT_EQ(error({"./missing.py"}).kind, ErrorKind::not_found);
  EXPECT_EQ(error({"/usr/bin/missing"}).kind, ErrorKind::not_found);
}

TEST_F(PlanTest, ACommandPathNeedsExecutePermission) {
  canned.files->file("/home/me/project/job.sh", "#!/bin/sh\n", 0644);
  EXPECT_EQ(error(command({"./job.sh"})).kind, ErrorKind::not_executable);
  canned.files->script("/home/me/project/job.sh", "#!/bin/sh\n");
  EXPECT_THAT(plan(command({"./job.sh"})).command,
              ElementsAre("/bin/sh", "/home/me/project/job.sh"));
}

TEST_F(PlanTest, TheExtensionTableOfThePolicyWins) {
  canned.files->file("/home/me/project/job.py", "").program("/usr/bin/pypy3");
  set("interpreters.extensions", R"({ py = ["pypy3", "-O"] })");
  EXPECT_THAT(plan({"job.py"}).command, ElementsAre("pypy3", "-O", "job.py"));
}

TEST_F(PlanTest, AShellLineIsToldItsForm) {
  EXPECT_EQ(error({"ls | wc -l"}).hint, "for a shell line: sbx run --lang bash -c 'ls | wc -l'");
  EXPECT_EQ(error({"echo it's"}).hint, "for a shell line: sbx run --lang bash -c 'echo it'\\''s'");
  canned.files->file("/home/me/project/my job.py", "");
  plan({"my job.py"});
}

TEST_F(PlanTest, CodeNeedsALanguage) {
  EXPECT_EQ(error(code("", "1")).code, "needs-language");
  EXPECT_EQ(error(code("cobol", "1")).code, "unknown-language");
  for (const char* name : {"python3", "py", "Python", "PY"})
    EXPECT_EQ(plan(code(name, "1")).executable, plan(code("python", "1")).executable) << name;
  for (const auto& [name, meant] :
       std::initializer_list<std::pair<const char*, const char*>>{{"js", "javascript"},
                                                                  {"Node", "javascript"},
                                                                  {"ts", "typescript"},
                                                                  {"cpp", "c++"},
                                                                  {"golang", "go"},
                                                                  {"rs", "rust"},
                                                                  {"shell", "bash"},
                                                                  {"R", "r"},
                                                                  {"rb", "ruby"}})
    EXPECT_EQ(language(name), language(meant)) << name;
  EXPECT_EQ(error(code("cobol", "1")).kind, ErrorKind::usage);
}

TEST_F(PlanTest, CodeIsGivenAsEachLanguageWantsIt) {
  EXPECT_THAT(plan(code("python", "print(1)", {"-x"})).command,
              ElementsAre("python3", "-c", "print(1)", "-x"));
  EXPECT_THAT(plan(code("javascript", "1", {"-x"})).command,
              ElementsAre("node", "-e", "1", "--", "-x"));
  EXPECT_THAT(plan(code("bash", "echo $1", {"a"})).command,
              ElementsAre("bash", "-c", "echo $1", "bash", "a"));
}

TEST_F(PlanTest, CodeFromStandardInput) {
  RunRequest asked = request({"a"});
  asked.language = "python";
  asked.code_from_stdin = true;
  EXPECT_THAT(plan(asked).command, ElementsAre("python3", "-", "a"));
  asked.language = "sh";
  EXPECT_THAT(plan(asked).command, ElementsAre("sh", "-s", "--", "a"));
}

TEST_F(PlanTest, AnInterpreterThatIsNotInstalledIsNotFound) {
  const Error failure = error(code("ruby", "1"));
  EXPECT_EQ(failure.kind, ErrorKind::not_found);
  EXPECT_THAT(failure.message, HasSubstr("'ruby'"));
}

TEST_F(PlanTest, NothingToRunIsAUsageError) {
  EXPECT_EQ(error(RunRequest()).kind, ErrorKind::usage);
  EXPECT_EQ(error(RunRequest()).code, "no-command");
  RunRequest asked = command({"true"});
  asked.language = "python";
  EXPECT_EQ(error(asked).code, "language-with-command");
}

TEST_F(PlanTest, ARelativeEntryOfThePathIsNotSearched) {
  canned.files->script("/home/me/project/tool", "#!/bin/sh\n");
  EXPECT_EQ(error(command({"tool"})).kind, ErrorKind::not_found);
}

TEST_F(PlanTest, OnlyAllowedInterpretersMayBeTheCommand) {
  canned.files->file("/home/me/project/job.py", "").file("/home/me/project/job.sh", "");
  set("interpreters.allow", R"(["python3"])");
  EXPECT_EQ(plan({"job.py"}).executable, "/usr/bin/python3.11");
  EXPECT_EQ(plan({"python3.11"}).executable, "/usr/bin/python3.11");
  EXPECT_EQ(error({"job.sh"}).code, "interpreter-not-allowed");
  const Error failure = error({"true"});
  EXPECT_EQ(failure.kind, ErrorKind::policy);
  EXPECT_THAT(failure.hint, HasSubstr("\"true\""));
}

TEST_F(PlanTest, ALookalikeOfAnAllowedInterpreterIsRefused) {
  canned.files->program("/home/me/project/python3");
  set("interpreters.allow", R"(["python3"])");
  EXPECT_EQ(error(command({"./python3"})).code, "interpreter-not-allowed");
}

}  // namespace
}  // namespace sbx::plan
