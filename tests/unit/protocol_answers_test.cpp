#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "protocol/answers.hpp"

namespace sbx::protocol {
namespace {

template <class Answer>
class Answers : public testing::Test {};

using All = testing::Types<SessionFacts, StatsAnswer, PolicyAnswer, DoneAnswer, CallsAnswer,
                           CallBegun, CallEnded, LogAnswer, ContextsAnswer, InterruptAnswer,
                           CellEvent, CellEnded, InspectAnswer, ReaderBegun, ReaderEvent,
                           ChangesAnswer, SnapshotAnswer, BroughtOutAnswer>;
TYPED_TEST_SUITE(Answers, All);

TYPED_TEST(Answers, ArriveAsTheyWereSent) {
  const Json sent = write_fields(TypeParam{});
  const auto read = answer_from<TypeParam>(sent);
  ASSERT_TRUE(read);
  EXPECT_EQ(write_fields(*read), sent);
}

TYPED_TEST(Answers, WithAMemberOfAnotherTypeAreErrorsThatNameIt) {
  const Json right = write_fields(TypeParam{});
  for (const auto& [name, value] : right.items()) {
    for (const Json& bad : {Json::array({1}), Json(true), Json(-0.5), Json("text")}) {
      if (bad.type() == value.type() || value.is_null()) continue;
      Json wrong = right;
      wrong[name] = bad;
      const auto read = answer_from<TypeParam>(wrong);
      ASSERT_FALSE(read) << name << " as " << bad;
      EXPECT_EQ(read.error().code, "bad-message");
      EXPECT_EQ(read.error().hint, kOtherVersion);
      EXPECT_NE(read.error().message.find("\"" + name), std::string::npos);
    }
  }
}

TEST(Errors, ArriveInsteadOfAnAnswer) {
  const Error sent{.kind = ErrorKind::policy, .code = "a-code", .message = "why", .hint = "what"};
  const auto read = answer_from<DoneAnswer>({{"error", write_fields(fields_from(sent))}});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::policy);
  EXPECT_EQ(read.error().code, "a-code");
  EXPECT_EQ(read.error().message, "why");
  EXPECT_EQ(read.error().hint, "what");
}

TEST(Errors, OfNobodyKnowsWhatAreErrorsToo) {
  for (const Json& error : {Json(), Json(1), Json::object(), Json{{"kind", 200}, {"code", "x"}}})
    EXPECT_EQ(answer_from<DoneAnswer>({{"error", error}}).error().code, "bad-message") << error;
}

TEST(Values, ThatAreNoUtf8KeepTheirBytes) {
  const SessionFacts sent{.directory = "/\xFF", .notes = {"\xC3"}};
  const auto read = answer_from<SessionFacts>(write_fields(sent));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->directory, "/\xFF");
  EXPECT_EQ(read->notes, sent.notes);
  const Json document = write_fields(sent, Form::document);
  EXPECT_EQ(document.at("directory_b64"), "L/8=");
}

}  // namespace
}  // namespace sbx::protocol
