// Programs that use up one resource in one particular way, each with an amount, so that the same
// program also shows what happens below the budget. They run under sbx, never beside it.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "probe.hpp"

namespace probe {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
char block[kMiB];

std::size_t mebibytes(const char* text) {
  return static_cast<std::size_t>(number(text)) * kMiB;
}

/// Holds on to what it has for a moment: nothing of it is left to be seen at the end, and not every
/// means is told of a refusal.
int refused_for_a_while() {
  const int error = errno;
  usleep(400'000);
  return refused(error);
}

/// Touches memory by the kernel's own hand: the fastest way there is.
bool populate(std::size_t size) {
  return mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1,
              0) != MAP_FAILED;
}

/// N MiB of anonymous memory, 4 MiB at a time, at full speed.
int hold_anonymous(Arguments arguments) {
  constexpr std::size_t kStep = 4 * kMiB;
  const std::size_t size = mebibytes(arguments[0]);
  for (std::size_t held = 0; held < size; held += kStep)
    if (!populate(kStep)) return refused();
  return worked();
}

int wait_for_children() {
  int bad = 0;
  int status = 0;
  while (wait(&status) > 0)
    if (status != 0) ++bad;
  return bad == 0 ? worked() : refused(ECHILD);
}

/// COUNT children with N MiB each, at once: each ends when all of them hold theirs.
int hold_in_children(Arguments arguments) {
  const long count = number(arguments[0]);
  int ready[2];
  int go[2];
  if (pipe(ready) != 0 || pipe(go) != 0) return unasked("pipe");
  for (long i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child < 0) return refused();
    if (child > 0) continue;
    close(go[1]);
    char byte = 0;
    if (!populate(mebibytes(arguments[1])) || write(ready[1], "x", 1) != 1) _exit(1);
    _exit(read(go[0], &byte, 1) == 0 ? 0 : 1);
  }
  close(ready[1]);
  char byte = 0;
  for (long i = 0; i < count && read(ready[0], &byte, 1) == 1;) ++i;
  close(go[1]);
  return wait_for_children();
}

