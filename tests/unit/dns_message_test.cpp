#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "network/dns_message.hpp"

namespace sbx::network::dns {
namespace {

using testing::HasSubstr;

/// The labels of a name in wire format, unchanged.
Bytes wire_name(std::initializer_list<std::string_view> labels) {
  Bytes bytes;
  for (const std::string_view label : labels) {
    bytes.push_back(static_cast<std::uint8_t>(label.size()));
    bytes.insert(bytes.end(), label.begin(), label.end());
  }
  bytes.push_back(0);
  return bytes;
}

void put(Bytes& bytes, unsigned value) {
  bytes.push_back(static_cast<std::uint8_t>(value >> 8));
  bytes.push_back(static_cast<std::uint8_t>(value & 0xff));
}

struct Question {
  Bytes name = wire_name({"api", "example", "com"});
  unsigned type = 1;
  unsigned klass = 1;
  unsigned flags = 0x0100;
  unsigned questions = 1;
  unsigned answers = 0;
  unsigned additional = 0;
  Bytes rest{};  ///< after the question
};

Bytes message_of(const Question& question) {
  Bytes bytes;
  put(bytes, 0xabcd);
  put(bytes, question.flags);
  put(bytes, question.questions);
  put(bytes, question.answers);
  put(bytes, 0);
  put(bytes, question.additional);
  bytes.insert(bytes.end(), question.name.begin(), question.name.end());
  put(bytes, question.type);
  put(bytes, question.klass);
  bytes.insert(bytes.end(), question.rest.begin(), question.rest.end());
  return bytes;
}

Bytes option_record(unsigned payload, unsigned version = 0, unsigned flags = 0) {
  Bytes bytes = {0};
  put(bytes, 41);
  put(bytes, payload);
  put(bytes, version);  // extended rcode 0, version
  put(bytes, flags);
  put(bytes, 0);
  return bytes;
}

Query read(const Question& question) {
  auto query = parse_query(message_of(question));
  EXPECT_TRUE(query) << (query ? "" : query.error().why);
  return query.value_or(Query{});
}

unsigned number_at(const Bytes& bytes, std::size_t at) {
  return at + 1 < bytes.size() ? static_cast<unsigned>(bytes[at]) << 8 | bytes[at + 1] : 0xfffff;
}
unsigned rcode_of(const Bytes& answer) {
  return answer.size() < 4 ? 99 : answer[3] & 0xfU;
}

TEST(DnsQuery, SaysWhatIsAskedAndKeepsTheQuestionAsItCame) {
  const Query query = read({.name = wire_name({"API", "Example", "com"}), .type = 28});
  EXPECT_EQ(query.id, 0xabcd);
  EXPECT_EQ(query.name, "api.example.com");
  EXPECT_EQ(query.shown, "api.example.com");
  EXPECT_EQ(query.type, 28);
  EXPECT_TRUE(query.recursion_desired);
  EXPECT_FALSE(query.edns);
  EXPECT_EQ(query.largest_answer, 512);
  // A resolver checks the answer by the letter case (the "0x20" of RFC 5452).
  EXPECT_EQ(std::string(query.question.begin() + 1, query.question.begin() + 4), "API");
}

TEST(DnsQuery, EdnsSaysHowMuchIsTaken) {
  const Query query = read({.additional = 1, .rest = option_record(1232, 0, 0x8000)});
  EXPECT_TRUE(query.edns);
  EXPECT_TRUE(query.dnssec_ok);
  EXPECT_EQ(query.largest_answer, 1232);
  EXPECT_EQ(read({.additional = 1, .rest = option_record(10)}).largest_answer, 512);
}

struct Odd {
  const char* what;
  Bytes name;
  const char* shown;
};
class OddName : public testing::TestWithParam<Odd> {};

// Each of them is a valid question with an answer (NXDOMAIN), and none is a host name.
TEST_P(OddName, IsShownAndIsNoHostName) {
  const Query query = read({.name = GetParam().name});
  EXPECT_EQ(query.name, "") << GetParam().what;
  EXPECT_EQ(query.shown, GetParam().shown);
}

INSTANTIATE_TEST_SUITE_P(
    Dns, OddName,
    testing::Values(
        Odd{"the root", wire_name({}), "."},
        Odd{"a dot within a label", wire_name({"a.example", "com"}), "a\\046example.com"},
        Odd{"NUL within a label", wire_name({std::string_view("a\0b", 3), "com"}), "a\\000b.com"},
        Odd{"blanks and escapes", wire_name({"a b\x1b[2J\"\\", "com"}),
            "a\\032b\\027[2j\\034\\092.com"},
        Odd{"UTF-8",
            wire_name({"b\xc3\xbc"
                       "cher",
                       "example"}),
            "b\\195\\188cher.example"},
        Odd{"a star", wire_name({"*", "example", "com"}), "*.example.com"},
        Odd{"an address", wire_name({"127", "0", "0", "1"}), "127.0.0.1"},
        Odd{"a short address", wire_name({"127", "1"}), "127.1"},
        Odd{"hexadecimal", wire_name({"0x7f000001"}), "0x7f000001"},
        Odd{"a label that ends with -", wire_name({"a-", "example"}), "a-.example"}));

struct Broken {
  const char* why;
  Bytes message;
  unsigned rcode;  ///< 99: no answer
};
class BrokenQuery : public testing::TestWithParam<Broken> {};

TEST_P(BrokenQuery, GetsAnErrorOrNothing) {
  const auto query = parse_query(GetParam().message);
  ASSERT_FALSE(query);
  EXPECT_THAT(query.error().why, HasSubstr(GetParam().why));
  EXPECT_EQ(rcode_of(query.error().answer), GetParam().rcode) << GetParam().why;
  if (GetParam().rcode == 99) return;
  EXPECT_EQ(number_at(query.error().answer, 0), 0xabcdU);
  EXPECT_EQ(query.error().answer[2] & 0x80, 0x80);
}

Bytes cut(Bytes message, std::size_t length) {
  message.resize(length);
  return message;
}

INSTANTIATE_TEST_SUITE_P(
    Dns, BrokenQuery,
    testing::Values(
        Broken{"shorter than a header", {}, 99},
        Broken{"shorter than a header", cut(message_of({}), 11), 99},
        Broken{"a response", message_of({.flags = 0x8180}), 99},
        Broken{"not a query", message_of({.flags = 0x2900}), 4},
        Broken{"0 questions", message_of({.questions = 0}), 1},
        Broken{"2 questions", message_of({.questions = 2}), 1},
        Broken{"has answers", message_of({.answers = 1}), 1},
        Broken{"goes on after the end", cut(message_of({}), 12), 1},
        Broken{"goes on after the end", cut(message_of({}), 15), 1},
        Broken{"goes on after the end", cut(message_of({}), 28), 1},
        Broken{"half a question", cut(message_of({}), 30), 1},
        Broken{"compressed", message_of({.name = {0xc0, 0x0c}}), 1},
        Broken{"compressed", message_of({.name = {1, 'a', 0xc0, 0x0c}}), 1},
        Broken{"compressed", message_of({.name = {0xff, 0xff}}), 1},
        Broken{"unknown type", message_of({.name = {0x41, 'a', 0}}), 1},
        Broken{"unknown type", message_of({.name = {0x80, 'a', 0}}), 1},
        Broken{"more than 255 bytes",
               message_of({.name = wire_name({std::string(63, 'a'), std::string(63, 'b'),
                                              std::string(63, 'c'), std::string(62, 'd')})}),
               1},
        Broken{"malformed record", message_of({.additional = 1}), 1},
        Broken{"malformed record", message_of({.additional = 1, .rest = {0x41, 0}}), 1},
        Broken{"goes on after the end",
               message_of({.additional = 1, .rest = cut(option_record(512), 10)}), 1},
        Broken{"too many records", message_of({.additional = 65535}), 1},
        Broken{"malformed EDNS",
               message_of({.additional = 2,
                           .rest =
                               [] {
                                 Bytes two = option_record(512);
                                 const Bytes more = option_record(512);
                                 two.insert(two.end(), more.begin(), more.end());
                                 return two;
                               }()}),
               1},
        Broken{"unknown version of EDNS",
               message_of({.additional = 1, .rest = option_record(512, 1)}), 0}));

TEST(DnsQuery, TheLongestNameIsRead) {
  const Query query = read({.name = wire_name({std::string(63, 'a'), std::string(63, 'b'),
                                               std::string(63, 'c'), std::string(61, 'd')})});
  EXPECT_EQ(query.name.size(), 253U);
}

TEST(DnsQuery, AnUnknownVersionOfEdnsIsToldInTheExtendedCode) {
  const auto query = parse_query(message_of({.additional = 1, .rest = option_record(512, 1)}));
  ASSERT_FALSE(query);
  const Bytes& answer = query.error().answer;
  ASSERT_EQ(answer.size(), 12U + 11U);
  EXPECT_EQ(answer[12 + 5], 1);  // 16 >> 4
}

TEST(DnsQuery, EveryTruncationIsRefusedAndNoneIsReadBeyond) {
  const Bytes whole = message_of({.additional = 1, .rest = option_record(1232)});
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_FALSE(parse_query(part)) << length;
  }
  EXPECT_TRUE(parse_query(whole));
}

// --- answers

const policy::Address kSynthetic = policy::Address::v4(198, 18, 0, 7);

TEST(DnsAnswer, CarriesTheAddressUnderTheQuestionsName) {
  const Query query = read({});
  const Bytes answer = write_answer(query, answer_for(query, kSynthetic, 60));
  EXPECT_EQ(number_at(answer, 0), 0xabcdU);
  EXPECT_EQ(number_at(answer, 2), 0x8180U);
  EXPECT_EQ(number_at(answer, 4), 1U);
  EXPECT_EQ(number_at(answer, 6), 1U);
  EXPECT_TRUE(std::equal(query.question.begin(), query.question.end(), answer.begin() + 12));
  const std::size_t record = 12 + query.question.size();
  EXPECT_EQ(number_at(answer, record), 0xc00cU);
  EXPECT_EQ(number_at(answer, record + 2), 1U);
  EXPECT_EQ(number_at(answer, record + 8), 60U);
  EXPECT_EQ(number_at(answer, record + 10), 4U);
  EXPECT_EQ(Bytes(answer.end() - 4, answer.end()), (Bytes{198, 18, 0, 7}));
}

TEST(DnsAnswer, OtherTypesOfAnAllowedNameAreEmptyNotAbsent) {
  for (const unsigned type : {2U, 5U, 6U, 10U, 12U, 15U, 16U, 28U, 33U, 65U, 65535U}) {
    const Query query = read({.type = type});
    const Answer answer = answer_for(query, kSynthetic, 60);
    EXPECT_EQ(answer.rcode, Rcode::no_error) << type;
    EXPECT_FALSE(answer.address) << type;
    EXPECT_EQ(number_at(write_answer(query, answer), 6), 0U) << type;
  }
  EXPECT_TRUE(answer_for(read({.type = 255}), kSynthetic, 60).address);
}

TEST(DnsAnswer, OtherClassesAreNotImplemented) {
  EXPECT_EQ(answer_for(read({.klass = 3}), kSynthetic, 60).rcode, Rcode::not_implemented);
}

TEST(DnsAnswer, AnAbsentNameIsSaidWithTheQuestion) {
  const Query query = read({.type = 16, .additional = 1, .rest = option_record(4096)});
  const Bytes answer = write_answer(query, {.rcode = Rcode::no_such_name});
  EXPECT_EQ(rcode_of(answer), 3U);
  EXPECT_EQ(number_at(answer, 6), 0U);
  EXPECT_EQ(number_at(answer, 10), 1U) << "EDNS is answered with EDNS";
  EXPECT_EQ(answer.size(), 12 + query.question.size() + 11);
}

TEST(DnsAnswer, FitsIntoTheSmallestLimit) {
  const Query query = read({.name = wire_name({std::string(63, 'a'), std::string(63, 'b'),
                                               std::string(63, 'c'), std::string(61, 'd')}),
                            .type = 28,
                            .additional = 1,
                            .rest = option_record(512)});
  const Answer answer = answer_for(query, *policy::parse_v6("2001:db8::1"), 60);
  ASSERT_TRUE(answer.address);
  EXPECT_LE(write_answer(query, answer).size(), 512U);
}

TEST(DnsAnswer, TheSandboxKnowsItself) {
  const auto own = [](std::initializer_list<std::string_view> labels, unsigned type) {
    const auto answer = own_name(read({.name = wire_name(labels), .type = type}));
    if (!answer) return std::string("not its own");
    return answer->address ? answer->address->text() : std::string("empty");
  };
  EXPECT_EQ(own({"localhost"}, 1), "127.0.0.1");
  EXPECT_EQ(own({"localhost"}, 28), "::1");
  EXPECT_EQ(own({"x", "LocalHost"}, 1), "127.0.0.1");
  EXPECT_EQ(own({"localhost"}, 16), "empty");
  EXPECT_EQ(own({"sandbox"}, 1), "127.0.0.1");
  EXPECT_EQ(own({"sandbox"}, 28), "empty");
  EXPECT_EQ(own({"localhost", "example"}, 1), "not its own");
  EXPECT_EQ(own({"notlocalhost"}, 1), "not its own");
}

// --- TCP

TEST(DnsStream, GivesMessagesHoweverTheyAreCut) {
  const Bytes message = message_of({});
  Bytes bytes = framed(message);
  const Bytes second = framed(message_of({.type = 28}));
  bytes.insert(bytes.end(), second.begin(), second.end());
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    Stream stream;
    int seen = 0;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      ASSERT_TRUE(stream.add(std::span(bytes).subspan(at, std::min(step, bytes.size() - at))));
      while (const auto one = stream.next()) seen += parse_query(*one) ? 1 : 0;
    }
    EXPECT_EQ(seen, 2) << step;
  }
}

TEST(DnsStream, LeavesOutEmptyMessagesAndHasAnEnd) {
  Stream stream;
  ASSERT_TRUE(stream.add(Bytes{0, 0, 0, 0, 0, 1, 7}));
  EXPECT_EQ(stream.next(), (Bytes{7}));
  EXPECT_EQ(stream.next(), std::nullopt);
  EXPECT_TRUE(stream.add(Bytes{0xff, 0xff}));
  EXPECT_TRUE(stream.add(Bytes(65534, 1)));
  EXPECT_EQ(stream.next(), std::nullopt);
  EXPECT_FALSE(stream.add(Bytes(2, 1))) << "more than one message can be";
  EXPECT_TRUE(stream.add(Bytes(1, 1)));
  EXPECT_EQ(stream.next().value_or(Bytes{}).size(), 65535U);
}

}  // namespace
}  // namespace sbx::network::dns
