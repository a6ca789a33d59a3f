// Programs that use one kind of memory each, in one particular way and in a given amount, so that
// the same program also tests usage below the budget. They run only under sbx.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "amounts.hpp"
#include "probe.hpp"

namespace probe {
namespace {

/// Lets the kernel populate memory: the fastest way.
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

/// N MiB, then nothing for 200 ms, then M MiB more at full speed.
int hold_after_rest(Arguments arguments) {
  if (!populate(mebibytes(arguments[0]))) return refused();
  usleep(200'000);
  return hold_anonymous(arguments + 1);
}

/// COUNT children with N MiB each, in parallel: each ends when all of them hold theirs.
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
/// sum over processes far exceeds the real usage.
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
  usleep(200'000);  // time for polling
  for (std::size_t held = 0; held < mebibytes(arguments[2]); held += kStep)
    if (!populate(kStep)) return refused();
  close(go[1]);
  return wait_for_children();
}

/// N MiB of anonymous memory, which a vfork child shares until it execs.
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

/// Pages that are each a mapping of their own: changing the protection of all takes long, and
/// during that time nobody can write to the first one. They are fewer than vm.max_map_count and use
/// no memory but the kernel's for the mappings.
const auto kPage = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
constexpr std::size_t kMappings = 50'000;
const std::size_t kSlow = kMappings * kPage;
volatile bool changing = false;

void* change_slowly(void* addresses) {
  changing = true;
  mprotect(addresses, kSlow, PROT_READ | PROT_WRITE);
  return nullptr;
}

int become_holder(void* size) {
  char name[] = "hold-anonymous";
  char* const arguments[] = {name, name, static_cast<char*>(size), nullptr};
  execv("/proc/self/exe", arguments);
  return kRefused;
}

/// N MiB in a child that has its number long before it can be listed: in between, the kernel writes
/// its descriptor to a page that another thread keeps locked.
int hold_in_late_child(Arguments arguments) {
  void* const addresses =
      mmap(nullptr, kSlow, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (addresses == MAP_FAILED) return refused();
  for (std::size_t page = 1; page < kMappings; page += 2)
    if (mprotect(static_cast<char*>(addresses) + page * kPage, kPage, PROT_READ) != 0)
      return refused();
  pthread_t thread;
  if (pthread_create(&thread, nullptr, change_slowly, addresses) != 0) return unasked("a thread");
  while (!changing) {
  }
  usleep(1000);  // the child has begun
  static char stack[65536];
  const pid_t child = clone(become_holder, stack + sizeof stack, CLONE_VM | CLONE_PIDFD | SIGCHLD,
                            arguments[0], addresses);
  if (child < 0) return refused();
  pthread_join(thread, nullptr);
  return wait_for_children();
}

void* hold_in_thread(void* arguments) {
  std::exit(hold_anonymous(static_cast<Arguments>(arguments)));
}

/// N MiB in a thread after the first thread has exited: /proc shows the first thread's memory as
/// that of the process.
int hold_without_first(Arguments arguments) {
  pthread_t thread;
  if (pthread_create(&thread, nullptr, hold_in_thread, arguments) != 0)
    return unasked("pthread_create");
  pthread_exit(nullptr);
}

/// N MiB in a memfd.
int hold_memfd(Arguments arguments) {
  const int fd = memfd_create("probe", MFD_CLOEXEC);
  if (fd < 0) return refused();
  return answer(write_fully(fd, mebibytes(arguments[0])));
}

/// N MiB of System V shared memory, detached again: no process maps it.
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

/// N MiB of page tables, for memory that is read at one address per page of tables and uses no
/// pages.
int hold_page_tables(Arguments arguments) {
  constexpr std::size_t kRegion = 1024 * kMiB;
  const std::size_t reached = kPage / 8 * kPage;  // covered by one page of tables
  const std::size_t pages = mebibytes(arguments[0]) / kPage;
  const char* region = nullptr;
  for (std::size_t held = 0; held < pages; ++held) {
    const std::size_t at = held * reached % kRegion;
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

/// N MiB of shared memory, of which 4 MiB are mapped at a time: the rest persists, resident in no
/// process.
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

/// A file of N MiB, of which M are mapped, and K MiB of memory that COUNT children share with this
/// process, within a far larger untouched mapping; for 300 ms.
int hold_beside_file(Arguments arguments) {
  constexpr std::size_t kUntouched = 65536 * kMiB;
  constexpr int kAccess = PROT_READ | PROT_WRITE;
  const std::size_t mapped = mebibytes(arguments[2]);
  const std::size_t size = mebibytes(arguments[3]);
  const int file = open(arguments[0], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0 || write_fully(file, mebibytes(arguments[1])) != 0) return refused();
  if (mapped > 0 &&
      mmap(nullptr, mapped, kAccess, MAP_SHARED | MAP_POPULATE, file, 0) == MAP_FAILED)
    return refused();
  void* const memory =
      mmap(nullptr, kUntouched, kAccess, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return refused();
  long children = number(arguments[4]);
  while (children > 0 && fork() > 0) --children;
  std::memset(static_cast<char*>(memory) + kUntouched / 2, 1, size);
  usleep(300'000);
  return wait_for_children();
}

/// N MiB in System V semaphores, of 64 bytes each.
int hold_semaphores(Arguments arguments) {
  constexpr std::size_t kInSet = 32000;  // the kernel's default maximum
  const std::size_t size = mebibytes(arguments[0]);
  for (std::size_t held = 0; held < size; held += kInSet * 64)
    if (semget(IPC_PRIVATE, kInSet, 0600) < 0) return refused();
  return worked();
}

/// N MiB in System V message queues.
int hold_messages(Arguments arguments) {
  constexpr std::size_t kMessage = 8192;  // the kernel's default maximum
  struct {
    long type;
    char text[kMessage];
  } message{1, {}};
  const std::size_t size = mebibytes(arguments[0]);
  for (std::size_t held = 0; held < size; held += 2 * kMessage) {  // two messages fill a queue
    const int queue = msgget(IPC_PRIVATE, 0600);
    if (queue < 0) return refused();
    for (int i = 0; i < 2; ++i)
      if (msgsnd(queue, &message, kMessage, IPC_NOWAIT) != 0) return refused();
  }
  return worked();
}

/// Fills the kernel's buffers of one pair of descriptors; returns the number of bytes accepted.
std::size_t fill_buffers(const int (&ends)[2]) {
  std::size_t taken = 0;
  for (const int end : ends) {
    fcntl(end, F_SETFL, O_NONBLOCK);
    ssize_t wrote = write(end, block, 65536);
    for (; wrote > 0; wrote = write(end, block, 65536)) taken += static_cast<std::size_t>(wrote);
  }
  return taken;
}

bool connect_on_loopback(int type, int (&ends)[2]) {
  const int server = socket(AF_INET, type, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  ends[1] = type == SOCK_STREAM ? -1 : server;
  ends[0] = socket(AF_INET, type, 0);
  const bool connected = server >= 0 && ends[0] >= 0 && bind(server, generic, size) == 0 &&
                         (type != SOCK_STREAM || listen(server, 1) == 0) &&
                         getsockname(server, generic, &size) == 0 &&
                         connect(ends[0], generic, size) == 0 &&
                         (type != SOCK_STREAM || (ends[1] = accept(server, nullptr, nullptr)) >= 0);
  if (type == SOCK_STREAM) close(server);
  if (!connected) close(ends[0]);
  return connected;
}

/// The sender isn't told when a datagram finds no room, so it sends enough to be sure to fill the
/// buffer.
std::size_t fill_with_datagrams(const int (&ends)[2]) {
  int room = kMiB;
  socklen_t size = sizeof room;
  setsockopt(ends[1], SOL_SOCKET, SO_RCVBUF, &room, size);
  getsockopt(ends[1], SOL_SOCKET, SO_RCVBUF, &room, &size);
  for (int sent = 0; sent < room; sent += 8192)
    if (write(ends[0], block, 8192) < 0) return 0;
  return static_cast<std::size_t>(room) / 2;
}

bool make_ends(const char* kind, int (&ends)[2]) {
  if (std::strcmp(kind, "pipes") == 0) return pipe(ends) == 0;
  if (std::strcmp(kind, "tcp") == 0) return connect_on_loopback(SOCK_STREAM, ends);
  if (std::strcmp(kind, "udp") == 0) return connect_on_loopback(SOCK_DGRAM, ends);
  const int type = std::strcmp(kind, "datagrams") == 0 ? SOCK_DGRAM : SOCK_STREAM;
  return socketpair(AF_UNIX, type, 0, ends) == 0;
}

/// N MiB in buffers that nobody reads: of unix sockets ("sockets", "datagrams"; with "closed" the
/// senders are closed), of "tcp" and "udp" on the loopback interface, or of "pipes"; "stay" keeps
/// them. Uses as many children as the limit of open files requires.
int hold_buffers(Arguments arguments) {
  const char* const kind = arguments[0];
  bool closes = false;
  bool stays = false;
  for (Arguments word = arguments + 2; *word != nullptr; ++word) {
    closes = closes || std::strcmp(*word, "closed") == 0;
    stays = stays || std::strcmp(*word, "stay") == 0;
  }
  const std::size_t size = mebibytes(arguments[1]);
  signal(SIGPIPE, SIG_IGN);
  std::size_t held = 0;
  while (held < size) {
    int ends[2];
    if (!make_ends(kind, ends)) {
      if (errno != EMFILE) return refused();
      // The descriptor table is full: a child continues with its own, this process keeps what it
      // has.
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
    if (std::strcmp(kind, "pipes") == 0)
      fcntl(ends[1], F_SETPIPE_SZ, kMiB);  // beyond the user's share it fails: then 64 KiB
    held += std::strcmp(kind, "udp") == 0 ? fill_with_datagrams(ends) : fill_buffers(ends);
    if (closes) close(ends[0]);
  }
  if (stays) pause();
  return worked();
}

constexpr Probe kProbes[] = {
    {"hold-anonymous", "MIB", 1, hold_anonymous},
    {"hold-after-rest", "MIB MIB", 2, hold_after_rest},
    {"hold-children", "COUNT MIB", 2, hold_in_children},
    {"hold-after-forks", "COUNT MIB MIB", 3, hold_after_forks},
    {"hold-with-borrower", "MIB", 1, hold_with_borrower},
    {"hold-in-late-child", "MIB", 1, hold_in_late_child},
    {"hold-without-first", "MIB", 1, hold_without_first},
    {"hold-memfd", "MIB", 1, hold_memfd},
    {"hold-sysv", "MIB", 1, hold_sysv},
    {"hold-page-tables", "MIB", 1, hold_page_tables},
    {"hold-given-up", "MIB", 1, hold_given_up},
    {"hold-beside-file", "FILE MIB MIB MIB COUNT", 5, hold_beside_file},
    {"hold-semaphores", "MIB", 1, hold_semaphores},
    {"hold-messages", "MIB", 1, hold_messages},
    {"hold-buffers", "sockets|datagrams|tcp|udp|pipes MIB [closed] [stay]", 2, hold_buffers},
};

}  // namespace
const Table kMemoryProbes{kProbes, sizeof kProbes / sizeof kProbes[0]};
}  // namespace probe
