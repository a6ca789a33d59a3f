// What a hint may be made of: the last words of programs, and the places that a hint may speak of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "canned_host.hpp"
#include "hints/last_words.hpp"
#include "hints/listeners.hpp"
#include "hints/local_files.hpp"
#include "hints/modules.hpp"
#include "hints/places.hpp"
#include "plan_fixture.hpp"

namespace sbx::hints {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

struct Case {
  const char* text;
  Trouble trouble;
  const char* name;
};

class LastWords : public testing::TestWithParam<Case> {};

TEST_P(LastWords, NameWhatWasRefused) {
  const auto words = last_words(GetParam().text);
  ASSERT_THAT(words, SizeIs(1)) << GetParam().text;
  EXPECT_EQ(words.front().trouble, GetParam().trouble);
  EXPECT_THAT(words.front().names, Contains(GetParam().name));
}

constexpr auto kMissing = Trouble::missing;
constexpr auto kReadOnly = Trouble::read_only;
INSTANTIATE_TEST_SUITE_P(
    OfMany, LastWords,
    testing::Values(
        Case{"FileNotFoundError: [Errno 2] No such file or directory: 'a b.csv'\n", kMissing,
             "a b.csv"},
        Case{"OSError: [Errno 30] Read-only file system: '/usr/x'", kReadOnly, "/usr/x"},
        Case{"cat: sales.csv: No such file or directory\n", kMissing, "sales.csv"},
        Case{"cat: 'two words': No such file or directory", kMissing, "two words"},
        Case{"tar: a b.csv: Cannot stat: No such file or directory", kMissing, "a b.csv"},
        Case{"ls: cannot access 'x': No such file or directory", kMissing, "x"},
        Case{"cp: cannot stat \xE2\x80\x98x\xE2\x80\x99: No such file or directory", kMissing, "x"},
        Case{"sh: 1: cannot create out.txt: Read-only file system", kReadOnly, "out.txt"},
        Case{"sh: 1: cannot open in.txt: No such file", kMissing, "in.txt"},
        Case{"bash: line 1: out.txt: Read-only file system", kReadOnly, "out.txt"},
        Case{"mkdir: cannot create directory \xE2\x80\x98/data\xE2\x80\x99: Read-only file system",
             kReadOnly, "/data"},
        Case{"Error: ENOENT: no such file or directory, open 'x.json'", kMissing, "x.json"},
        Case{"Error: EROFS: read-only file system, mkdir '/data'", kReadOnly, "/data"},
        Case{"Error: Cannot find module './lib.js'", kMissing, "./lib.js"},
        Case{"  cannot open file 'data.csv': No such file or directory", kMissing, "data.csv"},
        Case{"main.c:1:10: fatal error: own.h: No such file or directory", kMissing, "own.h"},
        Case{"gcc: error: main.c: No such file or directory", kMissing, "main.c"},
        Case{"/usr/bin/ld: cannot open output file a.out: Read-only file system", kReadOnly,
             "a.out"},
        Case{"x.rb:1:in `open': No such file or directory @ rb_sysopen - a.txt (Errno::ENOENT)",
             kMissing, "a.txt"},
        Case{"open a.txt: no such file or directory", kMissing, "a.txt"},
        Case{"a b.txt: No such file or directory", kMissing, "a b.txt"},
        Case{"OSError: [Errno 18] Invalid cross-device link: 'data.csv' -> '/tmp/x'", kMissing,
             "data.csv"},
        Case{"make: *** No rule to make target 'a.c', needed by 'a.o'.  Stop.", kMissing, "a.c"},
        Case{"Fatal error: can't create out.o: Read-only file system", kReadOnly, "out.o"},
        Case{"connect ECONNREFUSED 127.0.0.1:5432", Trouble::refused, "127.0.0.1:5432"},
        Case{"curl: (7) Failed to connect to localhost port 8000 after 0 ms: Couldn't connect",
             Trouble::refused, "localhost:8000"},
        Case{"connection to server at \"127.0.0.1\", port 5432 failed: Connection refused",
             Trouble::refused, "127.0.0.1:5432"},
        Case{"ModuleNotFoundError: No module named 'pandas.io'", Trouble::module, "pandas"},
        Case{"Error: Cannot find module './lib'", kMissing, "./lib.js"},
        Case{"Error: Cannot find module '@a/b/c'", Trouble::node_module, "@a/b"},
        Case{"[ERR_MODULE_NOT_FOUND]: Cannot find package 'left-pad' imported from /x/a.mjs",
             Trouble::node_module, "left-pad"},
        Case{"Error in library(x) : there is no package called \xE2\x80\x98"
             "data.table\xE2\x80\x99",
             Trouble::r_package, "data.table"},
        Case{"sh: 1: .venv/bin/python: not found", kMissing, ".venv/bin/python"},
        Case{"bash: line 1: x.py: command not found", kMissing, "x.py"}));

TEST(LastWordsOfMany, TheLastLineIsFirst) {
  const auto words = last_words(
      "cat: a: No such file or directory\nnothing\ncat: b: No such file "
      "or directory\n");
  ASSERT_THAT(words, SizeIs(2));
  EXPECT_THAT(words[0].names, Contains("b"));
  EXPECT_THAT(words[1].names, Contains("a"));
}

TEST(LastWordsOfMany, ProgramsThatSayNothingOfItGiveNothing) {
  for (const char* const text :
       {"", "\n\n", "Segmentation fault", "Killed", "AssertionError: 3", "No such luck"})
    EXPECT_THAT(last_words(text), IsEmpty()) << text;
}

TEST(LastWordsOfMany, AFileThatIsTooLargeNeedsNoName) {
  for (const char* const text :
       {"OSError: [Errno 27] File too large", "dd: error writing 'big': File too large\n",
        "Error: EFBIG: file too large, write"})
    EXPECT_THAT(last_words(text), ElementsAre(LastWord{.trouble = Trouble::too_large, .names = {}}))
        << text;
}

TEST(LastWordsOfMany, ANameHasNoNul) {
  using std::string_literals::operator""s;
  for (const LastWord& word :
       last_words("Error: ENOENT: no such file or directory, open '.env\0x'\n"s))
    for (const std::string& name : word.names) EXPECT_FALSE(name.contains(".env")) << name;
}

TEST(LastWordsOfMany, ALongLineAndManyNamesAreBounded) {
  std::string text;
  for (int i = 0; i < 1000; ++i)
    text += "cat: 'a" + std::to_string(i) + "' 'b': No such file or directory\n";
  text += std::string(1 << 20, 'x') + ": No such file or directory\n";
  std::size_t names = 0;
  for (const LastWord& word : last_words(text)) names += word.names.size();
  EXPECT_LE(names, 16);
}

class PlacesOfHints : public plan::PlanTest {
 protected:
  PlacesOfHints() {
    canned.files->file(
        "/proc/self/mountinfo",
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:40 / /home/me/project/far rw - nfs4 srv:/ rw\n"
        "3 1 0:41 / /home/me/project/auto rw - autofs auto rw\n");
    for (const char* const name :
         {"/home/me/project/data.csv", "/home/me/project/.env", "/home/me/notes.txt",
          "/home/me/.ssh/id_rsa", "/home/me/.bashrc", "/root/x", "/etc/own.conf", "/srv/x",
          "/home/me/project/far/x", "/home/me/project/auto/x"})
      canned.files->file(name);
    canned.files->link("/home/me/project/key", "/home/me/.ssh/id_rsa");
    canned.files->link("/home/me/project/away", "/home/me/project/auto/x");
    canned.files->link("/home/me/project/good", "data.csv");
    canned.files->link("/home/me/project/loop", "loop");
    canned.files->special("/home/me/project/pipe", host::FileType::fifo);
    canned.files->special("/home/me/project/socket", host::FileType::socket);
  }
  std::string not_granted(const std::string& name, Reader reader = Reader::person,
                          const std::vector<std::string>& typed = {}) {
    const plan::Plan made = plan();
    const host::Host near = local_view(canned.host);
    return Places(policy, made, near, typed, reader).not_granted(name);
  }
};

TEST_F(PlacesOfHints, ANameBelowTheWorkingDirectoryMayBeTold) {
  for (const Reader reader : {Reader::person, Reader::unknown}) {
    EXPECT_EQ(not_granted("data.csv", reader), "/home/me/project/data.csv");
    EXPECT_EQ(not_granted("./data.csv", reader), "/home/me/project/data.csv");
    EXPECT_EQ(not_granted("/home/me/project/good", reader), "/home/me/project/good");
    EXPECT_EQ(not_granted("nosuch", reader), "");
  }
}

TEST_F(PlacesOfHints, OnlyAPersonLearnsOfWhatIsElsewhere) {
  EXPECT_EQ(not_granted("/home/me/notes.txt", Reader::person), "/home/me/notes.txt");
  EXPECT_EQ(not_granted("../notes.txt", Reader::person), "/home/me/notes.txt");
  EXPECT_EQ(not_granted("/home/me/notes.txt", Reader::unknown), "");
  EXPECT_EQ(not_granted("/srv/x"), "");
  EXPECT_EQ(not_granted("/srv/x", Reader::person, {"/srv/x"}), "/srv/x");
  EXPECT_EQ(not_granted("/srv/x", Reader::unknown, {"/srv/x"}), "");
}

TEST_F(PlacesOfHints, WhatIsDeniedHiddenOrNoPlainFileIsNeverTold) {
  for (const char* const name :
       {"/home/me", "/", "/home", "/home/me/project", ".", "..", ".env", "/home/me/.ssh/id_rsa",
        "/home/me/.ssh", "/home/me/.bashrc", "/root/x", "/etc/own.conf", "/proc/self/mountinfo",
        "key", "pipe", "socket", "loop", "-x", ""})
    EXPECT_EQ(not_granted(name, Reader::person, {name}), "") << name;
}

TEST_F(PlacesOfHints, WhatIsOnARemoteFileSystemIsNotLookedAt) {
  for (const char* const name : {"far/x", "far", "auto/x", "auto", "away"})
    EXPECT_EQ(not_granted(name), "") << name;
}

TEST_F(PlacesOfHints, ANameOfTheSandboxsHomeIsThatOfTheCallers) {
  EXPECT_EQ(not_granted("/home/sandbox/notes.txt"), "/home/me/notes.txt");
  EXPECT_EQ(not_granted("/home/sandbox/notes.txt", Reader::unknown), "");
  EXPECT_EQ(not_granted("/home/sandbox/project/data.csv", Reader::unknown),
            "/home/me/project/data.csv");
  for (const char* const name : {"/home/sandbox", "/home/sandbox/.ssh/id_rsa",
                                 "/home/sandbox/project/../.bashrc", "/home/sandbox/.."})
    EXPECT_EQ(not_granted(name), "") << name;
}

TEST_F(PlacesOfHints, AFileThatHasAnotherNameIsNotTold) {
  canned.files->file("/home/me/project/hard.csv").names("/home/me/project/hard.csv", 2);
  EXPECT_EQ(not_granted("hard.csv"), "");
}

TEST_F(PlacesOfHints, AHomeBehindALinkKeepsItsDottedNames) {
  canned.files->link("/users", "/home");
  canned.host.home = "/users/me";
  for (const char* const name : {"/home/me/.bashrc", "/users/me/.bashrc", "/home/me", "/users/me"})
    EXPECT_EQ(not_granted(name), "") << name;
  EXPECT_EQ(not_granted("/home/me/notes.txt"), "/home/me/notes.txt");
  canned.host.working_directory = "/home/me";
  EXPECT_EQ(not_granted(".bashrc"), "");
}

TEST_F(PlacesOfHints, NoLookLeavesTheLocalFileSystems) {
  canned.files->file("/home/me/project/far/.env/pyvenv.cfg")
      .file("/home/me/project/far/HEAD")
      .link("/home/me/project/out", "far/../data.csv")
      .link("/home/me/project/up", "../project/data.csv");
  const LocalFiles files(canned.files);
  for (const char* const name : {"far", "far/HEAD", "far/.env/pyvenv.cfg", "auto/x"}) {
    const std::string path = plan::joined("/home/me/project", name);
    EXPECT_FALSE(files.look(path)) << name;
    EXPECT_FALSE(files.canonical(path)) << name;
    EXPECT_FALSE(files.read_head(path, 1)) << name;
    EXPECT_FALSE(files.list(path, nullptr)) << name;
    EXPECT_FALSE(files.may_read(path) || files.may_execute(path)) << name;
  }
  EXPECT_FALSE(files.canonical("/home/me/project/out"));
  EXPECT_EQ(files.canonical("/home/me/project/up"), "/home/me/project/data.csv");
  EXPECT_EQ(files.link_target("/home/me/project/up"), "../project/data.csv");
  EXPECT_TRUE(files.may_read("/home/me/project/up"));
}

TEST_F(PlacesOfHints, ThePlanSaysWhatIsReadOnly) {
  canned.files->directory("/srv/data");
  policy = plan::policy_with(
      {{"filesystem.read", "[\"/srv/data\"]"}, {"filesystem.workspace.mode", "\"read-only\""}});
  const plan::Plan made = plan();
  const std::vector<std::string> typed;
  const host::Host near = local_view(canned.host);
  const Places places(policy, made, near, typed, Reader::person);
  EXPECT_TRUE(places.read_only(places.inside("x"))->is_workspace);
  EXPECT_EQ(places.read_only("/srv/data/x")->target, "/srv/data");
  EXPECT_TRUE(places.read_only("/usr/lib/x").has_value());
  EXPECT_FALSE(places.read_only(places.inside(".env")).has_value());
  EXPECT_FALSE(places.read_only("/home/me/.ssh/id_rsa").has_value());
  EXPECT_TRUE(places.read_only("/data/x").has_value());
  EXPECT_FALSE(places.read_only("/tmp/x").has_value());
  EXPECT_TRUE(places.read_only("/tmp")->is_mount);
}

TEST_F(PlacesOfHints, AModuleThatAnotherInterpreterHasIsFound) {
  canned.host.path = {"/opt/own/bin", "/usr/bin"};
  canned.files->file("/opt/own/bin/python3.12");
  canned.files->link("/opt/own/bin/python3", "python3.12");
  canned.files->file("/usr/bin/python3.11");
  canned.files->link("/usr/bin/python3", "python3.11");
  canned.files->directory("/usr/lib/python3/dist-packages/pandas");
  canned.files->file("/opt/own/lib/python3.12/site-packages/six.py");
  const plan::Plan made = plan();
  const std::vector<std::string> typed;
  const host::Host near = local_view(canned.host);
  const Places places(policy, made, near, typed, Reader::unknown);
  const auto other = [&](const char* module, const char* chosen) {
    return interpreter_with(module, chosen, canned.host, places);
  };
  EXPECT_EQ(other("pandas", "/opt/own/bin/python3"), "/usr/bin/python3");
  EXPECT_EQ(other("six", "/usr/bin/python3.11"), "/opt/own/bin/python3");
  EXPECT_EQ(other("pandas", "/usr/bin/python3"), "");
  EXPECT_EQ(other("nosuch", "/opt/own/bin/python3"), "");
}

TEST(Listeners, ThoseOfTheLoopbackAreSeen) {
  host::CannedFiles files;
  files.directory("/proc/net");
  files.file("/proc/net/tcp",
             "  sl  local_address rem_address   st\n"
             "   0: 0100007F:1538 00000000:0000 0A 0\n"
             "   1: 0100007F:1539 0100007F:9C40 01 0\n"
             "   2: 0A00000A:153A 00000000:0000 0A 0\n");
  EXPECT_TRUE(listens_on_loopback(files, 0x1538));
  EXPECT_FALSE(listens_on_loopback(files, 0x1539));
  EXPECT_FALSE(listens_on_loopback(files, 0x153A));
  EXPECT_FALSE(listens_on_loopback(files, 1));
}

}  // namespace
}  // namespace sbx::hints
