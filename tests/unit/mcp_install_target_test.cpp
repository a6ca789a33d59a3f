#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "cli/mcp_install/target.hpp"

namespace sbx::cli::mcp_install {
namespace {

class McpInstallTarget : public testing::Test {
 protected:
  McpInstallTarget() {
    std::string name = testing::TempDir() + "/sbx-home-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    home_ = std::filesystem::canonical(name);
    outside_ = home_.string() + "-outside";
    std::filesystem::create_directory(outside_);
  }
  ~McpInstallTarget() override {
    std::filesystem::remove_all(home_);
    std::filesystem::remove_all(outside_);
  }

  void write(const std::filesystem::path& file, const std::string& text = "{}") const {
    std::filesystem::create_directories((home_ / file).parent_path());
    std::ofstream(home_ / file) << text;
  }
  [[nodiscard]] std::string read(const std::filesystem::path& file) const {
    std::ifstream in(home_ / file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void link(const std::filesystem::path& to, const std::filesystem::path& name) const {
    std::filesystem::create_directories((home_ / name).parent_path());
    std::filesystem::create_symlink(to, home_ / name);
  }
  [[nodiscard]] std::string replaced(const std::string& below, const std::string& text) const {
    auto target = Target::open(home_.string(), below);
    if (!target) return target.error().message;
    const Status done = target->replace(text);
    return done ? "" : done.error().message;
  }
  [[nodiscard]] std::size_t names_in(const std::filesystem::path& directory) const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(home_ / directory), {}));
  }

  std::filesystem::path home_;
  std::filesystem::path outside_;
};

TEST_F(McpInstallTarget, MakesFileAndDirectoriesForTheirOwnerAlone) {
  EXPECT_EQ(replaced(".a/b/c.json", "new"), "");
  EXPECT_EQ(read(".a/b/c.json"), "new");
  struct stat facts{};
  ASSERT_EQ(::stat((home_ / ".a/b/c.json").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat((home_ / ".a").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0700U);
  EXPECT_EQ(names_in(".a/b"), 1U);
}

TEST_F(McpInstallTarget, ReplacesInOneStepAndKeepsTheMode) {
  write("f", "old");
  std::filesystem::permissions(home_ / "f", std::filesystem::perms(0640));
  const int held = ::open((home_ / "f").c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(replaced("f", "new"), "");
  EXPECT_EQ(read("f"), "new");
  struct stat facts{};
  ASSERT_EQ(::stat((home_ / "f").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0640U);
  char old[4] = {};  // who has it open still reads the whole of the old one
  EXPECT_EQ(::read(held, old, 3), 3);
  EXPECT_STREQ(old, "old");
  ::close(held);
  EXPECT_EQ(names_in("."), 1U);
}

TEST_F(McpInstallTarget, FollowsLinksThatStayInTheHome) {
  write("dotfiles/claude/settings.json", "old");
  link("../dotfiles/claude/settings.json", ".claude/settings.json");
  link(home_ / "dotfiles/claude", ".absolute");
  EXPECT_EQ(replaced(".claude/settings.json", "one"), "");
  EXPECT_EQ(read("dotfiles/claude/settings.json"), "one");
  EXPECT_EQ(replaced(".absolute/settings.json", "two"), "");
  EXPECT_EQ(read("dotfiles/claude/settings.json"), "two");
  EXPECT_TRUE(std::filesystem::is_symlink(home_ / ".claude/settings.json"));
  link("nowhere/x.json", "dangling");  // is made where the link leads
  EXPECT_EQ(replaced("dangling", "three"), "");
  EXPECT_EQ(read("nowhere/x.json"), "three");
}

TEST_F(McpInstallTarget, FollowsNoLinkOutOfTheHome) {
  std::ofstream(outside_ / "f") << "old";
  link(outside_, ".config");
  link(outside_ / "f", "absolute");
  link("../" + outside_.filename().string() + "/f", "relative");
  link("a/../../" + outside_.filename().string() + "/f", "around");
  std::filesystem::create_directory(home_ / "a");
  link("/proc/self/cwd", "magic");
  for (const char* const below : {".config/f", "absolute", "relative", "around", "magic/f"})
    EXPECT_TRUE(replaced(below, "new").contains("leads out of")) << below;
  std::ifstream in(outside_ / "f");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "old");
  link("loop", "loop");
  EXPECT_NE(replaced("loop", "new"), "");
}

TEST_F(McpInstallTarget, RefusesWhatIsNoFileOfASettingsSize) {
  ASSERT_EQ(::mkfifo((home_ / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(replaced("fifo", "new"), "it is not a regular file");
  std::filesystem::create_directory(home_ / "directory");
  EXPECT_TRUE(replaced("directory", "new").contains("is a directory"));
  write("huge");
  std::filesystem::resize_file(home_ / "huge", (16U << 20) + 1);
  EXPECT_EQ(replaced("huge", "new"), "it has more than 16 MiB");
  write("file");
  EXPECT_NE(replaced("file/below", "new"), "");
}

TEST_F(McpInstallTarget, OverwritesNothingThatAnotherWroteMeanwhile) {
  write("f", "old");
  auto target = Target::open(home_.string(), "f");
  auto missing = Target::open(home_.string(), "g");
  ASSERT_TRUE(target && missing);
  write("f", "longer than before");
  write("g", "new");
  EXPECT_EQ(target->replace("ours").error().code, "not-editable");
  EXPECT_TRUE(target->replace("ours").error().message.contains("has changed"));
  EXPECT_TRUE(missing->replace("ours").error().message.contains("has changed"));
  EXPECT_EQ(read("f"), "longer than before");
  EXPECT_EQ(read("g"), "new");
  EXPECT_EQ(names_in("."), 2U);
}

TEST_F(McpInstallTarget, WritesIntoTheDirectoryThatItHolds) {
  write("settings/f", "old");
  auto target = Target::open(home_.string(), "settings/f");
  ASSERT_TRUE(target);
  std::filesystem::rename(home_ / "settings", home_ / "moved");
  std::ofstream(outside_ / "f") << "theirs";
  link(outside_, "settings");
  EXPECT_TRUE(target->replace("new"));
  EXPECT_EQ(read("moved/f"), "new");
  EXPECT_EQ(read("settings/f"), "theirs");
}

}  // namespace
}  // namespace sbx::cli::mcp_install
