#include <gtest/gtest.h>

#include "plan/files/hazards.hpp"

namespace sbx::plan {
namespace {

TEST(Hazards, NamesWithControlOrReorderingCharactersMislead) {
  for (const char* name : {"a\nb", "a\x1b[2J", "\x7f",
                           "a\xc2\x9b"
                           "b",
                           "\xd8\x9c", "a\xe2\x80\x8e",
                           "a\xe2\x80\xae"
                           "txt.exe",
                           "\xe2\x81\xa6"
                           "a",
                           "\xe2\x81\xa9"})
    EXPECT_TRUE(is_misleading(name)) << name;
  for (const char* name : {"", "a", "a b", "\xc3\xa4", "\xc2\xa0", "\xe2\x80\x9c", "\xe2\x80\xa6",
                           "\xe2\x81\xa5", "\xff\xfe", "\xe2\x80", "\xc2"})
    EXPECT_FALSE(is_misleading(name)) << name;
}

TEST(Hazards, ALinkLeadsOutByItsText) {
  for (const char* text : {"/", "/etc/passwd", "..", "../../x", "../../w/x", "./../..",
                           "d/../../../x", "/w/../etc", "/wx"})
    EXPECT_TRUE(leads_out("/w/d/link", std::string_view(text) == ".." ? "../.." : text, "/w"))
        << text;
  for (const char* text : {"x", "../x", "./a//b/../c", "/w", "/w/x", "/w/../w/x", "..", ""})
    EXPECT_FALSE(leads_out("/w/d/link", text, "/w")) << text;
}

}  // namespace
}  // namespace sbx::plan
