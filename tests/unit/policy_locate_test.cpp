#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "policy_fixture.hpp"

namespace sbx::policy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PolicyLocate : public PolicyDirectory {};

TEST_F(PolicyLocate, NoPolicyIsTheDefaultOne) {
  const Policy policy = loaded({});
  EXPECT_EQ(policy.name.value, "default");
  EXPECT_EQ(policy.source, "built-in");
  EXPECT_THAT(policy.files, IsEmpty());
  EXPECT_THAT(policy.notes, IsEmpty());
  context_.default_policy = "strict";
  EXPECT_EQ(loaded({}).name.value, "strict");
}

TEST_F(PolicyLocate, NameIsABuiltinFirstAndThenAFileOfADirectory) {
  write_file("named/mine.toml", "[limits]\nprocesses = 3");
  const Policy policy = loaded({"mine"});
  EXPECT_EQ(policy.limits.processes.value, 3U);
  EXPECT_EQ(policy.source, path("named/mine.toml"));
  EXPECT_THAT(policy.files, ElementsAre(path("named/mine.toml")));
  EXPECT_THAT(policy.notes, IsEmpty());
  EXPECT_EQ(policy.limits.processes.origin.text(), path("named/mine.toml") + ":2");
}

TEST_F(PolicyLocate, FirstDirectoryWins) {
  write_file("named/mine.toml", "[limits]\nprocesses = 3");
  write_file("second/mine.toml", "[limits]\nprocesses = 4");
  context_.policy_directories.push_back(path("second"));
  EXPECT_EQ(loaded({"mine"}).limits.processes.value, 3U);
}

TEST_F(PolicyLocate, FileWithTheNameOfABuiltinIsAnError) {
  write_file("named/strict.toml", "");
  const Error error = finding({"strict"});
  EXPECT_EQ(error.code, "shadows-builtin");
  EXPECT_THAT(error.message, HasSubstr(path("named/strict.toml")));
  EXPECT_EQ(loaded({"python"}).name.value, "python");
}

TEST_F(PolicyLocate, BareFileNameIsTheFileWhereThereIsOne) {
  write_file("work/strict.toml", "[limits]\nprocesses = 3");
  EXPECT_EQ(loaded({"strict.toml"}).limits.processes.value, 3U);
}

TEST_F(PolicyLocate, BareFileNameWithoutFileIsThePolicyAndSaysSo) {
  const Policy policy = loaded({"strict.toml"});
  EXPECT_EQ(policy.limits.processes.value, 32U);
  EXPECT_THAT(
      policy.notes,
      ElementsAre("strict.toml is not a file here: this is the built-in policy \"strict\""));
  write_file("named/mine.toml", "");
  EXPECT_THAT(loaded({"mine.toml"}).notes,
              ElementsAre("mine.toml is not a file here: this is the policy \"mine\""));
}

TEST_F(PolicyLocate, UnknownNameGetsASuggestionAndTheList) {
  write_file("named/mine.toml", "");
  const Error error = finding({"pyton"});
  EXPECT_EQ(error.code, "unknown-policy");
  EXPECT_EQ(error.origin->text(), "--policy");
  EXPECT_THAT(error.message, HasSubstr("\"pyton\""));
  EXPECT_THAT(error.hint, HasSubstr("did you mean \"python\"?"));
  EXPECT_THAT(error.hint, HasSubstr("default, strict, data-analysis"));
  EXPECT_THAT(error.hint, HasSubstr("mine"));
  EXPECT_EQ(finding({"nothing.toml"}).code, "unknown-policy");
  EXPECT_EQ(finding({""}).code, "unknown-policy");
}

TEST_F(PolicyLocate, FileIsNotReadByABareNameButPointedAt) {
  write_file("work/machine", "");
  write_file("work/robot.toml", "");
  EXPECT_THAT(finding({"machine"}).hint, HasSubstr("./machine"));
  EXPECT_THAT(finding({"robot"}).hint, HasSubstr("robot.toml"));
}

TEST_F(PolicyLocate, NamesDoNotLeaveTheDirectories) {
  write_file("mine.toml", "");
  for (const char* name : {"..", "..mine", "."})
    EXPECT_EQ(finding({name}).code, "unknown-policy") << name;
}

TEST_F(PolicyLocate, MissingFileNamesItselfAndTheReason) {
  const Error error = finding({"./nothing.toml"});
  EXPECT_EQ(error.code, "no-such-file");
  EXPECT_EQ(error.errno_value, ENOENT);
  EXPECT_THAT(error.message, HasSubstr("\"./nothing.toml\""));
}

