#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "fake_sandbox.hpp"

namespace sbx::test {
namespace {

using namespace std::chrono_literals;
using supervise::CallerMemory;
using supervise::NotedCall;

// Any call with a path would do; this one shows the kernel's own answer.
constexpr int kNoted = SYS_chdir;

/// Written by the supervisor process, read by the test.
struct Looks {
  std::atomic<int> count;
  std::atomic<int> unreadable;
  char text[64];
  char process[32];
};

Looks* share_looks() {
  void* const room =
      ::mmap(nullptr, sizeof(Looks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (room) Looks{};
}

FakeRun noting(Looks* looks, std::function<int()> main) {
  FakeRun run;
  run.listener = true;
  run.settings.budgets.wall_time = 60s;
  // A null pointer is denied, for the test; everything else is allowed.
  run.settings.explain = [](int, const std::uint64_t(&arguments)[6], int& errno_value) {
    errno_value = arguments[0] == 0 ? EACCES : 0;
    return Denial{.kind = DenialKind::syscall, .what = "chdir"};
  };
  run.settings.notes.push_back(
      {kNoted, [looks](const NotedCall& call, const CallerMemory& memory) {
         ++looks->count;
         const auto text = memory.text(call.arguments[0], sizeof looks->text - 1);
         if (!text) {
           ++looks->unreadable;
           return;
         }
         std::strncpy(looks->text, text->c_str(), sizeof looks->text - 1);
         std::strncpy(looks->process, memory.process_name().c_str(), sizeof looks->process - 1);
       }});
  run.main = [main = std::move(main)] { return send_listener(kNoted) ? main() : kNoSeccomp; };
  return run;
}

bool gives(const char* path, int wanted) {
  const long answer = ::syscall(kNoted, path);
  return wanted == 0 ? answer == 0 : answer == -1 && errno == wanted;
}

#define SKIP_WITHOUT_SECCOMP(seen)                               \
  if ((seen).verdict == "exited 77" || (seen).verdict == "lost") \
  GTEST_SKIP() << "no seccomp listener here"

TEST(NotedCall, IsLookedAtAndAnsweredByTheKernelItself) {
  Looks* const looks = share_looks();
  const Seen seen = run_to_end(
      noting(looks, [] { return gives("/", 0) && gives("/no/such/directory", ENOENT) ? 0 : 1; }));
  SKIP_WITHOUT_SECCOMP(seen);
  EXPECT_EQ(seen.verdict, "exited 0");
  EXPECT_EQ(looks->count, 2);
  EXPECT_STREQ(looks->text, "/no/such/directory");
  EXPECT_STRNE(looks->process, "");
  EXPECT_EQ(seen.denials, "") << "what is allowed is not a denial";
}

TEST(NotedCall, ThatIsDeniedDoesNotGoOnAndIsNotLookedAt) {
  Looks* const looks = share_looks();
  const Seen seen =
      run_to_end(noting(looks, [] { return gives(nullptr, EACCES) && gives("/", 0) ? 0 : 1; }));
  SKIP_WITHOUT_SECCOMP(seen);
  EXPECT_EQ(seen.verdict, "exited 0");
  EXPECT_EQ(looks->count, 1);
  EXPECT_EQ(seen.denials.find("chdir*1@"), 0U) << seen.denials;
}

TEST(NotedCall, WithoutAnybodyWhoLooksDoesNotGoOn) {
  FakeRun run = noting(share_looks(), [] { return gives("/", EPERM) ? 0 : 1; });
  run.settings.notes.clear();
  const Seen seen = run_to_end(run);
  SKIP_WITHOUT_SECCOMP(seen);
  EXPECT_EQ(seen.verdict, "exited 0");
}

TEST(NotedCall, DoesNotEndARunInWhichDenialsDo) {
  Looks* const looks = share_looks();
  FakeRun run = noting(looks, [] { return gives("/", 0) ? 0 : 1; });
  run.settings.kill_on_denied = true;
  const Seen seen = run_to_end(run);
  SKIP_WITHOUT_SECCOMP(seen);
  EXPECT_EQ(seen.verdict, "exited 0");
  EXPECT_EQ(looks->count, 1);
}

/// Has an open descriptor that is closed on exec as its answer.
bool gives_descriptor(const char* path) {
  const int fd = static_cast<int>(::syscall(kNoted, path));
  struct stat facts{};
  return fd >= 0 && ::fcntl(fd, F_GETFD) == FD_CLOEXEC && ::fstat(fd, &facts) == 0 &&
         S_ISCHR(facts.st_mode);
}

TEST(NotedCall, IsAnsweredLaterOrByADescriptorWhereItIsTaken) {
  FakeRun run = noting(share_looks(), [] {
    return gives("/later", EEXIST) && gives_descriptor("/null") && gives("/now", ENOSPC) ? 0 : 1;
  });
  const auto loop = std::make_shared<EventLoop*>(nullptr);
  run.settings.attach = [loop](EventLoop& own) -> Status {
    *loop = &own;
    return {};
  };
  run.settings.notes.front().look = {};
  run.settings.notes.front().take = [loop](const NotedCall& call, const CallerMemory& caller) {
    const std::string text = caller.text(call.arguments[0], 64).value_or("");
    if (text == "/later") {
      (void)(*loop)->after(1ms, [caller] { caller.finish(EEXIST); });
    } else if (text == "/null") {
      const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      if (const int error = caller.give(null.get(), true); error != 0) caller.finish(error);
    } else {
      caller.finish(ENOSPC);
    }
  };
  const Seen seen = run_to_end(run);
  SKIP_WITHOUT_SECCOMP(seen);
  EXPECT_EQ(seen.verdict, "exited 0");
  EXPECT_EQ(seen.denials, "");
}

TEST(NotedCall, IsReadAcrossPagesAndNotBeyondThem) {
  Looks* const looks = share_looks();
  const Seen seen = run_to_end(noting(looks, [] {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    auto* const room = static_cast<char*>(
        ::mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::munmap(room + 2 * page, page);
    char* const across = room + page - 3;
    std::strcpy(across, "/no/such");
    if (!gives(across, ENOENT)) return 1;
    char* const at_end = room + 2 * page - 5;
    std::strcpy(at_end, "/end");
    if (!gives(at_end, ENOENT)) return 2;
    at_end[4] = 'x';  // continues into unmapped memory
    if (!gives(at_end, EFAULT)) return 3;
    return gives(reinterpret_cast<const char*>(8), EFAULT) ? 0 : 4;
  }));
  SKIP_WITHOUT_SECCOMP(seen);
  EXPECT_EQ(seen.verdict, "exited 0");
  EXPECT_EQ(looks->count, 4);
  EXPECT_EQ(looks->unreadable, 2);
  EXPECT_STREQ(looks->text, "/end");
}

TEST(NotedCall, AFloodIsSeenExactlyAndCostsLittle) {
  constexpr int kCalls = 6000;
  Looks* const looks = share_looks();
  const Seen seen = run_to_end(noting(looks, [] {
    for (int i = 0; i < kCalls; ++i)
      if (!gives("/", 0)) return 1;
    return 0;
  }));
  SKIP_WITHOUT_SECCOMP(seen);
  EXPECT_EQ(seen.verdict, "exited 0");
  EXPECT_EQ(looks->count, kCalls);
  // A tenth of a CPU, plus 100 ms for the first thousand, each of which reads a name, and the
  // start.
  EXPECT_LE(seen.cpu_ms, kTimesCpu * (seen.usage.wall_ms / 10 + 100));
}

}  // namespace
}  // namespace sbx::test
