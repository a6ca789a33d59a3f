#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "spawn/failure.hpp"
#include "spawn/spawn.hpp"

namespace sbx::spawn {
namespace {

using child::Stage;
using testing::HasSubstr;

plan::Plan with_workspace(bool read_only) {
  plan::Plan plan;
  plan::Mount mount;
  mount.payload = plan::mount::Overlay{{.source = {.path = "/srv/project"}}};
  mount.target = "/srv/project";
  mount.rights = read_only ? plan::Rights{} : plan::kWritable;
  mount.origin = {.file = "p.toml", .line = 3, .layer = Layer::file};
  plan.mounts = {mount};
  return plan;
}

TEST(ExplainFailure, ADirectoryThatCanNotBeALayerHasACodeThatAsksForACopy) {
  const Error error = explain_failure(with_workspace(false),
                                      {.stage = Stage::overlay, .index = 0, .error = EINVAL});
  EXPECT_EQ(error.code, "no-overlay");
  EXPECT_THAT(error.message, HasSubstr("/srv/project"));
  EXPECT_THAT(error.hint, HasSubstr("--workspace DIR:read-write"));
  EXPECT_EQ(error.origin ? error.origin->line : 0, 3);
}

TEST(ExplainFailure, AReadOnlyOneIsNotCopied) {
  const Error error =
      explain_failure(with_workspace(true), {.stage = Stage::overlay, .index = 0, .error = EINVAL});
  EXPECT_EQ(error.code, "setup-overlay");
}

TEST(ExplainFailure, AStageIsNamedByItsCode) {
  const Error error = explain_failure({}, {.stage = Stage::hostname, .index = 0, .error = EIO});
  EXPECT_EQ(error.code, "setup-hostname");
  EXPECT_EQ(error.errno_value, EIO);
}

TEST(ExplainFailure, AForkThatMeetsTheCallersLimitNamesTheLimit) {
  const Error error = explain_failure({}, {.stage = Stage::payload, .index = 0, .error = EAGAIN});
  EXPECT_EQ(error.code, "cannot-clone");
  EXPECT_THAT(error.hint, HasSubstr("ulimit -u"));
}

}  // namespace
}  // namespace sbx::spawn
