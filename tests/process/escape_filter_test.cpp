#include "supervise/streams/escape_filter.hpp"

#include <gtest/gtest.h>

#include "supervise/streams/terminal_modes.hpp"

namespace sbx::supervise {
namespace {

std::string filtered(EscapePolicy policy, std::string_view text, std::size_t block) {
  EscapeFilter filter(policy);
  std::string output;
  for (std::size_t at = 0; at < text.size(); at += block)
    filter.feed(text.substr(at, block), output);
  filter.finish(output);
  return output;
}

/// The result, after checking that it is the same for every split.
std::string filtered(EscapePolicy policy, std::string_view text) {
  const std::string whole = filtered(policy, text, text.size() + 1);
  for (std::size_t block = 1; block < text.size(); ++block)
    EXPECT_EQ(filtered(policy, text, block), whole) << "in blocks of " << block;
  return whole;
}

std::string visible(std::string_view text) {
  return filtered(EscapePolicy::visible, text);
}
std::string interactive(std::string_view text) {
  return filtered(EscapePolicy::interactive, text);
}

TEST(EscapeFilterVisible, PassesTextColoursAndLineControl) {
  const std::string_view text =
      "plain\tTab\r\n\x1b[0m\x1b[1;38;5;208mö €\U0001F600\x1b[38:2::1:2:3mx";
  EXPECT_EQ(visible(text), text);
}

TEST(EscapeFilterVisible, ShowsEveryOtherSequence) {
  EXPECT_EQ(visible("\x1b[2J"), "^[[2J");
  EXPECT_EQ(visible("\x1b[?25l"), "^[[?25l");
  EXPECT_EQ(visible("\x1b]0;title\a"), "^[]0;title^G");
  EXPECT_EQ(visible("\x1b]52;c;AAAA\x1b\\"), "^[]52;c;AAAA^[\\");
  EXPECT_EQ(visible("\x1bP1$r0m\x1b\\"), "^[P1$r0m^[\\");
  EXPECT_EQ(visible("\x1b"
                    "c"),
            "^[c");
  EXPECT_EQ(visible("\x1b\x1b[31m"), "^[\x1b[31m");
  EXPECT_EQ(visible("\x1b[>4;1m"), "^[[>4;1m");
}

TEST(EscapeFilterVisible, ShowsControlCharacters) {
  EXPECT_EQ(visible(std::string_view("a\0\b\x7f\x05", 5)), "a^@^H^?^E");
}

TEST(EscapeFilterVisible, ShowsTheEightBitControlsInBothTheirForms) {
  EXPECT_EQ(visible("\xc2\x9b"
                    "2J"),
            "\\xc2\\x9b2J");
  EXPECT_EQ(visible("\x9b"
                    "2J"),
            "\\x9b2J");
  EXPECT_EQ(visible("\xe0\x82\x9b"), "\\xe0\\x82\\x9b");  // over-long encoding
}

TEST(EscapeFilterVisible, ShowsWhatIsUnfinishedAtTheEnd) {
  EXPECT_EQ(visible("x\x1b[31"), "x^[[31");
  EXPECT_EQ(visible("x\xe2\x82"), "x\\xe2\\x82");
}

TEST(EscapeFilterVisible, AnEndlessColourSequenceIsNotHeldBackForEver) {
  const std::string text = "\x1b[" + std::string(10'000, '1');
  EXPECT_EQ(filtered(EscapePolicy::visible, text, 64), "^[[" + std::string(10'000, '1'));
}

TEST(EscapeFilterInteractive, PassesWhatAFullScreenProgramNeeds) {
  const std::string_view text =
      "\x1b[?1049h\x1b[H\x1b[2J\x1b[10;20H\x1b[1;31mx\x1b[K\x1b[?25l\x1b(B\x1b"
      "7\x1b"
      "8\x1b[4 q\b\a\x1bM\x1b[!p";
  EXPECT_EQ(interactive(text), text);
}

TEST(EscapeFilterInteractive, SwallowsStringsWhateverEndsThem) {
  EXPECT_EQ(interactive("a\x1b]0;title\ab"), "ab");
  EXPECT_EQ(interactive("a\x1b]52;c;AAAA\x1b\\b"), "ab");
  EXPECT_EQ(interactive("a\x1bP+q544e\x1b\\b"), "ab");
  EXPECT_EQ(interactive("a\x1b_Gf=100;AAAA\x1b\\b"), "ab");
  EXPECT_EQ(interactive("a\x1b]0;unfinished"), "a");
}

TEST(EscapeFilterInteractive, SwallowsQueries) {
  for (const char* query : {"\x1b[c", "\x1b[>c", "\x1b[=c", "\x1b[0c", "\x1b[5n", "\x1b[6n",
                            "\x1b[?6n", "\x1b[x", "\x1b[21t", "\x1b[?25$p", "\x1b[>q", "\x1b[?u",
                            "\x1b[?1;1;0S", "\x1b[1;1;1;1;1;1*y", "\x1bZ", "\x05", "\x1b[5i",
                            "\xc2\x9b"
                            "6n"})
    EXPECT_EQ(interactive(std::string("a") + query).substr(0, 1), "a") << query + 1;
  EXPECT_EQ(interactive("a\x1b[6nb\x1b[>0cb\x1bZb\x05"
                        "b"),
            "abbbb");
}

TEST(EscapeFilterInteractive, KeepsTheTerminalInItsCharacterSet) {
  EXPECT_EQ(interactive("a\x1b%@b\x1b Gb"), "abb");
  EXPECT_EQ(interactive("\x9b"
                        "c"),
            "c");
}

/// After the text, in any split.
std::string resets_after(std::string_view text) {
  TerminalModes whole;
  whole.feed(text);
  const std::string resets = whole.resets();
  EXPECT_EQ(whole.resets(), "");
  for (std::size_t block = 1; block < text.size(); ++block) {
    TerminalModes modes;
    for (std::size_t at = 0; at < text.size(); at += block) modes.feed(text.substr(at, block));
    EXPECT_EQ(modes.resets(), resets) << "in blocks of " << block;
  }
  return resets;
}

TEST(TerminalModes, UndoesWhatStaysSet) {
  EXPECT_EQ(resets_after("\033[?1000h\033[?1049h\033[?25lx"), "\033[?1000l\033[?1049l\033[?25h");
  EXPECT_EQ(resets_after("\033[?1002;1006h\033[?2004h\033[?1004h"),
            "\033[?1002l\033[?1006l\033[?1004l\033[?2004l");
}

TEST(TerminalModes, SaysNothingWhereTheProgramHasCleanedUp) {
  EXPECT_EQ(resets_after("\033[?1000h\033[?1049hx\033[?1049l\033[?1000l"), "");
  EXPECT_EQ(resets_after("\033[?25l\033[?25h"), "");
  EXPECT_EQ(resets_after("\033[31mred\033[0m ?1000h [?1000h \033[1000h \033[?7h"), "");
}

}  // namespace
}  // namespace sbx::supervise