TEST_F(PolicyLocate, OnlyRegularFilesAreRead) {
  ASSERT_EQ(::mkfifo(path("work/fifo").c_str(), 0600), 0);
  std::filesystem::create_directory(path("work/directory"));
  std::filesystem::create_symlink("/dev/zero", path("work/link"));
  for (const auto& [file, what] : {std::pair{"./fifo", "a fifo"},
                                   {"./directory", "a directory"},
                                   {"./link", "a device"},
                                   {"/dev/null", "a device"}}) {
    const Error error = finding({file});
    EXPECT_EQ(error.code, "not-a-regular-file") << file;
    EXPECT_THAT(error.message, HasSubstr(what));
  }
}

TEST_F(PolicyLocate, FileOfOneMebibyteIsReadAndALargerOneIsNot) {
  const std::string text = "schema = 1\n#";
  write_file("work/p.toml", text + std::string((1U << 20) - text.size(), 'x'));
  EXPECT_TRUE(load_all({"./p.toml"}));
  write_file("work/p.toml", text + std::string((1U << 20) - text.size() + 1, 'x'));
  EXPECT_EQ(finding({"./p.toml"}).code, "policy-too-large");
}

TEST_F(PolicyLocate, FileOfSomebodyElseIsUnreadable) {
  constexpr uid_t kNobody = 65'534;
  write_file("work/p.toml", "");
  ASSERT_EQ(::chmod(path("work/p.toml").c_str(), 0), 0);
  EXPECT_TRUE(::geteuid() != 0 || ::seteuid(kNobody) == 0);  // root reads every file
  const Error error = finding({"./p.toml"});
  EXPECT_TRUE(::getuid() != 0 || ::seteuid(0) == 0);
  EXPECT_EQ(error.code, "unreadable-policy");
  EXPECT_EQ(error.errno_value, EACCES);
  ASSERT_EQ(::chmod(path("work/p.toml").c_str(), 0600), 0);
  EXPECT_TRUE(load_all({"./p.toml"}));
}

TEST_F(PolicyLocate, FileBelowAFileIsUnreadable) {
  write_file("work/p.toml", "");
  const Error error = finding({"./p.toml/x"});
  EXPECT_EQ(error.code, "unreadable-policy");
  EXPECT_EQ(error.errno_value, ENOTDIR);
}

TEST_F(PolicyLocate, AParentMustBeCalledLikeAPolicy) {
  write_file("work/.env", "KEY = \"secret\"");
  write_file("work/p.toml", "extends = \"./.env\"");
  Error error = finding({"./p.toml"});
  EXPECT_EQ(error.code, "untrusted-parent");
  EXPECT_THAT(error.text() + error.source_line, testing::Not(HasSubstr("secret")));
  ASSERT_EQ(::symlink(path("work/.env").c_str(), path("work/base.toml").c_str()), 0);
  write_file("work/p.toml", "extends = \"./base.toml\"");
  EXPECT_EQ(finding({"./p.toml"}).code, "untrusted-parent");
}

TEST_F(PolicyLocate, OtherFilesAreQuotedOnlyWhereTheySayThatTheyArePolicies) {
  write_file("work/secrets.toml", "# of an application\nDB_PASSWORD = \"hunter2\"\n");
  write_file("work/p.toml", "schema = 1\nextends = \"./secrets.toml\"");
  Error error = finding({"./p.toml"});
  EXPECT_EQ(error.code, "unknown-key");
  EXPECT_EQ(error.origin->line, 2);
  EXPECT_THAT(error.text() + error.source_line + error.hint,
              testing::Not(testing::AnyOf(HasSubstr("hunter2"), HasSubstr("DB_PASSWORD"))));
  ASSERT_EQ(::unlink(path("work/p.toml").c_str()), 0);
  ASSERT_EQ(::symlink(path("work/secrets.toml").c_str(), path("work/p.toml").c_str()), 0);
  EXPECT_EQ(finding({"./p.toml"}).source_line, "");
  // A policy is quoted, and so is the file that the caller named himself.
  EXPECT_THAT(finding({"./secrets.toml"}).source_line, HasSubstr("hunter2"));
  write_file("work/secrets.toml", " schema=1\nDB_PASSWORD = \"hunter2\"\n");
  EXPECT_THAT(finding({"./p.toml"}).source_line, HasSubstr("hunter2"));
}

TEST_F(PolicyLocate, OnlyFilesCalledLikePoliciesAreQuoted) {
  write_file("work/secrets", "API_KEY=abc123");
  ASSERT_EQ(::symlink(path("work/secrets").c_str(), path("work/p.toml").c_str()), 0);
  for (const char* text : {"API_KEY=abc123", "API_KEY=\"abc123\"", "[limits]\nmemory=\"abc123\""}) {
    write_file("work/secrets", text);
    const Error error = finding({"./p.toml"});
    EXPECT_EQ(error.source_line, "");
    EXPECT_THAT(error.text() + error.hint, testing::Not(HasSubstr("abc123")));
    EXPECT_THAT(error.text(), testing::Not(HasSubstr("API_KEY")));
    EXPECT_GT(error.origin->line, 0);
    write_file("work/twin.toml", text);
    EXPECT_NE(finding({"./twin.toml"}).source_line, "") << "the twin is a policy by its name";
  }
}

