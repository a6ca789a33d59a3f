#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/sys.hpp"
#include "changes/kept.hpp"

namespace sbx::changes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

Change change(ChangeKind kind, const std::string& path, FileType type = FileType::file,
              std::uint64_t bytes = 0) {
  return {.path = path, .change = kind, .type = type, .bytes = bytes, .mode = 0644};
}

std::string content_of(const Kept& kept, std::size_t index) {
  const auto file = workspace::open_content(kept.copy, kept.changes.changes.at(index));
  return file ? sys::read_all(file->get(), 1000).value_or("unreadable") : file.error().text();
}

/// A state directory, a workspace of the host (`lower`) and what a run wrote over it (`upper`).
class KeptTest : public testing::Test {
 protected:
  KeptTest() {
    std::string name = testing::TempDir() + "/sbx-kept-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    root_ = std::filesystem::canonical(name);
    for (const char* each : {"lower", "upper"}) std::filesystem::create_directory(at(each));
    copy_.directory = at("lower");
    copy_.is_overlay = true;
    copy_.started = workspace::file_clock();
    copy_.layers.push_back({.upper = open("upper"), .lower = open("lower"), .prefix = "."});
  }
  ~KeptTest() override { std::filesystem::remove_all(root_); }

  [[nodiscard]] std::filesystem::path at(const std::string& name) const { return root_ / name; }
  [[nodiscard]] std::filesystem::path in_store(const std::string& name) const {
    return root_ / "state/changes" / name;
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(at(name)) << text;
  }
  [[nodiscard]] std::string read(const std::filesystem::path& path) const {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] UniqueFd open(const std::string& name) const {
    return UniqueFd(::open(at(name).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  [[nodiscard]] static mode_t mode(const std::filesystem::path& path) {
    struct stat found{};
    EXPECT_EQ(::lstat(path.c_str(), &found), 0) << path;
    return found.st_mode & 07777;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> list;
    for (const auto& each : std::filesystem::directory_iterator(in_store(".")))
      list.push_back(each.path().filename());
    return list;
  }

  [[nodiscard]] Store store() const {
    auto opened = Store::open_or_make(at("state"));
    if (!opened) std::abort();
    return std::move(*opened);
  }
  [[nodiscard]] Result<KeptFacts> keep(const std::string& name, std::vector<Change> changes,
                                       std::int64_t made = 1) const {
    return store().keep(KeptFacts{.name = name,
                                  .made = made,
                                  .run = "0123",
                                  .command = {"make", "two words", ""},
                                  .outcome = "exited with 0",
                                  .success = true,
                                  .policy_files = {"/etc/my policy.toml"}},
                        copy_, ChangeSet{.changes = std::move(changes)});
  }
  [[nodiscard]] KeptFacts listed(const std::string& name) const {
    const auto sets = store().list();
    if (!sets) return {.outcome = sets.error().text()};
    const auto found = std::ranges::find(*sets, name, &KeptFacts::name);
    return found == sets->end() ? KeptFacts{.outcome = "not listed"} : *found;
  }

  std::filesystem::path root_;
  Copy copy_;
};

TEST_F(KeptTest, CopiesAndTheirEndAreTold) {
  std::vector<std::uint64_t> told;
  copy_.copied = [&told](std::uint64_t bytes) { told.push_back(bytes); };
  write("upper/new", "12345");
  ASSERT_TRUE(keep("one", {change(ChangeKind::created, "new", FileType::file, 5)}));
  EXPECT_THAT(told, ElementsAre(5, 0));
  told.clear();
  EXPECT_FALSE(keep("two", {change(ChangeKind::created, "gone", FileType::file, 5)}));
  EXPECT_THAT(told, ElementsAre(0));
}

TEST_F(KeptTest, ASetIsListedWithItsFacts) {
  write("upper/new", "12345");
  const auto kept = keep("cleanup", {change(ChangeKind::created, "new", FileType::file, 5),
                                     change(ChangeKind::deleted, "old", FileType::file, 100)});
  ASSERT_TRUE(kept) << kept.error().text();
  EXPECT_EQ(kept->name, "cleanup");
  const KeptFacts facts = listed("cleanup");
  EXPECT_EQ(facts.made, 1);
  EXPECT_EQ(facts.directory, at("lower"));
  EXPECT_EQ(facts.run, "0123");
  EXPECT_THAT(facts.command, ElementsAre("make", "two words", ""));
  EXPECT_EQ(facts.outcome, "exited with 0");
  EXPECT_TRUE(facts.success);
  EXPECT_THAT(facts.policy_files, ElementsAre("/etc/my policy.toml"));
  EXPECT_EQ(facts.count, 2U);
  EXPECT_EQ(facts.bytes, 5U);  // what was deleted takes no room
  EXPECT_EQ(facts.applied_at, 0);
}

TEST_F(KeptTest, TheNewestSetIsListedLast) {
  ASSERT_TRUE(keep("a", {}, 3));
  ASSERT_TRUE(keep("b", {}, 1));
  ASSERT_TRUE(keep("c", {}, 2));
  const auto sets = store().list();
  ASSERT_TRUE(sets);
  std::vector<std::string> order;
  for (const KeptFacts& each : *sets) order.push_back(each.name);
  EXPECT_THAT(order, ElementsAre("b", "c", "a"));
}

TEST_F(KeptTest, ContentsComeBackAfterTheWorkspaceOfTheRunIsGone) {
  const std::string odd = "a line\nbreak %41 \xff";
  write("upper/" + odd, "text");
  std::filesystem::create_symlink("../elsewhere", at("upper/link"));
  ASSERT_TRUE(keep("set", {change(ChangeKind::created, odd, FileType::file, 4),
                           change(ChangeKind::created, "link", FileType::link),
                           change(ChangeKind::created, "directory", FileType::directory)}));
  std::filesystem::remove_all(at("upper"));
  const auto kept = store().load("set");
  ASSERT_TRUE(kept) << kept.error().text();
  const std::vector<Change>& changes = kept->changes.changes;  // by path
  ASSERT_EQ(changes.size(), 3U);
  EXPECT_EQ(changes[0], change(ChangeKind::created, odd, FileType::file, 4));
  EXPECT_EQ(content_of(*kept, 0), "text");
  EXPECT_EQ(changes[1], change(ChangeKind::created, "directory", FileType::directory));
  EXPECT_EQ(changes[2], change(ChangeKind::created, "link", FileType::link));
  EXPECT_EQ(workspace::link_content(kept->copy, changes[2]).value_or("unreadable"), "../elsewhere");
}

TEST_F(KeptTest, AFileOfTheHostThatChangedSinceIsNoted) {
  write("lower/same", "1");
  copy_.started = workspace::file_clock();
  copy_.started.tv_sec += 1000;
  ASSERT_TRUE(keep("before", {change(ChangeKind::deleted, "same")}));
  copy_.started.tv_sec -= 2000;
  ASSERT_TRUE(keep("after", {change(ChangeKind::deleted, "same")}));
  EXPECT_FALSE(store().load("before")->copy.stored->before.at("same").disturbed);
  EXPECT_TRUE(store().load("after")->copy.stored->before.at("same").disturbed);
}

TEST_F(KeptTest, ATakenNameIsLeftAloneAndTheNextFreeOneGiven) {
  write("upper/file", "first");
  ASSERT_TRUE(keep("set", {change(ChangeKind::created, "file", FileType::file, 5)}));
  write("upper/file", "second");
  EXPECT_TRUE(store().has("set"));
  for (const char* expected : {"set-2", "set-3"}) {
    const auto kept = keep("set", {change(ChangeKind::created, "file", FileType::file, 6)});
    ASSERT_TRUE(kept);
    EXPECT_EQ(kept->name, expected);
  }
  EXPECT_EQ(content_of(*store().load("set"), 0), "first");
  EXPECT_EQ(content_of(*store().load("set-2"), 0), "second");
}

TEST_F(KeptTest, TwoAtOnceWithOneNameAreBothKept) {
  write("upper/file", "text");
  for (int round = 0; round < 20; ++round) {
    const std::string name = "set" + std::to_string(round);
    std::optional<Result<KeptFacts>> other;
    std::thread thread([&] { other = keep(name, {change(ChangeKind::created, "file")}); });
    const auto mine = keep(name, {change(ChangeKind::created, "file")});
    thread.join();
    ASSERT_TRUE(mine && *other) << (mine ? other->error().text() : mine.error().text());
    EXPECT_THAT(std::vector({mine->name, (*other)->name}), UnorderedElementsAre(name, name + "-2"));
    EXPECT_EQ(content_of(*store().load(name + "-2"), 0), "text");
  }
}

TEST_F(KeptTest, OnlyTheOwnerCanReadWhatIsKept) {
  const mode_t before = ::umask(0);
  write("upper/secret", "text");
  std::filesystem::permissions(at("upper/secret"), std::filesystem::perms(0777));
  const auto kept = keep("set", {change(ChangeKind::created, "secret")});
  ::umask(before);
  ASSERT_TRUE(kept);
  for (const char* each : {"..", ".", "set", "set/contents"})
    EXPECT_EQ(mode(in_store(each)), 0700U) << each;
  for (const char* each : {"set/manifest", "set/contents/0"})
    EXPECT_EQ(mode(in_store(each)), 0600U) << each;
}

TEST_F(KeptTest, AStoreThatIsOpenToOthersIsClosedToThem) {
  ASSERT_TRUE(keep("set", {}));
  std::filesystem::permissions(in_store("."), std::filesystem::perms(0755));
  (void)store();
  EXPECT_EQ(mode(in_store(".")), 0700U);
}

TEST_F(KeptTest, ALinkInPlaceOfTheStoreIsRefused) {
  std::filesystem::create_directory(at("state"));
  std::filesystem::create_directory_symlink(at("lower"), at("state/changes"));
  const auto opened = Store::open_or_make(at("state"));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, "no-state-directory");
  EXPECT_THAT(opened.error().message, HasSubstr(at("state/changes").string()));
}

TEST_F(KeptTest, LookingForSetsMakesNoStore) {
  const auto opened = Store::open(at("state"));
  ASSERT_TRUE(opened);
  EXPECT_FALSE(opened->has("set"));
  EXPECT_THAT(opened->list().value(), IsEmpty());
  EXPECT_EQ(opened->load("set").error().code, "no-such-set");
  EXPECT_FALSE(std::filesystem::exists(at("state")));
}

TEST_F(KeptTest, ADroppedSetIsGone) {
  write("upper/file", "text");
  ASSERT_TRUE(keep("set", {change(ChangeKind::created, "file")}));
  ASSERT_TRUE(keep("other", {}));
  ASSERT_TRUE(store().drop("set"));
  EXPECT_FALSE(store().has("set"));
  EXPECT_THAT(names(), ElementsAre("other"));
  EXPECT_EQ(store().drop("set").error().code, "no-such-set");
  EXPECT_THAT(store().load("set").error().message, HasSubstr("\"set\""));
}

TEST_F(KeptTest, ASetInUseIsNotDropped) {
  ASSERT_TRUE(keep("set", {}));
  {
    const auto held = store().load("set");
    ASSERT_TRUE(held);
    EXPECT_TRUE(store().load("set"));  // readers share it
    const Status dropped = store().drop("set");
    ASSERT_FALSE(dropped);
    EXPECT_EQ(dropped.error().code, "set-in-use");
  }
  EXPECT_TRUE(store().drop("set"));
}

TEST_F(KeptTest, WhatWasAppliedLastIsNoted) {
  ASSERT_TRUE(keep("set", {}));
  ASSERT_TRUE(store().note_applied("set", 100, 2));
  ASSERT_TRUE(store().note_applied("set", 200, 1));
  EXPECT_EQ(listed("set").applied_at, 200);
  EXPECT_EQ(listed("set").applied, 1U);
  EXPECT_EQ(store().note_applied("absent", 1, 1).error().code, "no-such-set");
}

TEST_F(KeptTest, ALeftoverOfAKilledRunIsRemovedUnlessItIsBeingWritten) {
  ASSERT_TRUE(keep("set", {}));
  for (const char* each : {".sbx-0123456789abcdef", ".sbx-fedcba9876543210"}) {
    std::filesystem::create_directories(in_store(each) / "contents");
    std::ofstream(in_store(each) / "contents/0") << "text";
  }
  const UniqueFd written = open("state/changes/.sbx-fedcba9876543210");
  ASSERT_EQ(::flock(written.get(), LOCK_EX), 0);
  ASSERT_TRUE(store().list());
  EXPECT_THAT(names(), UnorderedElementsAre("set", ".sbx-fedcba9876543210"));
}

TEST_F(KeptTest, NothingIsLeftOfASetThatCouldNotBeWritten) {
  const auto kept = keep("set", {change(ChangeKind::created, "absent")});
  ASSERT_FALSE(kept);
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(KeptTest, ABrokenSetIsListedWithTheReasonAndCanBeDropped) {
  for (const char* each : {"cut", "empty", "link", "pipe"}) ASSERT_TRUE(keep(each, {}));
  const std::string text = read(in_store("cut/manifest"));
  std::ofstream(in_store("cut/manifest")) << text.substr(0, text.find("end "));
  std::filesystem::remove(in_store("empty/manifest"));
  std::filesystem::rename(in_store("link/manifest"), at("manifest"));
  std::filesystem::create_symlink(at("manifest"), in_store("link/manifest"));
  std::filesystem::remove(in_store("pipe/manifest"));
  ASSERT_EQ(::mkfifo(in_store("pipe/manifest").c_str(), 0600), 0);
  for (const char* each : {"cut", "empty", "link", "pipe"}) {
    EXPECT_NE(listed(each).outcome, "exited with 0") << each;
    EXPECT_FALSE(store().load(each)) << each;
  }
  EXPECT_EQ(store().load("cut").error().code, "broken-set");
  EXPECT_THAT(listed("cut").outcome, HasSubstr("its end is missing"));
  for (const char* each : {"cut", "empty", "link", "pipe"}) EXPECT_TRUE(store().drop(each)) << each;
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(KeptTest, AReplacedOrMissingWorkspaceIsAnError) {
  ASSERT_TRUE(keep("set", {}));
  auto kept = store().load("set");
  ASSERT_TRUE(kept);
  EXPECT_TRUE(open_directories(*kept));
  std::filesystem::rename(at("lower"), at("moved"));
  EXPECT_EQ(open_directories(*kept).error().code, "workspace-gone");
  std::filesystem::create_directory(at("lower"));
  const Status replaced = open_directories(*kept);
  ASSERT_FALSE(replaced);
  EXPECT_EQ(replaced.error().code, "workspace-replaced");
  EXPECT_THAT(replaced.error().message, HasSubstr(at("lower").string()));
}

TEST(KeptName, IsLettersDigitsAndThreeMarks) {
  for (const std::string& name :
       {std::string("a"), std::string("0"), std::string("cleanup-1.2_X"), std::string(64, 'n')})
    EXPECT_TRUE(check_set_name(name)) << name;
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string(".sbx-0123456789abcdef"),
        std::string("-a"), std::string("_a"), std::string("a/b"), std::string("../a"),
        std::string("a b"), std::string("\xc3\xa4"), std::string("a\0b", 3), std::string("a\n"),
        std::string(65, 'n')}) {
    const Status checked = check_set_name(name);
    ASSERT_FALSE(checked) << name;
    EXPECT_EQ(checked.error().code, "bad-set-name");
    EXPECT_EQ(checked.error().kind, ErrorKind::usage);
  }
}

}  // namespace
}  // namespace sbx::changes
