#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "network/special.hpp"
#include "policy/network_match.hpp"

namespace sbx::network {
namespace {

using policy::Address;
using policy::NetworkRule;
using policy::Special;
using testing::HasSubstr;

Address address(std::string_view text) {
  const auto v4 = policy::parse_v4(text);
  const auto v6 = policy::parse_v6(text);
  EXPECT_TRUE(v4 || v6) << text;
  return v4 ? *v4 : v6.value_or(Address{});
}

NetworkRule rule(std::string_view text) {
  const auto parsed = policy::parse_network_rule(text);
  EXPECT_TRUE(parsed) << text;
  return parsed.value_or(NetworkRule{});
}

const HostAddresses kHost({address("203.0.114.5"), address("2a00::5"), address("10.7.7.7")});

/// "allowed", or the reason for the refusal.
std::string answer(std::string_view rule_text, std::string_view to, bool private_ = false) {
  const auto no = refused(rule(rule_text), private_, address(to), 80, kHost);
  return no ? no->why : "allowed";
}

Special special_of(std::string_view text) {
  const auto* range = policy::special_range(address(text));
  return range == nullptr ? Special::global : range->special;
}

// --- the table

TEST(SpecialRanges, ARangeStandsBeforeThoseThatContainIt) {
  const auto ranges = policy::special_ranges();
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    EXPECT_EQ(policy::masked(ranges[i].prefix.address, ranges[i].prefix.length),
              ranges[i].prefix.address)
        << ranges[i].prefix.text();
    for (std::size_t j = i + 1; j < ranges.size(); ++j)
      EXPECT_FALSE(ranges[i].prefix.contains(ranges[j].prefix))
          << ranges[i].prefix.text() << " hides " << ranges[j].prefix.text();
  }
}

struct Known {
  const char* address;
  Special special;
};
class KnownAddress : public testing::TestWithParam<Known> {};

TEST_P(KnownAddress, IsAsSpecialAsTheRegistrySays) {
  EXPECT_EQ(special_of(GetParam().address), GetParam().special) << GetParam().address;
}

using enum Special;
INSTANTIATE_TEST_SUITE_P(
    V4, KnownAddress,
    testing::Values(
        Known{"8.8.8.8", global}, Known{"1.1.1.1", global}, Known{"9.255.255.255", global},
        Known{"0.0.0.0", never}, Known{"0.1.2.3", never}, Known{"10.0.0.0", reserved},
        Known{"10.255.255.255", reserved}, Known{"11.0.0.0", global},
        Known{"100.63.255.255", global}, Known{"100.64.0.0", reserved},
        Known{"100.127.255.255", reserved}, Known{"100.128.0.0", global},
        Known{"100.100.100.200", exact}, Known{"127.0.0.1", exact}, Known{"127.255.255.255", exact},
        Known{"128.0.0.0", global}, Known{"169.254.0.1", reserved}, Known{"169.254.169.254", exact},
        Known{"169.254.170.2", exact}, Known{"169.254.0.23", exact}, Known{"169.254.42.42", exact},
        Known{"192.88.99.2", reserved}, Known{"192.0.0.8", reserved},
        Known{"192.0.0.171", reserved}, Known{"168.63.129.16", exact},
        Known{"172.15.255.255", global}, Known{"172.16.0.0", reserved},
        Known{"172.31.255.255", reserved}, Known{"172.32.0.0", global},
        Known{"192.0.0.1", reserved}, Known{"192.0.0.9", global}, Known{"192.0.0.10", global},
        Known{"192.0.0.11", reserved}, Known{"192.0.0.170", reserved}, Known{"192.0.0.192", exact},
        Known{"192.0.1.0", global}, Known{"192.0.2.1", reserved}, Known{"192.31.196.1", global},
        Known{"192.52.193.1", global}, Known{"192.88.99.1", reserved},
        Known{"192.168.0.1", reserved}, Known{"192.169.0.0", global}, Known{"192.175.48.1", global},
        Known{"198.17.255.255", global}, Known{"198.18.0.0", never}, Known{"198.19.255.255", never},
        Known{"198.20.0.0", global}, Known{"198.51.100.1", reserved},
        Known{"203.0.113.1", reserved}, Known{"223.255.255.255", global}, Known{"224.0.0.1", never},
        Known{"239.255.255.255", never}, Known{"240.0.0.1", reserved},
        Known{"255.255.255.254", reserved}, Known{"255.255.255.255", never}));

INSTANTIATE_TEST_SUITE_P(
    V6, KnownAddress,
    testing::Values(
        Known{"2001:4860:4860::8888", global}, Known{"2a00::1", global}, Known{"::", never},
        Known{"::1", exact}, Known{"::2", never} /* stands for 0.0.0.2 */,
        Known{"::8.8.8.8", reserved}, Known{"::127.0.0.1", exact},
        Known{"::ffff:8.8.8.8", reserved}, Known{"::ffff:127.0.0.1", exact},
        Known{"::ffff:169.254.169.254", exact}, Known{"::ffff:0.0.0.0", never},
        Known{"64:ff9b::808:808", global}, Known{"64:ff9b::7f00:1", exact},
        Known{"64:ff9b::a9fe:a9fe", exact}, Known{"64:ff9b::a00:1", reserved},
        Known{"64:ff9b::e000:1", never}, Known{"64:ff9b:1::808:808", reserved},
        Known{"64:ff9b:1::7f00:1", exact}, Known{"64:ff9b:1::a9fe:a9fe", exact},
        Known{"64:ff9b:1:1::1", reserved}, Known{"::ffff:0:7f00:1", reserved},
        Known{"fd00:c1::a9fe:a9fe", exact}, Known{"fd00:42::42", exact}, Known{"100::1", reserved},
        Known{"100:0:0:1::1", reserved}, Known{"100:0:0:2::1", reserved},
        Known{"2001::1", reserved}, Known{"2001:0:7f00::1", reserved},
        Known{"2001::80ff:fffe", exact} /* Teredo of 127.0.0.1 */, Known{"2001:1::1", global},
        Known{"2001:1::2", global}, Known{"2001:1::3", global}, Known{"2001:1::4", reserved},
        Known{"2001:2::1", reserved}, Known{"2001:3::1", global}, Known{"2001:4:112::1", global},
        Known{"2001:10::1", reserved}, Known{"2001:20::1", global}, Known{"2001:30::1", global},
        Known{"2001:1ff::1", reserved}, Known{"2001:200::1", global},
        Known{"2001:db8::1", reserved}, Known{"2002:808:808::1", reserved},
        Known{"2002:7f00:1::", exact}, Known{"2620:4f:8000::1", global}, Known{"3fff::1", reserved},
        Known{"3fff:1000::1", global}, Known{"4000::1", reserved}, Known{"5f00::1", reserved},
        Known{"fc00::1", reserved}, Known{"fd00::1", reserved}, Known{"fd00:ec2::254", exact},
        Known{"fd20:ce::254", exact}, Known{"fe80::1", never}, Known{"fec0::1", reserved},
        Known{"ff02::1", never}, Known{"f000::1", reserved}));

// --- names

TEST(RefusedByName, APublicAddressIsAllowed) {
  EXPECT_EQ(answer("a.example:80", "8.8.8.8"), "allowed");
  EXPECT_EQ(answer("*.example:80", "2a00::1"), "allowed");
  EXPECT_EQ(answer("a.example:80", "64:ff9b::808:808"), "allowed");
}

TEST(RefusedByName, APrivateAddressNeedsPrivate) {
  for (const char* const to :
       {"10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.1.1", "fd00::1",
        "2001:db8::1", "::ffff:8.8.8.8", "64:ff9b::a00:1", "64:ff9b:1::a00:1", "192.0.2.1"}) {
    EXPECT_NE(answer("a.example:80", to), "allowed") << to;
    EXPECT_EQ(answer("a.example:80", to, true), "allowed") << to;
  }
  const auto no = refused(rule("a.example:80"), false, address("10.0.0.1"), 80, kHost);
  ASSERT_TRUE(no);
  EXPECT_EQ(no->why, "a private address (RFC 1918)");
  EXPECT_EQ(no->allow_with, "network.private = true");
}

TEST(RefusedByName, LoopbackCredentialsAndTheHostItselfAreNeverReached) {
  for (const char* const to : {"127.0.0.1",
                               "127.8.8.8",
                               "::1",
                               "::ffff:127.0.0.1",
                               "64:ff9b::7f00:1",
                               "2002:7f00:1::",
                               "169.254.169.254",
                               "::ffff:169.254.169.254",
                               "64:ff9b::a9fe:a9fe",
                               "fd00:ec2::254",
                               "203.0.114.5",
                               "2a00::5",
                               "10.7.7.7",
                               "::ffff:10.7.7.7",
                               "64:ff9b::a07:707",
                               "0.0.0.0",
                               "::",
                               "224.0.0.1",
                               "198.18.0.1",
                               "fe80::1",
                               "255.255.255.255"}) {
    EXPECT_NE(answer("a.example:80", to), "allowed") << to;
    EXPECT_NE(answer("a.example:80", to, true), "allowed") << to;
  }
  const auto no = refused(rule("a.example:80"), true, address("169.254.169.254"), 80, kHost);
  ASSERT_TRUE(no);
  EXPECT_THAT(no->why, HasSubstr("metadata"));
  EXPECT_EQ(no->allow_with, "network.allow = [\"169.254.169.254:80\"]");
}

// --- addresses

TEST(RefusedByPrefix, AWidePrefixReachesNothingSpecial) {
  EXPECT_EQ(answer("0.0.0.0/0:80", "8.8.8.8"), "allowed");
  for (const char* const to : {"10.0.0.1", "127.0.0.1", "169.254.169.254", "192.168.1.1",
                               "203.0.114.5", "0.0.0.0", "224.0.0.1", "198.18.0.1"})
    EXPECT_NE(answer("0.0.0.0/0:80", to), "allowed") << to;
  EXPECT_EQ(answer("[::/0]:80", "2a00::1"), "allowed");
  for (const char* const to : {"fd00::1", "::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8",
                               "64:ff9b::7f00:1", "2a00::5", "fe80::1"})
    EXPECT_NE(answer("[::/0]:80", to), "allowed") << to;
  EXPECT_NE(answer("0.0.0.0/0:80", "10.0.0.1", true), "allowed") << "private is about names";
}

TEST(RefusedByPrefix, APrefixWithinARangeReachesIt) {
  EXPECT_EQ(answer("10.0.0.0/8:80", "10.1.2.3"), "allowed");
  EXPECT_EQ(answer("10.1.0.0/16:80", "10.1.2.3"), "allowed");
  EXPECT_EQ(answer("10.1.2.3/32:80", "10.1.2.3"), "allowed");
  EXPECT_EQ(answer("[fd00::/8]:80", "fd00::1"), "allowed");
  EXPECT_EQ(answer("169.254.0.0/16:80", "169.254.1.1"), "allowed");
  EXPECT_NE(answer("8.0.0.0/6:80", "10.1.2.3"), "allowed") << "reaches out of 10.0.0.0/8";
  EXPECT_NE(answer("10.0.0.0/8:80", "11.0.0.1"), "allowed");
}

TEST(RefusedByPrefix, OnlyOneAddressReachesTheHostAndItsCredentials) {
  EXPECT_NE(answer("169.254.0.0/16:80", "169.254.169.254"), "allowed");
  EXPECT_NE(answer("10.0.0.0/8:80", "10.7.7.7"), "allowed");
  EXPECT_NE(answer("10.7.7.7/32:80", "10.7.7.7"), "allowed");
  EXPECT_NE(answer("203.0.114.0/24:80", "203.0.114.5"), "allowed");
  EXPECT_EQ(answer("169.254.169.254:80", "169.254.169.254"), "allowed");
  EXPECT_EQ(answer("10.7.7.7:80", "10.7.7.7"), "allowed");
  EXPECT_NE(answer("10.7.7.7:80", "10.7.7.8"), "allowed");
}

TEST(RefusedByHostName, TheHostsLoopbackAndNothingElse) {
  EXPECT_EQ(answer("host.sbx.internal:80", "127.0.0.1"), "allowed");
  EXPECT_EQ(answer("host.sbx.internal:80", "::1"), "allowed");
  EXPECT_NE(answer("host.sbx.internal:80", "8.8.8.8"), "allowed");
  EXPECT_NE(answer("host.sbx.internal:80", "203.0.114.5"), "allowed");
}

// --- the usable addresses of a lookup

TEST(Usable, KeepsWhatIsAllowedAndSaysWhyNothingIs) {
  const NetworkRule name = rule("a.example:80");
  const auto some = usable(
      name, false, {address("10.0.0.1"), address("8.8.8.8"), address("127.0.0.1")}, 80, kHost);
  EXPECT_EQ(some.addresses, std::vector<Address>{address("8.8.8.8")});
  EXPECT_EQ(some.refused.why, "");

  const auto private_ = usable(name, false, {address("10.0.0.1"), address("fd00::1")}, 80, kHost);
  EXPECT_TRUE(private_.addresses.empty());
  EXPECT_EQ(private_.refused.why, "leads only to private addresses (10.0.0.1, fd00::1)");
  EXPECT_EQ(private_.refused.allow_with, "network.private = true");

  const auto own = usable(name, true, {address("127.0.0.1"), address("10.7.7.7")}, 80, kHost);
  EXPECT_EQ(own.refused.why, "leads only to addresses of this machine (127.0.0.1, 10.7.7.7)");
  EXPECT_EQ(own.refused.allow_with, "network.allow = [\"host.sbx.internal:80\"]");
  EXPECT_THAT(own.refused.options, testing::ElementsAre("--allow-host", "host.sbx.internal:80"));

  EXPECT_EQ(usable(name, false, {}, 80, kHost).refused.why, "");
}

/// A refusal suggests a rule which, together with the name's rule, lets the name through.
TEST(Usable, WhatIsOfferedHelpsOrNothingIs) {
  const NetworkRule name = rule("a.example:80");
  for (const char* const to :
       {"127.0.0.1", "::1", "10.7.7.7", "203.0.114.5", "2a00::5", "169.254.169.254"}) {
    const auto no = usable(name, false, {address(to)}, 80, kHost).refused;
    ASSERT_EQ(no.options.size(), 2U) << to;
    const std::vector<policy::PlacedRule> rules{{name, {}}, {rule(no.options[1]), {}}};
    EXPECT_EQ(usable(name, false, {address(to)}, 80, kHost, rules).addresses,
              std::vector<Address>{address(to)});
    EXPECT_TRUE(usable(name, false, {address(to)}, 81, kHost, rules).addresses.empty()) << to;
  }
  for (const char* const to : {"127.0.1.1", "::ffff:127.0.0.1", "fe80::1"}) {
    const auto no = usable(name, false, {address(to)}, 80, kHost).refused;
    EXPECT_EQ(no.allow_with, "") << to;
    EXPECT_TRUE(no.options.empty()) << to;
  }
}

TEST(Usable, ARuleForOneAddressLetsNamesToNoOther) {
  const NetworkRule name = rule("a.example:80");
  const auto reached = [&](std::string_view other, std::string_view to) {
    const std::vector<policy::PlacedRule> rules{{name, {}}, {rule(other), {}}};
    return !usable(name, false, {address(to)}, 80, kHost, rules).addresses.empty();
  };
  EXPECT_TRUE(reached("10.7.7.7:80", "10.7.7.7"));
  EXPECT_FALSE(reached("10.7.7.7:80", "127.0.0.1"));
  EXPECT_FALSE(reached("udp://10.7.7.7:80", "10.7.7.7"));
  EXPECT_FALSE(reached("10.0.0.0/8:80", "10.7.7.7"));
  EXPECT_FALSE(reached("10.7.7.7/32:80", "10.7.7.7"));
  EXPECT_FALSE(reached("host.sbx.internal:80", "10.7.7.7"));
  EXPECT_FALSE(reached("host.sbx.internal:80", "127.0.0.2"));
}

TEST(HostAddresses, ThatCanNotBeListedAreAnError) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = files.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto host = HostAddresses::read();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  ASSERT_FALSE(host);
  EXPECT_EQ(host.error().code, "no-interface-list");
}

TEST(HostAddresses, AreThoseOfThisMachine) {
  const auto host = HostAddresses::read();
  ASSERT_TRUE(host);
  EXPECT_FALSE(host->has(address("192.0.2.77")));
}

}  // namespace
}  // namespace sbx::network
