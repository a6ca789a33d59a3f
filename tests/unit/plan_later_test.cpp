#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "canned_host.hpp"
#include "plan/files/later.hpp"

namespace sbx::plan {
namespace {

struct Session {
  Session() {
    auto canned = std::make_unique<host::CannedFiles>();
    files = canned.get();
    files->file("/work/file").file("/work/sub/file").file("/work/sub/deep/file");
    host.files = std::move(canned);
    plan.hidden_names = {"**/.env"};
    mount::Overlay overlay;
    overlay.source.path = "/work";
    const auto facts = files->look("/work");
    overlay.source.device = facts->device;
    overlay.source.inode = facts->inode;
    plan.mounts.push_back({.target = "/work", .payload = overlay});
  }
  /// Which directories were listed, and the error.
  std::pair<std::vector<std::string>, std::string> look() {
    files->walked.clear();
    const Status looked = names.look(plan, host, degraded);
    std::ranges::sort(files->walked);
    return {files->walked, looked ? "" : looked.error().message};
  }

  host::CannedFiles* files = nullptr;
  host::Host host;
  Plan plan;
  LaterNames names;
  std::vector<Degraded> degraded;
};

using Listed = std::vector<std::string>;

TEST(LaterNames, OnlyADirectoryThatChangedIsListedAgain) {
  Session session;
  EXPECT_EQ(session.look(),
            std::pair(Listed({"/work", "/work/sub", "/work/sub/deep"}), std::string()));
  EXPECT_EQ(session.look(), std::pair(Listed(), std::string()));
  session.files->file("/work/sub/deep/other").changed("/work/sub/deep", 5);
  EXPECT_EQ(session.look(), std::pair(Listed({"/work/sub/deep"}), std::string()));
  EXPECT_EQ(session.look(), std::pair(Listed(), std::string()));
}

TEST(LaterNames, ADeniedNameIsFoundUntilItIsGone) {
  Session session;
  EXPECT_EQ(session.look().second, "");
  session.files->file("/work/sub/.env").changed("/work/sub", 5);
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(session.look().second.starts_with("'/work/sub/.env' was made since")) << i;
}

/// Two changes within one tick of the clock get one stamp.
TEST(LaterNames, WhatChangedJustNowIsListedAgain) {
  Session session;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  session.files->changed("/work/sub", now.tv_sec * 1'000'000'000 + now.tv_nsec);
  EXPECT_EQ(session.look().second, "");
  session.files->file("/work/sub/.env");
  EXPECT_TRUE(session.look().second.starts_with("'/work/sub/.env' was made since"));
}

TEST(LaterNames, AnotherDirectoryInThePlaceIsListed) {
  Session session;
  EXPECT_EQ(session.look().second, "");
  session.files->directory("/work/sub").file("/work/sub/.env");
  EXPECT_TRUE(session.look().second.starts_with("'/work/sub/.env' was made since"));
}

/// The session still shows it, and the host may make a denied name in it.
TEST(LaterNames, AShownDirectoryThatIsNoLongerAtItsPathIsAnError) {
  Session moved;
  EXPECT_EQ(moved.look().second, "");
  for (const int errno_value : {ENOENT, EACCES}) {
    moved.files->broken("/work", errno_value);
    EXPECT_TRUE(moved.look().second.ends_with("it is no longer at '/work'")) << errno_value;
  }
  Session replaced;
  EXPECT_EQ(replaced.look().second, "");
  replaced.files->directory("/work");
  EXPECT_TRUE(replaced.look().second.ends_with("it is no longer at '/work'"));
}

/// Twins: what is gone, or closed to the caller, hides nothing from it.
TEST(LaterNames, WhatCannotBeLookedAtIsAnError) {
  for (const auto& [errno_value, is_error] :
       {std::pair(EIO, true), {ENAMETOOLONG, true}, {ENOENT, false}, {EACCES, false}}) {
    Session session;
    session.files->broken("/work/sub", errno_value);
    EXPECT_EQ(session.look().second.starts_with("cannot look for denied names in '/work/sub'"),
              is_error)
        << errno_value;
  }
}

TEST(LaterNames, MoreThanTheBoundIsTold) {
  Session session;
  for (std::uint64_t i = 0; i <= kMostLookedAtAgain; ++i)
    session.files->file("/work/sub/f" + std::to_string(i));
  for (int i = 0; i < 2; ++i) {
    session.degraded.clear();
    EXPECT_EQ(session.look().second, "");
    ASSERT_EQ(session.degraded.size(), 1U);
    EXPECT_EQ(session.degraded[0].promise, Promise::hidden_files);
  }
}

}  // namespace
}  // namespace sbx::plan
