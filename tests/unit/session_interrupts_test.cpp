#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

#include "session/interrupts.hpp"

namespace sbx::session {
namespace {

using namespace std::chrono_literals;

struct InterruptsTest : testing::Test {
  EventLoop loop = std::move(*EventLoop::make());
  std::string sent;  ///< i: interrupt, u: unheard, c: children
  int gave_up = 0;
  Interrupts::Times times{
      .repeats = 1ms, .repeats_to_hearer = 2ms, .children_end = 6ms, .grace = 20ms};
  [[nodiscard]] Interrupts::Signals signals() {
    return {.interrupt = [this] { sent += 'i'; },
            .unheard = [this] { sent += 'u'; },
            .end_children = [this] { sent += 'c'; }};
  }
  Interrupts interrupts{loop, signals(), times};

  void begin(Interrupts::Children children = Interrupts::Children::stay) {
    interrupts.begin(children, [this] { ++gave_up; });
  }
  void wait_until(const auto& is_so) {
    while (!is_so()) ASSERT_TRUE(loop.run_once());
  }
};

TEST_F(InterruptsTest, OneIsSentAtOnceAndAgainUntilTheEnd) {
  times.grace = 1h;
  Interrupts patient(loop, signals(), times);
  patient.begin(Interrupts::Children::stay, [this] { ++gave_up; });
  EXPECT_EQ(sent, "i");
  wait_until([this] { return sent == "iiuiu"; });
  patient.end();
  bool later = false;
  loop.after(50ms, [&] { later = true; });
  wait_until([&] { return later; });
  EXPECT_EQ(sent, "iiuiu");
  EXPECT_EQ(gave_up, 0);
}

TEST_F(InterruptsTest, CodeThatHasHeardItIsToldByNoOtherSignal) {
  begin();
  interrupts.heard();
  wait_until([this] { return gave_up == 1; });
  EXPECT_EQ(sent.find('u'), std::string::npos) << sent;
  EXPECT_GT(sent.size(), 1U);
}

TEST_F(InterruptsTest, WhatTheCodeWaitsForEndsFirst) {
  begin(Interrupts::Children::end);
  wait_until([this] { return gave_up == 1; });
  EXPECT_NE(sent.find('c'), std::string::npos) << sent;
}

TEST_F(InterruptsTest, TheNextBeginsAnew) {
  begin();
  interrupts.heard();
  begin();
  sent.clear();
  wait_until([this] { return sent.contains('u'); });  // nobody has heard this one
  wait_until([this] { return gave_up == 1; });
}

TEST_F(InterruptsTest, WordsThatComeUnaskedAreNothing) {
  interrupts.heard();
  interrupts.end();
  EXPECT_EQ(sent, "");
}

}  // namespace
}  // namespace sbx::session
