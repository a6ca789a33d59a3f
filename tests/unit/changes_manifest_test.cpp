#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "changes/manifest.hpp"

namespace sbx::changes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A whole manifest with one change; its line is the tenth.
std::string with_change(const std::string& line) {
  return "sbx.set/1\nmade 1\ndirectory /home/me/project\nrun 0123\noutcome exited\nsuccess "
         "yes\n"
         "count 1\nbytes 4\nlayer 7 .\n" +
         line + "\nend 1\n";
}

constexpr const char* kGood = "created file 0644 4 0 - file";

Error error_of(const std::string& text, Part part = Part::everything) {
  auto read = parse_manifest("once", text, part);
  EXPECT_FALSE(read) << text;
  return read ? Error{} : read.error();
}

TEST(Manifest, WhatIsWrittenIsRead) {
  Manifest manifest{.facts = {.made = 1'700'000'000,
                              .directory = "/home/me/a b",
                              .run = "0123",
                              .command = {"sh", "-c", "echo 100%\nls", ""},
                              .outcome = "exited with 3",
                              .policy_files = {"/etc/\xff"},
                              .count = 2,
                              .bytes = 5,
                              .lost = {{.path = "gone %\n", .why = "no room"}}},
                    .layers = {{.prefix = ".", .inode = 7}, {.prefix = "inner/b c", .inode = 8}}};
  manifest.lines.push_back({.change = {.path = "line\nbreak",
                                       .change = ChangeKind::modified,
                                       .type = FileType::file,
                                       .bytes = 5,
                                       .mode = 04755},
                            .content = "0",
                            .before = Noted{.inode = 9,
                                            .bytes = 3,
                                            .modified = {.tv_sec = 10, .tv_nsec = 5},
                                            .changed = {.tv_sec = 11, .tv_nsec = 999'999'999},
                                            .links = 4,
                                            .disturbed = true}});
  manifest.lines.push_back({.change = {.path = ".",
                                       .change = ChangeKind::mode,
                                       .type = FileType::directory,
                                       .mode = 0700},
                            .content = {},
                            .before = std::nullopt});
  manifest.directories = {{.path = "in\ner", .inode = 12, .mode = 02750}};
  manifest.links["a b"] = {.file = 3, .to = "c\nd", .names = 2, .is_split = true};
  const auto read = parse_manifest("once", write_manifest(manifest), Part::everything);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->facts.directory, "/home/me/a b");
  EXPECT_THAT(read->facts.command, ElementsAre("sh", "-c", "echo 100%\nls", ""));
  EXPECT_THAT(read->facts.policy_files, ElementsAre("/etc/\xff"));
  EXPECT_FALSE(read->facts.success);
  ASSERT_EQ(read->facts.lost.size(), 1U);
  EXPECT_EQ(read->facts.lost[0].path, "gone %\n");
  EXPECT_EQ(read->facts.lost[0].why, "no room");
  ASSERT_EQ(read->layers.size(), 2U);
  EXPECT_EQ(read->layers[1].prefix, "inner/b c");
  EXPECT_EQ(read->layers[1].inode, 8U);
  ASSERT_EQ(read->directories.size(), 1U);
  EXPECT_EQ(read->directories[0].path, "in\ner");
  EXPECT_EQ(read->directories[0].inode, 12U);
  EXPECT_EQ(read->directories[0].mode, 02750U);
  ASSERT_EQ(read->lines.size(), 2U);
  EXPECT_EQ(read->lines[0].change, manifest.lines[0].change);
  EXPECT_EQ(read->lines[0].content, "0");
  ASSERT_TRUE(read->lines[0].before);
  EXPECT_EQ(read->lines[0].before->inode, 9U);
  EXPECT_EQ(read->lines[0].before->modified.tv_nsec, 5);
  EXPECT_EQ(read->lines[0].before->changed.tv_nsec, 999'999'999);
  EXPECT_EQ(read->lines[0].before->links, 4U);
  EXPECT_TRUE(read->lines[0].before->disturbed);
  EXPECT_EQ(read->lines[1].change, manifest.lines[1].change);
  EXPECT_FALSE(read->lines[1].before);
  ASSERT_TRUE(read->links.contains("a b"));
  const workspace::Linked& linked = read->links.at("a b");
  EXPECT_EQ(linked.file, 3U);
  EXPECT_EQ(linked.to, "c\nd");
  EXPECT_EQ(linked.names, 2U);
  EXPECT_TRUE(linked.is_split);
  EXPECT_EQ(write_manifest(*read), write_manifest(manifest));
}

