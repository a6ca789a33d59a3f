#include <gtest/gtest.h>

#include <limits>
#include <sbx/units.hpp>

namespace sbx {
namespace {

using std::chrono::milliseconds;

TEST(Units, ReadsEverySizeUnitAsAPowerOf1024) {
  EXPECT_EQ(parse_bytes("17B"), Bytes{17});
  EXPECT_EQ(parse_bytes("64K"), Bytes{65'536});
  EXPECT_EQ(parse_bytes("512M"), Bytes{512ULL << 20});
  EXPECT_EQ(parse_bytes("1G"), Bytes{1ULL << 30});
  EXPECT_EQ(parse_bytes("2T"), Bytes{2ULL << 40});
  EXPECT_EQ(parse_bytes("0B"), Bytes{0});
}

TEST(Units, ReadsFractionsThatAreWholeBytes) {
  EXPECT_EQ(parse_bytes("1.5K"), Bytes{1536});
  EXPECT_EQ(parse_bytes("1.5B"), std::nullopt);
}

TEST(Units, RefusesWhatIsNotASize) {
  for (const char* text : {"", "K", "512", "512MB", "512MiB", "-1K", "+1K", " 1K", "1 K", "1K ",
                           "1e3K", ".5K", "1.K", "1.2345K", "0x10K", "1k", "1KK"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

TEST(Units, RefusesASizeOver63Bits) {
  EXPECT_EQ(parse_bytes("8388607T"), Bytes{8388607ULL << 40});
  EXPECT_EQ(parse_bytes("8388608T"), std::nullopt);
  EXPECT_EQ(parse_bytes("18446744073709551615B"), std::nullopt);
  EXPECT_EQ(parse_bytes("99999999999999999999999T"), std::nullopt);
}

TEST(Units, ReadsEveryDurationUnit) {
  EXPECT_EQ(parse_duration("250ms"), milliseconds{250});
  EXPECT_EQ(parse_duration("30s"), milliseconds{30'000});
  EXPECT_EQ(parse_duration("5m"), milliseconds{300'000});
  EXPECT_EQ(parse_duration("2h"), milliseconds{7'200'000});
  EXPECT_EQ(parse_duration("1.5s"), milliseconds{1500});
  EXPECT_EQ(parse_duration("0.001s"), milliseconds{1});
}

TEST(Units, RefusesWhatIsNotADuration) {
  for (const char* text : {"", "s", "30", "30 s", "1d", "-1s", "1.5ms", "1.0001s", "30sec", "1e2s",
                           "9999999999999999999h"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

TEST(Units, WritesTheShortestTextThatReadsBack) {
  EXPECT_EQ(to_text(Bytes{1ULL << 30}), "1G");
  EXPECT_EQ(to_text(Bytes{1536}), "1536B");
  EXPECT_EQ(to_text(Bytes{0}), "0B");
  EXPECT_EQ(to_text(milliseconds{60'000}), "1m");
  EXPECT_EQ(to_text(milliseconds{90'000}), "90s");
  EXPECT_EQ(to_text(milliseconds{1}), "1ms");
  EXPECT_EQ(to_text(milliseconds{0}), "0s");
}

TEST(Units, WhatIsWrittenReadsBack) {
  for (std::uint64_t value :
       {0ULL, 1ULL, 1023ULL, 1024ULL, 1025ULL, 3ULL << 20, (1ULL << 40) + 1, (1ULL << 63) - 1}) {
    EXPECT_EQ(parse_bytes(to_text(Bytes{value})), Bytes{value});
    const milliseconds time{static_cast<std::int64_t>(value)};
    EXPECT_EQ(parse_duration(to_text(time)), time);
  }
}

TEST(Units, DescribesForPeople) {
  EXPECT_EQ(describe(Bytes{1}), "1 byte");
  EXPECT_EQ(describe(Bytes{17}), "17 bytes");
  EXPECT_EQ(describe(Bytes{512ULL << 20}), "512 MiB");
  EXPECT_EQ(describe(Bytes{3ULL << 29}), "1.5 GiB");
  EXPECT_EQ(describe(milliseconds{250}), "250 ms");
  EXPECT_EQ(describe(milliseconds{30'000}), "30 s");
  EXPECT_EQ(describe(milliseconds{300'000}), "5 min");
  EXPECT_EQ(describe(milliseconds{7'200'000}), "2 h");
}

}  // namespace
}  // namespace sbx