/// N MiB that COUNT idle children share since their fork, then M MiB of its own at full speed: the
/// sum over processes is far above what is there.
int hold_after_forks(Arguments arguments) {
  constexpr std::size_t kStep = 4 * kMiB;
  if (!populate(mebibytes(arguments[1]))) return refused();
  int go[2];
  if (pipe(go) != 0) return unasked("pipe");
  for (long i = 0; i < number(arguments[0]); ++i) {
    const pid_t child = fork();
    if (child < 0) return refused();
    if (child > 0) continue;
    close(go[1]);
    char byte = 0;
    _exit(read(go[0], &byte, 1) == 0 ? 0 : 1);
  }
  usleep(200'000);  // for whoever looks now and then
  for (std::size_t held = 0; held < mebibytes(arguments[2]); held += kStep)
    if (!populate(kStep)) return refused();
  close(go[1]);
  return wait_for_children();
}

/// N MiB of anonymous memory, which a child of vfork has as well for as long as it does not exec.
int hold_with_borrower(Arguments arguments) {
  const int held = hold_anonymous(arguments);
  if (held != 0) return held;
  const pid_t child = vfork();
  if (child == 0) {
    usleep(300'000);
    _exit(0);
  }
  return child < 0 ? refused() : 0;
}

void* hold_in_thread(void* arguments) {
  std::exit(hold_anonymous(static_cast<Arguments>(arguments)));
}

/// N MiB in a thread, after the first one has left: what /proc says of the process's memory is said
/// of the first.
int hold_without_first(Arguments arguments) {
  pthread_t thread;
  if (pthread_create(&thread, nullptr, hold_in_thread, arguments) != 0)
    return unasked("pthread_create");
  pthread_exit(nullptr);
}

int write_fully(int fd, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t wrote = write(fd, block, std::min(size - done, sizeof block));
    if (wrote < 0) return -1;
    done += static_cast<std::size_t>(wrote);
  }
  return 0;
}

/// N MiB in a memory file without a name.
int hold_memfd(Arguments arguments) {
  const int fd = memfd_create("probe", MFD_CLOEXEC);
  if (fd < 0) return refused();
  return answer(write_fully(fd, mebibytes(arguments[0])));
}

/// N MiB of System V shared memory, detached again: no process has it in its address space.
int hold_sysv(Arguments arguments) {
  constexpr std::size_t kSegment = 16 * kMiB;
  const std::size_t size = mebibytes(arguments[0]);
  for (std::size_t held = 0; held < size; held += kSegment) {
    const int segment = shmget(IPC_PRIVATE, kSegment, IPC_CREAT | 0600);
    if (segment < 0) return refused();
    void* const memory = shmat(segment, nullptr, 0);
    if (memory == reinterpret_cast<void*>(-1)) return refused();
    std::memset(memory, 1, kSegment);
    shmdt(memory);
  }
  return worked();
}

/// N MiB of page tables, for memory that is read in one place of each 2 MiB and is nowhere else.
int hold_page_tables(Arguments arguments) {
  constexpr std::size_t kRegion = 1024 * kMiB;
  constexpr std::size_t kReached = 2 * kMiB;  // by one page of tables
  const std::size_t pages = mebibytes(arguments[0]) / 4096;
  const char* region = nullptr;
  for (std::size_t held = 0; held < pages; ++held) {
    const std::size_t at = held * kReached % kRegion;
    if (at == 0) {
      void* const fresh =
          mmap(nullptr, kRegion, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (fresh == MAP_FAILED) return refused();
      madvise(fresh, kRegion, MADV_NOHUGEPAGE);
      region = static_cast<const char*>(fresh);
    }
    (void)*static_cast<const volatile char*>(region + at);
  }
  return worked();
}

/// N MiB of shared memory, 4 MiB of which are mapped at a time: the rest stays, resident nowhere.
int hold_given_up(Arguments arguments) {
  constexpr std::size_t kStep = 4 * kMiB;
  const std::size_t size = mebibytes(arguments[0]);
  void* const memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return refused();
  for (std::size_t held = 0; held < size; held += kStep) {
    char* const step = static_cast<char*>(memory) + held;
    std::memset(step, 1, kStep);
    madvise(step, kStep, MADV_DONTNEED);
  }
  return worked();
}

/// N MiB in System V semaphores, of 64 bytes each.
int hold_semaphores(Arguments arguments) {
  constexpr std::size_t kInSet = 32000;  // the most, as the kernel comes
  const std::size_t size = mebibytes(arguments[0]);
  for (std::size_t held = 0; held < size; held += kInSet * 64)
    if (semget(IPC_PRIVATE, kInSet, 0600) < 0) return refused();
  return worked();
}

/// N MiB in System V message queues.
int hold_messages(Arguments arguments) {
  constexpr std::size_t kMessage = 8192;  // the most, as the kernel comes
  struct {
    long type;
    char text[kMessage];
  } message{1, {}};
  const std::size_t size = mebibytes(arguments[0]);
  for (std::size_t held = 0; held < size; held += 2 * kMessage) {  // two fill one
    const int queue = msgget(IPC_PRIVATE, 0600);
    if (queue < 0) return refused();
    for (int i = 0; i < 2; ++i)
      if (msgsnd(queue, &message, kMessage, IPC_NOWAIT) != 0) return refused();
  }
  return worked();
}

/// Fills the kernel's buffers of one pair of descriptors; the bytes that it took.
std::size_t fill_buffers(const int (&ends)[2]) {
  std::size_t taken = 0;
  for (const int end : ends) {
    fcntl(end, F_SETFL, O_NONBLOCK);
    ssize_t wrote = write(end, block, 65536);
    for (; wrote > 0; wrote = write(end, block, 65536)) taken += static_cast<std::size_t>(wrote);
  }
  return taken;
}

/// N MiB in buffers of sockets ("sockets") or pipes ("pipes") that nobody reads, in as many children
/// as the limit of open files asks for.
int hold_buffers(Arguments arguments) {
  const bool sockets = std::strcmp(arguments[0], "sockets") == 0;
  const std::size_t size = mebibytes(arguments[1]);
  signal(SIGPIPE, SIG_IGN);
  std::size_t held = 0;
  while (held < size) {
    int ends[2];
    if ((sockets ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends)) != 0) {
      if (errno != EMFILE) return refused();
      // Full here: a child goes on with a table of its own, this process keeps what it has.
      const pid_t child = fork();
      if (child < 0) return refused();
      if (child > 0) {
        int status = 0;
        waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : kRefused;
      }
      closefrom(3);
      continue;
    }
    if (!sockets)
      fcntl(ends[1], F_SETPIPE_SZ, kMiB);  // refused beyond the user's share: then 64 KiB
    held += fill_buffers(ends);
  }
  return worked();
}

std::uint64_t own_cpu_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1000000;
}