TEST(Manifest, AnEditedDirectoryIsRefused) {
  ASSERT_TRUE(parse_manifest("once", with_change("seen 8 0755 sub\n" + std::string(kGood)),
                             Part::everything));
  for (const char* line : {"seen 8 0755 ../sub", "seen 8 0755 .", "seen 8 10000 sub",
                           "seen x 0755 sub", "seen 8 0755 ", "seen 8 0755", "seen 8 0798 sub"})
    EXPECT_EQ(error_of(with_change(line + ("\n" + std::string(kGood)))).code, "broken-set") << line;
}

TEST(Manifest, AnEditedLineIsRefusedWithItsNumber) {
  ASSERT_TRUE(parse_manifest("once", with_change(kGood), Part::everything));
  for (const char* line : {
           "created file 0644 4 0 - ../file",         // out of the workspace
           "created file 0644 4 0 - a/../../file",    //
           "created file 0644 4 0 - /etc/passwd",     //
           "created file 0644 4 0 - %2E%2E/file",     //
           "created file 0644 4 0 - a//b",            // not as it would be written
           "created file 0644 4 0 - a/",              //
           "created file 0644 4 0 - .",               // the workspace itself changes its mode only
           "created file 0644 4 0 - ",                //
           "created file 0644 4 ../manifest - file",  // out of the set
           "created file 0644 4 0/1 - file",          //
           "created file 0644 4 0 - a%00b",           // a zero byte ends a path for the kernel
           "created file 0644 4 0 - a%4",             //
           "created file 0644 4 0 - a%zz",            //
           "created file 10644 4 0 - file",           // more than permission bits
           "created file 0888 4 0 - file",            //
           "created file 0644 -4 0 - file",           //
           "created file 0644 4 0 1:2:3 file",        // half a note
           "created file 0644 4 0 1:2:3.0:4.0:x file",
           "created thing 0644 4 0 - file",
           "invented file 0644 4 0 - file",
       }) {
    const Error error = error_of(with_change(line));
    EXPECT_EQ(error.code, "broken-set") << line;
    EXPECT_THAT(error.message, HasSubstr("the set \"once\"")) << line;
    EXPECT_THAT(error.message, HasSubstr("line 10: ")) << line;
    EXPECT_THAT(error.hint, HasSubstr("sbx changes drop")) << line;
  }
}

TEST(Manifest, ACutOneIsRefusedWhereverItEnds) {
  const std::string whole = with_change(kGood);
  for (std::size_t size = 0; size + 1 < whole.size();
       ++size)  // without the last newline it is whole
    EXPECT_EQ(error_of(whole.substr(0, size)).code, "broken-set") << size;
}

TEST(Manifest, ItsLastLineCountsTheOthers) {
  const std::string text = with_change(kGood);
  const std::string without = text.substr(0, text.find("created")) + "end 1\n";
  EXPECT_THAT(error_of(without).message, HasSubstr("lines are missing"));
}

TEST(Manifest, AnotherSchemaIsRefused) {
  const std::string text = with_change(kGood);
  EXPECT_THAT(error_of("sbx.changes/2" + text.substr(text.find('\n'))).message,
              HasSubstr("sbx.set/1"));
}

TEST(Manifest, ItNeedsAWorkspaceAndItsFirstLayer) {
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"directory /home/me/project\n", ""},
           {"directory /home/me/project\n", "directory project\n"},
           {"directory /home/me/project\n", "directory /home/../etc\n"},
           {"layer 7 .\n", ""},
           {"layer 7 .\n", "layer 7 inner\n"},
           {"layer 7 .\n", "layer 7 ../..\n"},
       }) {
    std::string text = with_change(kGood);
    text.replace(text.find(from), from.size(), to);
    EXPECT_EQ(error_of(text).code, "broken-set") << to;
    EXPECT_EQ(error_of(text, Part::facts).code, "broken-set") << to;
  }
}

TEST(Manifest, TheFactsAreReadWithoutTheChanges) {
  const auto read = parse_manifest("once", with_change("created nonsense"), Part::facts);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->facts.count, 1U);
  EXPECT_TRUE(read->lines.empty());
}

}  // namespace
}  // namespace sbx::changes
