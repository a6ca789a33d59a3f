#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <span>

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

TEST(Message, OfAPeerThatHasLeftIsReceivedThoughItHadNotReadAll) {
  auto pair = make_packet_pair();
  ASSERT_TRUE(pair);
  auto& [ours, peers] = *pair;
  const std::byte question{1};
  const std::byte answer{2};
  ASSERT_TRUE(send_message(ours.get(), std::span(&question, 1), {}));
  ASSERT_TRUE(send_message(peers.get(), std::span(&answer, 1), {}));
  peers.reset();
  std::byte got{};
  EXPECT_EQ(receive_message(ours.get(), std::span(&got, 1)).length, 1U);
  EXPECT_EQ(got, answer);
  EXPECT_EQ(receive_message(ours.get(), std::span(&got, 1)).length, 0U);
}

}  // namespace
}  // namespace sbx::sys