void spin_for(std::uint64_t milliseconds) {
  const std::uint64_t end = own_cpu_milliseconds() + milliseconds;
  while (own_cpu_milliseconds() < end) {
  }
}

/// "waited" or "ignored": COUNT children one after the other, each of which uses MS of CPU time;
/// with "ignored" nobody waits for them, and their time is added to nobody's.
int spin_in_children(Arguments arguments) {
  const bool ignored = std::strcmp(arguments[0], "ignored") == 0;
  if (ignored) signal(SIGCHLD, SIG_IGN);
  const long count = number(arguments[1]);
  const auto each = static_cast<std::uint64_t>(number(arguments[2]));
  for (long i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child < 0) return refused();
    if (child == 0) {
      spin_for(each);
      _exit(0);
    }
    waitpid(child, nullptr, 0);  // with "ignored": returns when it is gone, with ECHILD
  }
  return worked();
}

/// COUNT processes that use MS of CPU time each, at once; with "widen" each asks for every CPU first.
int spin_side_by_side(Arguments arguments) {
  const long count = number(arguments[0]);
  for (long i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child < 0) return refused();
    if (child > 0) continue;
    if (arguments[2] != nullptr) {
      cpu_set_t every;
      std::memset(&every, 0xff, sizeof every);
      (void)sched_setaffinity(0, sizeof every, &every);
    }
    spin_for(static_cast<std::uint64_t>(number(arguments[1])));
    _exit(0);
  }
  return wait_for_children();
}

void* wait_in_thread(void*) {
  for (;;) pause();
}

/// COUNT threads.
int make_threads(Arguments arguments) {
  const long count = number(arguments[0]);
  for (long made = 0; made < count; ++made) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    pthread_t thread;
    const int error = pthread_create(&thread, &attributes, wait_in_thread, nullptr);
    if (error != 0) {
      std::printf("threads %ld\n", made);
      errno = error;
      return refused_for_a_while();
    }
  }
  return worked();
}

/// COUNT children that have ended and that nobody waits for.
int leave_zombies(Arguments arguments) {
  const long count = number(arguments[0]);
  for (long made = 0; made < count; ++made) {
    const pid_t child = fork();
    if (child < 0) {
      return refused_for_a_while();
    }
    if (child == 0) _exit(0);
  }
  return worked();
}

/// Forks as long as the kernel lets it, and its children too, for ever: a bomb that does not give up.
int fork_for_ever(Arguments) {
  for (;;) {
    if (fork() < 0) sched_yield();
  }
}

/// N MiB in files of a folder that have no name any more.
int fill_without_names(Arguments arguments) {
  constexpr std::size_t kFile = 4 * kMiB;
  const std::size_t size = mebibytes(arguments[1]);
  for (std::size_t held = 0; held < size; held += kFile) {
    const int fd = open(arguments[0], O_TMPFILE | O_WRONLY, 0600);
    if (fd < 0) return refused();
    if (fallocate(fd, 0, 0, static_cast<off_t>(kFile)) != 0) return refused_for_a_while();
  }
  return worked();
}

/// COUNT empty files in a folder.
int make_files(Arguments arguments) {
  const long count = number(arguments[1]);
  for (long made = 0; made < count; ++made) {
    char name[256];
    std::snprintf(name, sizeof name, "%s/%ld", arguments[0], made);
    const int fd = open(name, O_CREAT | O_WRONLY, 0600);
    if (fd < 0) return refused();
    close(fd);
  }
  return worked();
}

