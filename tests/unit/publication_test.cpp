#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/network_rules.hpp"

namespace sbx::policy {
namespace {

using testing::HasSubstr;

TEST(Publication, HasOneCanonicalText) {
  const auto text = [](const char* given) {
    const auto one = parse_publication(given);
    return one ? one->text() : one.error().message;
  };
  EXPECT_EQ(text("127.0.0.1:8080:80"), "127.0.0.1:8080:80");
  EXPECT_EQ(text("8080:80"), "127.0.0.1:8080:80");
  EXPECT_EQ(text("127.5.0.1:8080:80"), "127.5.0.1:8080:80");
  EXPECT_EQ(text("[::1]:8080:80"), "[::1]:8080:80");
}

TEST(Publication, IsOfTwoPortsOnTheHostsLoopbackAndNothingElse) {
  for (const char* const wrong : {"",
                                  ":",
                                  "80",
                                  "80:",
                                  ":80",
                                  "0:80",
                                  "80:0",
                                  "65536:80",
                                  "080:80",
                                  "0.0.0.0:80:80",
                                  "192.168.0.1:80:80",
                                  "[::]:80:80",
                                  "::1:80:80",
                                  "[::1:80:80",
                                  "[]:80:80",
                                  "*:80:80",
                                  "localhost:80:80",
                                  "127.1:80:80",
                                  "0177.0.0.1:80:80",
                                  "127.0.0.1:80:80:80",
                                  "udp://127.0.0.1:80:80",
                                  "127.0.0.1:80-81:80",
                                  " 80:80",
                                  "127.0.0.1::80",
                                  "[::ffff:127.0.0.1]:80:80",
                                  "127.0.0.1/8:80:80"}) {
    const auto one = parse_publication(wrong);
    EXPECT_FALSE(one) << wrong << " was read as " << one->text();
    EXPECT_THAT(one ? "" : one.error().hint, HasSubstr("127.0.0.1:8080:80"));
  }
}

}  // namespace
}  // namespace sbx::policy
