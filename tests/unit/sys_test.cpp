#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "base/message.hpp"
#include "base/result.hpp"
#include "base/sys.hpp"

namespace sbx::sys {
namespace {

TEST(Files, SayWhichOfTheirCallsFailed) {
  const auto opened = open_at(AT_FDCWD, "/proc/self/nowhere", O_RDONLY);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, "cannot-open");
  EXPECT_EQ(opened.error().errno_value, ENOENT);

  const auto read = read_file("/proc/self", 16);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, "cannot-read");
  EXPECT_EQ(read.error().errno_value, EISDIR);

  const Status written = write_file("/dev/full", "text");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, "cannot-write");
  EXPECT_EQ(written.error().errno_value, ENOSPC);
}

TEST(Message, ThatCannotBeSentIsThePeersEndOnlyWhereThePeerIsGone) {
  const Error gone{.kind = ErrorKind::host, .code = "session-gone", .message = "gone"};
  const auto code_of = [&](int error) {
    errno = error;
    return send_failure(gone).code;
  };
  EXPECT_EQ(code_of(EPIPE), "session-gone");
  EXPECT_EQ(code_of(ECONNRESET), "session-gone");
  EXPECT_EQ(code_of(ETOOMANYREFS), "descriptors-in-flight");
  EXPECT_EQ(code_of(ENOBUFS), "cannot-send");
}

}  // namespace
}  // namespace sbx::sys