TEST_F(PolicyLocate, EveryFileThatWasReadIsListed) {
  write_file("work/base.toml", "extends = \"default\"");
  write_file("work/p.toml", "extends = \"base.toml\"");
  const Policy policy = loaded({"./p.toml"});
  EXPECT_THAT(policy.files, ElementsAre(path("work/base.toml"), path("work/p.toml")));
  EXPECT_EQ(policy.source, path("work/p.toml"));
}

TEST_F(PolicyLocate, ParentIsFoundFromTheFileThatNamesIt) {
  write_file("shared/base.toml", "[limits]\nprocesses = 3");
  write_file("shared/mid.toml", "extends = \"./base.toml\"");
  write_file("work/p.toml", "extends = [\"../shared/mid.toml\"]");
  EXPECT_EQ(loaded({"./p.toml"}).limits.processes.origin.text(), "./../shared/./base.toml:2");
  write_file("work/p.toml", "extends = \"" + path("shared/mid.toml") + "\"");
  EXPECT_EQ(loaded({"./p.toml"}).limits.processes.value, 3U);
  write_file("home/base.toml", "[limits]\nprocesses = 4");
  write_file("work/p.toml", "extends = \"~/base.toml\"");
  EXPECT_EQ(loaded({"./p.toml"}).limits.processes.value, 4U);
}

TEST_F(PolicyLocate, MissingParentIsToldAtTheLineThatNamesIt) {
  write_file("work/p.toml", "schema = 1\nextends = [\"default\", \"pyton\"]");
  const Error error = finding({"./p.toml"});
  EXPECT_EQ(error.code, "unknown-policy");
  EXPECT_EQ(*error.origin, (Origin{"./p.toml", 2, 23, Layer::file}));
  EXPECT_THAT(error.source_line, HasSubstr("pyton"));
}

TEST_F(PolicyLocate, CycleIsNamed) {
  write_file("work/a.toml", "extends = \"b.toml\"");
  write_file("work/b.toml", "extends = \"c.toml\"\nschema = 1");
  std::filesystem::create_symlink(path("work/a.toml"), path("work/c.toml"));
  const Error error = finding({"./a.toml"});
  EXPECT_EQ(error.code, "extends-cycle");
  EXPECT_THAT(error.message, HasSubstr("./a.toml -> ./b.toml -> ./a.toml"));
  EXPECT_EQ(error.origin->text(), "./b.toml:1");
  write_file("work/self.toml", "extends = \"self.toml\"");
  EXPECT_EQ(finding({"./self.toml"}).code, "extends-cycle");
}

TEST_F(PolicyLocate, ExtendsMayBeSixteenDeep) {
  write_file("work/0.toml", "");
  for (int i = 1; i <= 17; ++i) {
    write_file("work/" + std::to_string(i) + ".toml",
               "extends = \"" + std::to_string(i - 1) + ".toml\"");
  }
  EXPECT_TRUE(load_all({"./16.toml"}));
  const Error error = finding({"./17.toml"});
  EXPECT_EQ(error.code, "extends-too-deep");
  EXPECT_EQ(error.origin->text(), "./1.toml:1");
}

TEST_F(PolicyLocate, NumberOfTextsIsBounded) {
  std::string list;
  for (int i = 0; i < 70; ++i) {
    write_file("work/" + std::to_string(i) + ".toml", "");
    list += "\"" + std::to_string(i) + ".toml\", ";
  }
  write_file("work/p.toml", "extends = [" + list + "]");
  auto policy = load_all({"./p.toml"});
  ASSERT_FALSE(policy);
  EXPECT_EQ(policy.error().front().code, "too-many-policies");
}

TEST_F(PolicyLocate, MistakesOfEveryLayerAreFoundTogether) {
  write_file("work/base.toml", "memroy = 1");
  write_file("work/p.toml", "extends = \"base.toml\"\nlimts = 1");
  auto policy = load_all({"./p.toml"}, {set("foo", "1")});
  ASSERT_FALSE(policy);
  EXPECT_THAT(codes(policy.error()), ElementsAre("unknown-key", "unknown-key", "unknown-key"));
  EXPECT_EQ(policy.error()[0].origin->file, "./base.toml");
  EXPECT_EQ(policy.error()[1].origin->file, "./p.toml");
  EXPECT_EQ(policy.error()[2].origin->file, "--set");
}

}  // namespace
}  // namespace sbx::policy
