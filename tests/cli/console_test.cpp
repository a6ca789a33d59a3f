#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include <sbx/outcome.hpp>

#include "base/sys.hpp"
#include "cli/answer.hpp"
#include "cli/console.hpp"

namespace sbx::cli {
namespace {

using testing::HasSubstr;

class Heard : public Console {
 public:
  std::string out;
  std::string err;
  int errno_of_out = 0;
  bool has_terminal = true;

  [[nodiscard]] bool can_ask() const override { return has_terminal; }
  bool ask(const std::string& question, int /*wake*/) override {
    tell(question);
    return true;
  }

 protected:
  Status write_answer(const std::string& text) override {
    if (errno_of_out != 0)
      return fail(Error{.kind = ErrorKind::host,
                        .code = "write-failed",
                        .message = "write",
                        .errno_value = errno_of_out});
    out += text;
    return {};
  }
  void write_error(const std::string& text) override { err += text; }
};

TEST(Console, AnotherTakesItsPlaceForAWhile) {
  Heard heard;
  const Console* const usual = &console();
  {
    const StandIn here(heard);
    EXPECT_EQ(print("an answer\n"), kDone);
    console().complain({.kind = ErrorKind::usage, .code = "usage", .message = "no", .hint = "yes"},
                       Color::never);
  }
  EXPECT_EQ(&console(), usual);
  EXPECT_EQ(heard.out, "an answer\n");
  EXPECT_EQ(heard.err, "sbx: error[usage]: no\n  help: yes\n");
}

TEST(Console, AnAnswerThatIsNotWrittenIsToldUnlessItsReaderLeft) {
  Heard heard;
  const StandIn here(heard);
  heard.errno_of_out = EPIPE;
  EXPECT_EQ(print("x"), exit_status::kCouldNot);
  EXPECT_EQ(heard.err, "");
  heard.errno_of_out = ENOSPC;
  EXPECT_EQ(print("x"), exit_status::kCouldNot);
  EXPECT_THAT(heard.err, HasSubstr("cannot write to stdout"));
}

TEST(Console, OnlyAPersonAtATerminalIsAsked) {
  Heard heard;
  const Person person = heard.person();
  ASSERT_TRUE(person.answers);
  EXPECT_TRUE(person.answers("really? ", -1));
  EXPECT_EQ(heard.err, "really? ");
  heard.has_terminal = false;
  EXPECT_FALSE(heard.person().answers);
}

/// Its stdin is a pipe, and its stderr as well.
class AskTest : public testing::Test {
 protected:
  AskTest() : in_(*sys::make_pipe()), err_(*sys::make_pipe()), wake_(*sys::make_pipe()) {
    (void)::dup2(in_.read.get(), STDIN_FILENO);
    (void)::dup2(err_.write.get(), STDERR_FILENO);
  }
  ~AskTest() override {
    (void)::dup2(stdin_.get(), STDIN_FILENO);
    (void)::dup2(stderr_.get(), STDERR_FILENO);
  }

  [[nodiscard]] bool asked(const std::string& typed) {
    if (!typed.empty()) EXPECT_TRUE(sys::write_all(in_.write.get(), typed));
    return Console().ask("really? ", wake_.read.get());
  }
  void type_the_end() { in_.write.reset(); }
  void wake() { EXPECT_TRUE(sys::write_all(wake_.write.get(), "x")); }
  [[nodiscard]] std::string heard() {
    std::string text(100, '\0');
    const ssize_t got = ::read(err_.read.get(), text.data(), text.size());
    return text.substr(0, got > 0 ? static_cast<std::size_t>(got) : 0);
  }

 private:
  UniqueFd stdin_{::dup(STDIN_FILENO)};
  UniqueFd stderr_{::dup(STDERR_FILENO)};
  sys::Pipe in_;
  sys::Pipe err_;
  sys::Pipe wake_;
};

TEST_F(AskTest, YesIsYesInAnyCase) {
  EXPECT_TRUE(asked("y\n"));
  EXPECT_TRUE(asked("  YES \n"));
  EXPECT_EQ(heard(), "really? really? ");
}

TEST_F(AskTest, AnythingElseIsNo) {
  for (const char* const typed : {"\n", "n\n", "yesterday\n", "yes or no\n"})
    EXPECT_FALSE(asked(typed)) << typed;
}

TEST_F(AskTest, TheEndOfTheInputIsNoOnALineOfItsOwn) {
  type_the_end();
  EXPECT_FALSE(asked(""));
  EXPECT_EQ(heard(), "really? \n");
}

TEST_F(AskTest, WhatWakesItIsNoWhateverWasTyped) {
  wake();
  EXPECT_FALSE(asked("y\n"));
  EXPECT_EQ(heard(), "really? \n");
}

}  // namespace
}  // namespace sbx::cli
