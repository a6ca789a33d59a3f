#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/network_match.hpp"
#include "policy/network_rules.hpp"

namespace sbx::policy {
namespace {

using testing::HasSubstr;

std::string canonical(std::string_view text) {
  const auto rule = parse_network_rule(text);
  return rule ? rule->text() : "error: " + rule.error().message;
}

NetworkRule rule_of(std::string_view text) {
  const auto rule = parse_network_rule(text);
  EXPECT_TRUE(rule) << text << ": " << (rule ? "" : rule.error().message);
  return rule.value_or(NetworkRule{});
}

// --- valid rules, and their canonical text

struct Form {
  const char* text;
  const char* canonical;
};

class EveryForm : public testing::TestWithParam<Form> {};

TEST_P(EveryForm, HasOneCanonicalTextThatReadsBack) {
  EXPECT_EQ(canonical(GetParam().text), GetParam().canonical);
  EXPECT_EQ(canonical(GetParam().canonical), GetParam().canonical);
}

INSTANTIATE_TEST_SUITE_P(
    Rule, EveryForm,
    testing::Values(
        Form{"api.example.com:443", "api.example.com:443"},
        Form{"tcp://api.example.com:443", "api.example.com:443"},
        Form{"udp://ntp.example.org:123", "udp://ntp.example.org:123"},
        Form{"API.Example.COM:443", "api.example.com:443"},
        Form{"api.example.com.:443", "api.example.com:443"},
        Form{"*.example.org:443", "*.example.org:443"}, Form{"*.COM:443", "*.com:443"},
        Form{"db:5432", "db:5432"}, Form{"_srv.a-b.example.com:1", "_srv.a-b.example.com:1"},
        Form{"1.2.3.com:80", "1.2.3.com:80"}, Form{"3com.example:80", "3com.example:80"},
        Form{"b\xc3\xbc"
             "cher.example:443",
             "xn--bcher-kva.example:443"},
        Form{"*.b\xc3\xbc"
             "cher.example:443",
             "*.xn--bcher-kva.example:443"},
        Form{"xn--bcher-kva.example:443", "xn--bcher-kva.example:443"},
        Form{"a.example:80,443", "a.example:80,443"},
        Form{"a.example:443,80,80", "a.example:80,443"},
        Form{"a.example:80-82,83,90", "a.example:80-83,90"},
        Form{"a.example:8000-8100", "a.example:8000-8100"}, Form{"a.example:7-7", "a.example:7"},
        Form{"a.example:*", "a.example:*"}, Form{"a.example:54-65535,1-52", "a.example:*"},
        Form{"a.example:65535", "a.example:65535"}, Form{"10.1.2.3:80", "10.1.2.3:80"},
        Form{"10.1.2.3/32:80", "10.1.2.3/32:80"}, Form{"10.1.0.0/16:5432", "10.1.0.0/16:5432"},
        Form{"0.0.0.0/0:443", "0.0.0.0/0:443"}, Form{"[::/0]:443", "[::/0]:443"},
        Form{"[2001:db8::/32]:443", "[2001:db8::/32]:443"},
        Form{"[2001:DB8:0:0:0:0:0:1]:443", "[2001:db8::1]:443"},
        Form{"[2001:db8::1/128]:443", "[2001:db8::1/128]:443"},
        Form{"udp://[fd00::/8]:5", "udp://[fd00::/8]:5"},
        Form{"169.254.169.254:80", "169.254.169.254:80"},
        Form{"host.sbx.internal:5432", "host.sbx.internal:5432"},
        Form{"HOST.sbx.internal.:5432", "host.sbx.internal:5432"}));

// --- invalid rules, and the fix

struct Mistake {
  std::string text;
  const char* message;
  const char* hint;
};

class EveryMistake : public testing::TestWithParam<Mistake> {};

TEST_P(EveryMistake, IsToldExactlyWithItsCure) {
  const auto rule = parse_network_rule(GetParam().text);
  ASSERT_FALSE(rule) << "read as " << rule->text();
  EXPECT_EQ(rule.error().code, "bad-destination");
  EXPECT_THAT(rule.error().message, HasSubstr(GetParam().message));
  EXPECT_THAT(rule.error().hint, HasSubstr(GetParam().hint));
}

std::string label(std::size_t length) {
  return std::string(length, 'a');
}

/// A name of `length` bytes, consisting of labels of at most 60.
std::string name_of(std::size_t length) {
  std::string name;
  while (name.size() < length) {
    if (!name.empty()) name += '.';
    name += label(std::min<std::size_t>(length - name.size(), 60));
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Port, EveryMistake,
    testing::Values(Mistake{"a.example", "no port", "\"a.example:443\""},
                    Mistake{"udp://a.example", "no port", "\"udp://a.example:443\""},
                    Mistake{"a.example:", "not a port number", "\"8000-8100\""},
                    Mistake{"a.example:0", "\"0\" is not a port number", "\"443\""},
                    Mistake{"a.example:65536", "not a port number (1 to 65535)", "\"443\""},
                    Mistake{"a.example:99999999999999999999", "not a port number", ""},
                    Mistake{"a.example:-1", "\"-1\" is not a port number", ""},
                    Mistake{"a.example:+80", "\"+80\" is not a port number", ""},
                    Mistake{"a.example:080", "\"080\" is not a port number", ""},
                    Mistake{"a.example:0x50", "not a port number", ""},
                    Mistake{"a.example:80,", "not a port number", ""},
                    Mistake{"a.example:80,,443", "not a port number", ""},
                    Mistake{"a.example:80-", "not a port number", ""},
                    Mistake{"a.example:0-80", "not a port number", ""},
                    Mistake{"a.example:8100-8000", "ends before it begins", "\"8000-8100\""},
                    Mistake{"a.example:80-443-500", "not a port number", ""},
                    Mistake{"a.example:*,80", "not a port number", ""},
                    Mistake{"a.example:http", "not a port number", ""},
                    Mistake{"a.example:53", "port 53", "resolve without a rule"},
                    Mistake{"udp://a.example:53", "port 53", "resolve without a rule"},
                    Mistake{"10.0.0.0/8:53", "port 53", ""},
                    Mistake{"a.example:1-1024", "port 53", "\"1-52,54-1024\""},
                    Mistake{"a.example:53,80", "port 53", "\"80\""}));

INSTANTIATE_TEST_SUITE_P(
    Name, EveryMistake,
    testing::Values(
        Mistake{"", "no port", "HOST:PORT"}, Mistake{":443", "names no host", "HOST:PORT"},
        Mistake{"*:443", "names every host", "*.example.org"},
        Mistake{"*.:443", "there is no name", ""},
        Mistake{"a.*.com:443", "has a *", "stands alone"},
        Mistake{"*a.com:443", "has a *", "stands alone"},
        Mistake{"*.*.com:443", "has a *", "stands alone"},
        Mistake{"a.example.*:443", "has a *", "stands alone"},
        Mistake{"a..example:443", "empty label", ""}, Mistake{".a.example:443", "empty label", ""},
        Mistake{"a.example..:443", "empty label", ""}, Mistake{".:443", "empty label", ""},
        Mistake{"-a.example:443", "begins or ends with -", ""},
        Mistake{"a-.example:443", "begins or ends with -", ""},
        Mistake{label(64) + ".example:443", "a label of 64 bytes", ""},
        Mistake{name_of(254) + ":443", "a name of 254 bytes", "leave it out"},
        Mistake{std::string("a.example\0.org:443", 18), "NUL", ""},
        Mistake{"a.exa mple:443", "a blank", ""}, Mistake{"a.example:443\n", "a blank", ""},
        Mistake{"a.example\t:443", "a blank", ""}, Mistake{"a,b.example:443", "\",\" in it", ""},
        Mistake{"user@a.example:443", "user name", "\"a.example:443\""},
        Mistake{"user:pw@a.example:443", "user name", "\"a.example:443\""},
        Mistake{"a.example:443@evil.example:443", "user name", "\"evil.example:443\""},
        Mistake{"https://a.example", "is a URL", "\"a.example:443\""},
        Mistake{"http://a.example/x?y", "is a URL", "\"a.example:80\""},
        Mistake{"https://me@a.example:8443/x", "is a URL", "\"a.example:8443\""},
        Mistake{"UDP://a.example:1", "is a URL", "udp://"},
        Mistake{"://a.example:1", "is a URL", ""},
        Mistake{"a.example:443/path", "a path", "\"a.example:443\""},
        Mistake{"a.example/path:443", "a path", "\"a.example:443\""},
        Mistake{"a.example/24:443", "a path", "\"a.example:443\""},
        Mistake{"a.example?x:443", "more than a host", ""},
        Mistake{"a.example#x:443", "more than a host", ""},
        Mistake{"a.example\\b:443", "more than a host", ""},
        Mistake{"a%2eexample:443", "has a %", ""},
        Mistake{"localhost:80", "the sandbox's own loopback", "\"host.sbx.internal:80\""},
        Mistake{"x.localhost:80", "the sandbox's own loopback", "host.sbx.internal"},
        Mistake{"*.localhost:80", "the sandbox's own loopback", "host.sbx.internal"},
        Mistake{"*.sbx.internal:80", "a name of sbx's own", "host.sbx.internal"},
        Mistake{"sbx.internal:80", "a name of sbx's own", "host.sbx.internal"},
        Mistake{"*.host.sbx.internal:80", "a name of sbx's own", "host.sbx.internal"},
        Mistake{"gateway.sbx.internal:80", "a name of sbx's own", "host.sbx.internal"},
        // UTS 46 would map full-width letters, dots and digits to ASCII.
        Mistake{"\xef\xbd\x81.example:443", "not an international name", "lower case"},
        Mistake{"a\xe3\x80\x82"
                "example:443",
                "not an international name", ""},
        Mistake{"\xe2\x91\xa0.example:443", "not an international name", ""},
        Mistake{"B\xc3\x9c"
                "CHER.example:443",
                "not an international name", "lower case"},
        Mistake{"a\xc2\xad"
                "b.example:443",
                "not an international name", ""},
        Mistake{"a\xe2\x80\x8d"
                "b.example:443",
                "not an international name", ""},
        Mistake{"\xff.example:443", "not an international name", ""}));

INSTANTIATE_TEST_SUITE_P(
    AddressText, EveryMistake,
    testing::Values(
        Mistake{"10.1.2.3/16:443", "bits set", "\"10.1.0.0/16:443\""},
        Mistake{"[2001:db8::1/32]:443", "bits set", "\"[2001:db8::/32]:443\""},
        Mistake{"10.0.0.0/33:1", "is not a prefix length", "\"10.0.0.0/8:443\""},
        Mistake{"10.0.0.0/:1", "is not a prefix length", ""},
        Mistake{"10.0.0.0/08:1", "is not a prefix length", ""},
        Mistake{"10.0.0.0/-1:1", "is not a prefix length", ""},
        Mistake{"10.0.0.0/255.0.0.0:1", "is not a prefix length", ""},
        Mistake{"10.0.0.0/8/8:1", "is not a prefix length", ""},
        Mistake{"[2001:db8::/129]:1", "is not a prefix length", ""},
        Mistake{"[2001:db8::]/32:443", "outside of the brackets", "\"[2001:db8::/32]:443\""},
        Mistake{"[::1:443", "no closing bracket", "HOST:PORT"},
        Mistake{"[::1]", "no port", "\"[::1]:443\""}, Mistake{"[::1]443", "no port", ""},
        Mistake{"[]:443", "names no host", "HOST:PORT"},
        Mistake{"2001:db8::1:443", "more than one colon", "in brackets"},
        Mistake{"::1:443", "more than one colon", "in brackets"},
        Mistake{"[10.0.0.1]:443", "not an address", "IPv6"},
        Mistake{"[a.example]:443", "not an address", "IPv6"},
        Mistake{"[fe80::1%eth0]:443", "has a %", "no zone"},
        Mistake{"[fe80::1]:443", "link-local", "leave it out"},
        Mistake{"[::ffff:10.0.0.1]:80", "IPv4 address written as IPv6", "\"10.0.0.1:80\""},
        Mistake{"[::ffff:0:0/96]:80", "IPv4 address written as IPv6", "\"0.0.0.0/0:80\""},
        Mistake{"[::ffff:a00:0/104]:80", "IPv4 address written as IPv6", "\"10.0.0.0/8:80\""},
        Mistake{"0177.0.0.1:80", "neither a name nor an address", "four decimal numbers"},
        Mistake{"127.1:80", "neither a name nor an address", "four decimal numbers"},
        Mistake{"2130706433:80", "neither a name nor an address", "four decimal numbers"},
        Mistake{"0x7f000001:80", "neither a name nor an address", "four decimal numbers"},
        Mistake{"0x7f.0.0.1:80", "neither a name nor an address", "four decimal numbers"},
        Mistake{"127.0.0.0x1:80", "neither a name nor an address", "four decimal numbers"},
        Mistake{"1.2.3.4.5:80", "neither a name nor an address", ""},
        Mistake{"256.1.1.1:80", "neither a name nor an address", ""},
        Mistake{"1.2.3.4.:80", "neither a name nor an address", ""},
        Mistake{"a.example.1:80", "neither a name nor an address", ""},
        Mistake{"*.1.2.3.4:80", "neither a name nor an address", ""},
        Mistake{"1.2.3/24:80", "not an address", "four decimal numbers"},
        Mistake{"0.0.0.0:80", "no destination", "leave it out"},
        Mistake{"[::]:80", "unspecified", "leave it out"},
        Mistake{"udp://224.0.0.251:5353", "multicast", "leave it out"},
        Mistake{"[ff02::fb]:5353", "multicast", "leave it out"},
        Mistake{"255.255.255.255:80", "broadcast", "leave it out"},
        Mistake{"198.18.0.5:80", "inside of sandboxes", "leave it out"},
        Mistake{"127.0.0.1:80", "the sandbox's own loopback", "\"host.sbx.internal:80\""},
        Mistake{"udp://127.1.2.3:80", "the sandbox's own loopback",
                "\"udp://host.sbx.internal:80\""},
        Mistake{"[::1]:80", "the sandbox's own loopback", "\"host.sbx.internal:80\""},
        Mistake{"[fd00:ec2::254/128]:80", "only a single address", "\"[fd00:ec2::254]:80\""},
        Mistake{"127.0.0.0/8:80", "only a single address", "\"host.sbx.internal:80\""},
        Mistake{"127.0.0.1/32:80", "only a single address", "\"host.sbx.internal:80\""},
        Mistake{"[::1/128]:80", "only a single address", "\"host.sbx.internal:80\""},
        Mistake{"169.254.169.254/32:80", "only a single address", "\"169.254.169.254:80\""}));

TEST(NetworkRule, TakesTheLongestNamesThereAre) {
  EXPECT_EQ(rule_of(name_of(253) + ":443").name.size(), 253U);
  EXPECT_EQ(rule_of(label(63) + ".example:443").name.size(), 63U + 8U);
  EXPECT_EQ(rule_of(name_of(253) + ".:443").name.size(), 253U);
}

TEST(NetworkRule, NoPortMeansHttpsOnlyOnTheCommandLine) {
  EXPECT_EQ(with_default_port("a.example"), "a.example:443");
  EXPECT_EQ(with_default_port("[2001:db8::1]"), "[2001:db8::1]:443");
  EXPECT_EQ(with_default_port("10.0.0.0/8"), "10.0.0.0/8:443");
  for (const char* const kept : {"a.example:80", "[::1]:80", "udp://a.example", "", "::1"})
    EXPECT_EQ(with_default_port(kept), kept);
}

// --- properties of a rule

TEST(NetworkRule, AWildcardHasEveryDepthBelowAndNotTheNameItself) {
  const NetworkRule rule = rule_of("*.example.org:443");
  EXPECT_TRUE(rule.has_name("a.example.org"));
  EXPECT_TRUE(rule.has_name("a.b.example.org"));
  EXPECT_FALSE(rule.has_name("example.org"));
  EXPECT_FALSE(rule.has_name("badexample.org"));
  EXPECT_FALSE(rule.has_name("a.example.org.evil.example"));
  EXPECT_FALSE(rule.has_name(""));
  EXPECT_FALSE(rule.has_name(".example.org.x"));
}

TEST(NetworkRule, NoWildcardHasTheNamesOfSbxItself) {
  EXPECT_FALSE(rule_of("*.internal:80").has_name("host.sbx.internal"));
  EXPECT_TRUE(rule_of("*.internal:80").has_name("db.internal"));
  EXPECT_TRUE(rule_of("host.sbx.internal:80").has_name("host.sbx.internal"));
}

TEST(NetworkRule, HasItsPortsAndNoOthers) {
  const NetworkRule rule = rule_of("a.example:80,8000-8100");
  EXPECT_TRUE(rule.has_port(80));
  EXPECT_TRUE(rule.has_port(8000));
  EXPECT_TRUE(rule.has_port(8100));
  EXPECT_FALSE(rule.has_port(8101));
  EXPECT_FALSE(rule.has_port(0));
  EXPECT_EQ(rule.port_count(), 102U);
  EXPECT_EQ(rule_of("a.example:*").port_count(), 65534U);
  EXPECT_FALSE(rule_of("a.example:*").has_port(53));
}

std::vector<PlacedRule> rules_of(std::initializer_list<const char*> texts) {
  std::vector<PlacedRule> rules;
  for (const char* const text : texts) rules.push_back({rule_of(text), {}});
  return rules;
}

TEST(NetworkRules, TheFirstOfANameAndTheNarrowestOfAnAddressIsFound) {
  const auto rules = rules_of({"10.0.0.0/8:1-9", "10.1.0.0/16:5", "10.1.2.3/32:5", "10.1.2.3:5",
                               "*.b.example:1", "a.b.example:1-2", "udp://a.b.example:1"});
  EXPECT_EQ(rule_for_address(rules, Transport::tcp, *parse_v4("10.9.9.9"), 5), &rules[0]);
  EXPECT_EQ(rule_for_address(rules, Transport::tcp, *parse_v4("10.1.9.9"), 5), &rules[1]);
  EXPECT_EQ(rule_for_address(rules, Transport::tcp, *parse_v4("10.1.2.3"), 5), &rules[3]);
  EXPECT_EQ(rule_for_address(rules, Transport::tcp, *parse_v4("10.1.2.3"), 6), &rules[0]);
  EXPECT_EQ(rule_for_address(rules, Transport::udp, *parse_v4("10.1.2.3"), 5), nullptr);
  EXPECT_EQ(rule_for_name(rules, Transport::tcp, "a.b.example", 1), &rules[4]);
  EXPECT_EQ(rule_for_name(rules, Transport::tcp, "a.b.example", 2), &rules[5]);
  EXPECT_EQ(rule_for_name(rules, Transport::udp, "a.b.example", 1), &rules[6]);
  EXPECT_EQ(rule_for_name(rules, Transport::udp, "c.b.example", 1), nullptr);
}

// --- which rule narrows which

bool narrows(const char* rule, std::initializer_list<const char*> sealed) {
  std::vector<NetworkRule> rules;
  for (const char* const text : sealed) rules.push_back(rule_of(text));
  return covered(rule_of(rule), rules);
}

TEST(NetworkRuleLock, NamesPrefixesAndPortsNarrow) {
  EXPECT_TRUE(narrows("a.example:443", {"a.example:443"}));
  EXPECT_TRUE(narrows("x.a.example:443", {"*.a.example:443"}));
  EXPECT_TRUE(narrows("*.b.a.example:443", {"*.a.example:443"}));
  EXPECT_TRUE(narrows("*.a.example:443", {"*.a.example:443"}));
  EXPECT_TRUE(narrows("a.example:80,443", {"a.example:443", "a.example:80"}));
  EXPECT_TRUE(narrows("a.example:81-82", {"a.example:80-81", "a.example:82-90"}));
  EXPECT_TRUE(narrows("11.1.0.0/16:443", {"11.0.0.0/8:443"}));
  EXPECT_TRUE(narrows("10.1.0.0/16:443", {"10.0.0.0/8:443"}));
  EXPECT_TRUE(narrows("10.1.2.3/32:443", {"10.1.2.3:443"}));
  EXPECT_TRUE(narrows("10.1.2.3:443", {"10.1.2.3:443"}));
}

TEST(NetworkRuleLock, MoreIsNotNarrower) {
  EXPECT_FALSE(narrows("a.example:443", {}));
  EXPECT_FALSE(narrows("a.example:443", {"*.a.example:443"}));
  EXPECT_FALSE(narrows("*.a.example:443", {"a.example:443", "x.a.example:443"}));
  EXPECT_FALSE(narrows("*.example:443", {"*.a.example:443"}));
  EXPECT_FALSE(narrows("udp://a.example:443", {"a.example:443"}));
  EXPECT_FALSE(narrows("a.example:442-443", {"a.example:443"}));
  EXPECT_FALSE(narrows("a.example:80-82", {"a.example:80", "a.example:82"}));
  EXPECT_FALSE(narrows("10.0.0.0/8:443", {"10.0.0.0/9:443"}));
  EXPECT_FALSE(narrows("host.sbx.internal:80", {"*.internal:80", "169.254.169.254:80"}));
}

TEST(NetworkRuleLock, APrefixDoesNotGiveWhatOnlyANarrowerOneReaches) {
  // 0.0.0.0/0 reaches no private address, a prefix within 10.0.0.0/8 does.
  EXPECT_FALSE(narrows("10.0.0.0/8:443", {"0.0.0.0/0:443"}));
  EXPECT_TRUE(narrows("8.8.0.0/16:443", {"0.0.0.0/0:443"}));
  EXPECT_FALSE(narrows("[fd00::/8]:443", {"[::/0]:443"}));
  // A single address without a prefix length may be the machine's own.
  EXPECT_FALSE(narrows("10.1.2.3:443", {"10.0.0.0/8:443"}));
  EXPECT_FALSE(narrows("169.254.169.254:80", {"169.254.0.0/16:80"}));
  EXPECT_FALSE(narrows("169.254.169.254:80", {"0.0.0.0/0:80"}));
}

}  // namespace
}  // namespace sbx::policy
