#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/links.hpp"

namespace sbx {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

LinkText of(std::map<std::string, std::string> links) {
  return [links = std::move(links)](const std::string& path) -> std::optional<std::string> {
    const auto found = links.find(path);
    return found == links.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(Links, APathWithoutLinksHasNone) {
  EXPECT_THAT(links_on_the_way("/a/./b//c/../d", of({{"/c", "/x"}})), IsEmpty());
}

TEST(Links, EachIsNamedWhereItLies) {
  const LinkText links = of({{"/a", "real/one"}, {"/real/one/b", "../two"}, {"/real/two/c", "/d"}});
  EXPECT_THAT(links_on_the_way("/a/b/c", links), ElementsAre("/a", "/real/one/b", "/real/two/c"));
}

TEST(Links, TwoDotsLeaveWhereALinkLed) {
  const LinkText links = of({{"/a", "/deep/down"}, {"/deep/b", "c"}});
  EXPECT_THAT(links_on_the_way("/a/../b", links), ElementsAre("/a", "/deep/b"));
  EXPECT_THAT(links_on_the_way("/../../a", links), ElementsAre("/a"));
}

TEST(Links, ACircleHasAnEnd) {
  EXPECT_THAT(links_on_the_way("/a", of({{"/a", "b"}, {"/b", "a"}})), SizeIs(40));
}

}  // namespace
}  // namespace sbx