/// A file of N bytes without content.
int make_sparse(Arguments arguments) {
  signal(SIGXFSZ, arguments[2] != nullptr ? SIG_IGN : SIG_DFL);
  const int fd = open(arguments[0], O_CREAT | O_WRONLY, 0600);
  if (fd < 0) return refused();
  return answer(ftruncate(fd, number(arguments[1])));
}

void* fill_in_thread(void* words) {
  const auto arguments = static_cast<Arguments>(words);
  const int fd = open(arguments[0], O_CREAT | O_WRONLY, 0600);
  std::exit(fd < 0 ? refused() : answer(write_fully(fd, mebibytes(arguments[1]))));
}

/// Writes N MiB to a file from a thread, after the first one has left: its count is root's to read.
int fill_without_first(Arguments arguments) {
  pthread_t thread;
  if (pthread_create(&thread, nullptr, fill_in_thread, arguments) != 0)
    return unasked("pthread_create");
  pthread_exit(nullptr);
}

/// Writes N MiB to new files of a folder, from COUNT processes one after the other.
int write_from_children(Arguments arguments) {
  const long count = number(arguments[1]);
  for (long i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child < 0) return refused();
    if (child == 0) {
      char name[256];
      std::snprintf(name, sizeof name, "%s/%ld", arguments[0], i);
      const int fd = open(name, O_CREAT | O_WRONLY, 0600);
      _exit(fd >= 0 && write_fully(fd, mebibytes(arguments[2])) == 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) return refused(EIO);
  }
  return worked();
}

/// Stops itself; goes on, should anybody continue it.
int stop_itself(Arguments) {
  raise(SIGSTOP);
  return worked();
}

/// Wants to run every MS ms until its input ends; prints by how many ms it was late at worst.
int tick(Arguments arguments) {
  const long wanted = number(arguments[0]);
  long worst = 0;
  std::puts("ready");
  timespec before{};
  clock_gettime(CLOCK_MONOTONIC, &before);
  for (;;) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    const int ended = poll(&input, 1, static_cast<int>(wanted));
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const long passed =
        (now.tv_sec - before.tv_sec) * 1000 + (now.tv_nsec - before.tv_nsec) / 1000000;
    worst = std::max(worst, passed - wanted);
    before = now;
    if (ended != 0) break;
  }
  std::printf("%ld\n", worst);
  return kWorked;
}

constexpr Probe kProbes[] = {
    {"hold-anonymous", "MIB", 1, hold_anonymous},
    {"hold-children", "COUNT MIB", 2, hold_in_children},
    {"hold-after-forks", "COUNT MIB MIB", 3, hold_after_forks},
    {"hold-with-borrower", "MIB", 1, hold_with_borrower},
    {"hold-without-first", "MIB", 1, hold_without_first},
    {"hold-memfd", "MIB", 1, hold_memfd},
    {"hold-sysv", "MIB", 1, hold_sysv},
    {"hold-page-tables", "MIB", 1, hold_page_tables},
    {"hold-given-up", "MIB", 1, hold_given_up},
    {"hold-semaphores", "MIB", 1, hold_semaphores},
    {"hold-messages", "MIB", 1, hold_messages},
    {"hold-buffers", "sockets|pipes MIB", 2, hold_buffers},
    {"spin-children", "waited|ignored COUNT MS", 3, spin_in_children},
    {"spin-parallel", "COUNT MS [widen]", 2, spin_side_by_side},
    {"threads", "COUNT", 1, make_threads},
    {"zombies", "COUNT", 1, leave_zombies},
    {"fork-for-ever", "", 0, fork_for_ever},
    {"fill-nameless", "FOLDER MIB", 2, fill_without_names},
    {"fill-without-first", "FILE MIB", 2, fill_without_first},
    {"make-files", "FOLDER COUNT", 2, make_files},
    {"make-sparse", "FILE BYTES [ignore]", 2, make_sparse},
    {"write-children", "FOLDER COUNT MIB", 3, write_from_children},
    {"stop", "", 0, stop_itself},
    {"tick", "MS", 1, tick},
};

}  // namespace
const Table kBudgetProbes{kProbes, sizeof kProbes / sizeof kProbes[0]};
}  // namespace probe
