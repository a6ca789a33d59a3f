#include <gtest/gtest.h>

#include "policy/addresses.hpp"
#include "policy/special_ranges.hpp"

namespace sbx::policy {
namespace {

TEST(Addresses, AreReadStrictly) {
  for (const char* const wrong : {"", "1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.256",
                                  "0x1.2.3.4", " 1.2.3.4", "1.2.3.4 ", "1.2.3.-4", "::1"})
    EXPECT_FALSE(parse_v4(wrong)) << wrong;
  for (const char* const wrong : {"", ":", ":::", "1::2::3", "::g", "fe80::1%1", "1.2.3.4", "[::1]",
                                  "12345::", "1:2:3:4:5:6:7:8:9"})
    EXPECT_FALSE(parse_v6(wrong)) << wrong;
  EXPECT_FALSE(parse_v4(std::string_view("1.2.3.4\0", 8)));
}

TEST(Addresses, EmbeddedOnesAreFound) {
  const auto inner = [](const char* text) {
    const auto v4 = embedded_v4(*parse_v6(text));
    return v4 ? v4->text() : "none";
  };
  EXPECT_EQ(inner("::ffff:127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(inner("::127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(inner("64:ff9b::a9fe:a9fe"), "169.254.169.254");
  EXPECT_EQ(inner("2002:7f00:1::"), "127.0.0.1");
  EXPECT_EQ(inner("2001::80ff:fffe"), "127.0.0.1");
  EXPECT_EQ(inner("::1"), "none");
  EXPECT_EQ(inner("::"), "none");
  EXPECT_EQ(inner("2001:db8::1"), "none");
}

}  // namespace
}  // namespace sbx::policy
