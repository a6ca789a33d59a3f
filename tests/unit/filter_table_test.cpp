#include <asm/unistd.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <seccomp.h>

#include <cstdlib>
#include <memory>
#include <set>
#include <string>

#include "filter_support.hpp"
#include "plan/filter/symbols.hpp"
#include "plan/filter/table.hpp"

namespace sbx::plan {
namespace {

struct HeaderNumber {
  int number;
  const char* name;
  const char* in_header;  // the number as text, or the macro's own name if the header lacks it
};
#define SBX_TEXT_OF(x) #x
#define SBX_TEXT(x) SBX_TEXT_OF(x)
#define CALL(x86_64, aarch64, name, ...) \
  HeaderNumber{SBX_CALL_NUMBER(x86_64, aarch64), #name, SBX_TEXT(__NR_##name)},
#define INSTEAD(name, successor)
constexpr HeaderNumber kHeaderNumbers[] = {
#include "plan/filter/syscalls.def"
};
#undef CALL
#undef INSTEAD

#define CALL(x86_64, aarch64, name, ...) #name,
#define INSTEAD(name, successor)
constexpr std::string_view kNames[] = {
#include "plan/filter/syscalls.def"
};
#undef CALL
#undef INSTEAD

#define CALL(...)
#define INSTEAD(name, successor) {#name, successor},
constexpr std::pair<std::string_view, std::string_view> kSuccessors[] = {
#include "plan/filter/syscalls.def"
};
#undef CALL
#undef INSTEAD

TEST(SyscallTable, AgreesWithTheKernelHeader) {
  int known = 0;
  for (const HeaderNumber& line : kHeaderNumbers) {
    if (line.in_header[0] < '0' || line.in_header[0] > '9') continue;
    ++known;
    EXPECT_EQ(std::to_string(line.number), line.in_header) << line.name;
  }
  // The header of Linux 6.1 has 362 calls of x86-64 and 305 of aarch64.
  EXPECT_GE(known, kAuditArch == AUDIT_ARCH_X86_64 ? 360 : 300);
}

TEST(SyscallTable, AgreesWithLibseccomp) {
  int known = 0;
  for (int number = 0; number < 1024; ++number) {
    const std::unique_ptr<char, decltype(&std::free)> name(
        seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number), &std::free);
    if (!name) continue;
    ++known;
    ASSERT_NE(find_call(number), nullptr) << name.get();
    EXPECT_STREQ(find_call(number)->name, name.get());
    EXPECT_EQ(find_call(std::string_view(name.get())), find_call(number));
  }
  EXPECT_GE(known, kAuditArch == AUDIT_ARCH_X86_64 ? 360 : 300);
}

TEST(SyscallTable, GivesEveryNumberAReasonAndAKnownWidth) {
  for (const Call& call : calls()) {
    EXPECT_GE(std::string_view(call.reason).size(), 7U) << call.name;
    EXPECT_THAT(call.arguments, testing::MatchesRegex("[wih]*")) << call.name;
  }
  EXPECT_EQ(call_limit(), 470);
  EXPECT_EQ(find_call(-1), nullptr);
  EXPECT_EQ(find_call(400), nullptr);
  EXPECT_EQ(find_call(470), nullptr);
}

TEST(SyscallTable, KnowsEachNameHereOrAsAbsent) {
  for (const std::string_view name : kNames) {
    EXPECT_NE(find_call(name) == nullptr, find_absent_call(name) == nullptr) << name;
    if (const Call* absent = find_absent_call(name)) {
      EXPECT_EQ(absent->name, name);
    }
  }
  EXPECT_EQ(find_absent_call("opne"), nullptr);
}

// Whichever architecture lacks a call, its successor must be one that it has.
TEST(SyscallTable, NamesSuccessorsThatArePresentWhereTheCallIsAbsent) {
  for (const auto& [name, successor] : kSuccessors) {
    EXPECT_THAT(kNames, testing::Contains(name));
    EXPECT_EQ(used_instead(name), successor);
    if (successor.starts_with('@')) {
      EXPECT_TRUE(find_group(successor)) << successor;
    } else {
      EXPECT_NE(find_call(successor), nullptr) << successor;
    }
  }
  EXPECT_EQ(used_instead("modify_ldt"), "");
  EXPECT_EQ(used_instead("read"), "");
}

TEST(SyscallTable, HasGroupsWithDescriptionsAndMembers) {
  std::set<std::string_view> names;
  std::size_t members = 0;
  for (const SyscallGroup& group : syscall_groups()) {
    EXPECT_TRUE(group.name.starts_with('@')) << group.name;
    EXPECT_FALSE(group.description.empty()) << group.name;
    EXPECT_FALSE(group.members.empty()) << group.name;
    EXPECT_TRUE(names.insert(group.name).second) << group.name;
    EXPECT_TRUE(find_group(group.name).has_value());
    members += group.members.size();
  }
  EXPECT_EQ(members, calls().size());
  EXPECT_EQ(syscall_table().size(), calls().size());
  EXPECT_TRUE(names.contains("@process-spawn") && names.contains("@debug") &&
              names.contains("@network"));
}

TEST(SyscallTable, NamesTheNearestCallAndGroup) {
  EXPECT_EQ(nearest_name("ptrce"), "ptrace");
  EXPECT_EQ(nearest_name("@process-spwan"), "@process-spawn");
  EXPECT_EQ(nearest_name("zzzzzzzzzzzz"), "");
  EXPECT_EQ(syscall_name(find_call("ptrace")->number), "ptrace");
  EXPECT_EQ(syscall_name(999), "system call 999");
}

TEST(Symbols, ResolveNamesNumbersAndCombinations) {
  EXPECT_EQ(resolve_symbol("AF_UNIX"), 1U);
  EXPECT_EQ(resolve_symbol("CLONE_NEWUSER | CLONE_NEWNS"), 0x10020000U);
  EXPECT_EQ(resolve_symbol("0x5412"), resolve_symbol("TIOCSTI"));
  EXPECT_EQ(resolve_symbol("-1"), ~std::uint64_t{0});
  EXPECT_EQ(resolve_symbol("AF_UNIXX"), std::nullopt);
  EXPECT_EQ(resolve_symbol("AF_UNIX|"), std::nullopt);
  EXPECT_EQ(resolve_symbol(""), std::nullopt);
  EXPECT_EQ(resolve_symbol("12x"), std::nullopt);
  EXPECT_EQ(nearest_symbol("AF_PAKCET"), "AF_PACKET");
  EXPECT_EQ(symbol_name("AF_", 17), "AF_PACKET");
  EXPECT_EQ(symbol_name("AF_", 4711), "");
}

}  // namespace
}  // namespace sbx::plan
