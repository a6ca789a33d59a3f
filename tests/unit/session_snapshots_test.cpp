#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "changes/kept.hpp"
#include "session/snapshot_store.hpp"

namespace sbx::session {
namespace {

constexpr pid_t kNobody = 4'194'305;  ///< above each pid_max, proc(5)

struct SnapshotStoreTest : testing::Test {
  std::string state = testing::TempDir() + "/sbx-snapshots-XXXXXX";
  void SetUp() override { ASSERT_NE(::mkdtemp(state.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(state); }

  static void keep(const std::string& directory, const std::string& name) {
    const auto store = changes::Store::open_or_make(directory);
    ASSERT_TRUE(store);
    ASSERT_TRUE(store->keep({.name = name}, {}, {}));
  }
  static bool has(const std::string& directory, const std::string& name) {
    const auto store = changes::Store::open(directory);
    return store && store->has(name);
  }
};

TEST_F(SnapshotStoreTest, SnapshotsOfEndedClientsAreSweptAndOthersStay) {
  const std::string of_living = std::to_string(::getpid()) + "-1";
  const std::string of_ended = std::to_string(kNobody) + "-1";
  for (const std::string& directory : {snapshot_directory(state), notes_directory(state)}) {
    for (const std::string& name : {of_living, of_ended, std::string("nobody")})
      keep(directory, name);
  }
  sweep_snapshots(state);
  for (const std::string& directory : {snapshot_directory(state), notes_directory(state)}) {
    EXPECT_TRUE(has(directory, of_living)) << directory;
    EXPECT_FALSE(has(directory, of_ended)) << directory;
    EXPECT_FALSE(has(directory, "nobody")) << directory;
  }
}

TEST_F(SnapshotStoreTest, ASessionDropsItsOwnNotes) {
  keep(notes_directory(state), notes_of(::getpid(), "s_1"));
  keep(notes_directory(state), notes_of(::getpid(), "s_2"));
  drop_notes(state, "s_1");
  EXPECT_FALSE(has(notes_directory(state), notes_of(::getpid(), "s_1")));
  EXPECT_TRUE(has(notes_directory(state), notes_of(::getpid(), "s_2")));
}

TEST_F(SnapshotStoreTest, WithoutAHomeThereIsNoStore) {
  EXPECT_EQ(snapshot_directory(""), "");
  EXPECT_EQ(notes_directory(""), "");
  sweep_snapshots("");
  drop_notes("", "s_1");
}

}  // namespace
}  // namespace sbx::session
