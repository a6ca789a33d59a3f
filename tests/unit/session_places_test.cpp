#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string>

#include "base/unique_fd.hpp"
#include "session/peer.hpp"
#include "session/session_name.hpp"
#include "session/session_place.hpp"

namespace sbx::session {
namespace {

TEST(SessionNames, AreShortWordsOfLowerCaseLetters) {
  for (const std::string& right : {std::string("a"), std::string("0-b"), std::string(63, 'x')})
    EXPECT_TRUE(check_name(right)) << right;
  for (const std::string& wrong : {std::string(), std::string("-a"), std::string("A"),
                                   std::string("a/b"), std::string(64, 'x')}) {
    const Status checked = check_name(wrong);
    ASSERT_FALSE(checked) << wrong;
    EXPECT_EQ(checked.error().code, "bad-session-name");
  }
}

TEST(SessionNames, ThatAreMadeAreRightAndDiffer) {
  EXPECT_TRUE(check_name(make_name()));
  EXPECT_NE(make_name(), make_name());
}

TEST(SessionPlaces, HaveASocketWhoseAddressIsShortAndLeaveNothing) {
  std::string made = "/tmp/sbx-place-XXXXXX";
  ASSERT_NE(::mkdtemp(made.data()), nullptr);
  const UniqueFd parent(::open(made.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::string name(63, 'n');
  ASSERT_FALSE(open_place(parent.get(), name).valid());
  ASSERT_EQ(::mkdirat(parent.get(), name.c_str(), 0700), 0);
  const UniqueFd place = open_place(parent.get(), name);
  ASSERT_TRUE(place.valid());
  EXPECT_TRUE(open_lock(place.get()).valid());
  const Address address = address_in(place.get());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.value), address.size),
            0);
  EXPECT_EQ(::faccessat(place.get(), kSocketName, F_OK, 0), 0);
  remove_place(parent.get(), place.get(), name);
  EXPECT_FALSE(open_place(parent.get(), name).valid());
  EXPECT_EQ(::rmdir(made.c_str()), 0);
}

TEST(Peers, OfTheSameUserAndPidNamespaceMayUseASession) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  const UniqueFd one(ends[0]);
  const UniqueFd other(ends[1]);
  EXPECT_TRUE(may_use(one.get()));
  EXPECT_FALSE(may_use(-1));
}

}  // namespace
}  // namespace sbx::session
