// Programs that fill a disk in one particular way each, by a given amount, so that the same program
// also tests usage below the budget. They run only under sbx.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "amounts.hpp"
#include "probe.hpp"

namespace probe {
namespace {

/// N MiB in unlinked files of a directory.
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

/// COUNT empty files in a directory.
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

/// A sparse file of N bytes.
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

/// Writes N MiB to a file from a thread after the first thread has exited: then only root can read
/// its count.
int fill_without_first(Arguments arguments) {
  pthread_t thread;
  if (pthread_create(&thread, nullptr, fill_in_thread, arguments) != 0)
    return unasked("pthread_create");
  pthread_exit(nullptr);
}

/// Writes N MiB to new files of a directory, from COUNT processes in succession.
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

// ---- ways to write one file, some of which a process's own count includes ----

bool by_write(int fd, std::size_t size) {
  return write_fully(fd, size) == 0;
}

bool by_mapping(int fd, std::size_t size) {
  if (ftruncate(fd, static_cast<off_t>(size)) != 0) return false;
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return false;
  std::memset(memory, 1, size);
  return true;
}

/// The kernel touches the pages by itself.
bool by_populating(int fd, std::size_t size) {
  if (ftruncate(fd, static_cast<off_t>(size)) != 0) return false;
  return mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0) !=
         MAP_FAILED;
}

bool by_setting_aside(int fd, std::size_t size) {
  return fallocate(fd, 0, 0, static_cast<off_t>(size)) == 0;
}

/// A source file of one MiB in another place.
int mebibyte_to_copy() {
  const int from = open("/tmp", O_TMPFILE | O_RDWR, 0600);
  return from >= 0 && write_fully(from, kMiB) == 0 ? from : -1;
}

/// From file to pipe to file: no byte passes through the process.
bool by_splicing(int fd, std::size_t size) {
  const int from = mebibyte_to_copy();
  int ends[2];
  if (from < 0 || pipe(ends) != 0) return false;
  for (std::size_t done = 0; done < size;) {
    off_t place = 0;
    ssize_t in_pipe = splice(from, &place, ends[1], nullptr, 65536, 0);
    if (in_pipe <= 0) return false;
    while (in_pipe > 0) {
      const ssize_t moved =
          splice(ends[0], nullptr, fd, nullptr, static_cast<std::size_t>(in_pipe), 0);
      if (moved <= 0) return false;
      in_pipe -= moved;
      done += static_cast<std::size_t>(moved);
    }
  }
  return true;
}

bool by_sending(int fd, std::size_t size) {
  const int from = mebibyte_to_copy();
  for (std::size_t done = 0; done < size;) {
    off_t place = 0;
    const ssize_t sent = sendfile(fd, from, &place, kMiB);
    if (sent <= 0) return false;
    done += static_cast<std::size_t>(sent);
  }
  return true;
}

/// From the file itself to beyond its end.
bool by_copying(int fd, std::size_t size) {
  if (write_fully(fd, kMiB) != 0) return false;
  for (std::size_t done = kMiB; done < size;) {
    loff_t from = 0;
    auto to = static_cast<loff_t>(done);
    const ssize_t copied = copy_file_range(fd, &from, fd, &to, kMiB, 0);
    if (copied <= 0) return false;
    done += static_cast<std::size_t>(copied);
  }
  return true;
}

/// A process for each MiB, never reaped.
bool by_children(int fd, std::size_t size) {
  signal(SIGCHLD, SIG_IGN);
  for (std::size_t done = 0; done < size; done += kMiB) {
    const pid_t child = fork();
    if (child < 0) return false;
    if (child == 0) _exit(write_fully(fd, kMiB) == 0 ? 0 : 1);
    waitpid(child, nullptr, 0);  // returns ECHILD once the child is gone
  }
  errno = 0;
  return true;
}

/// The same bytes again and again: the file stays at one MiB.
bool by_overwriting(int fd, std::size_t size) {
  for (std::size_t done = 0; done < size; done += kMiB)
    if (lseek(fd, 0, SEEK_SET) != 0 || write_fully(fd, kMiB) != 0) return false;
  return true;
}

/// 32 KiB each: on a tmpfs they count neither as content nor as files.
bool by_attributes(int fd, std::size_t size) {
  constexpr std::size_t kValue = 32 * 1024;
  for (std::size_t done = 0; done < size; done += kValue) {
    char name[64];
    std::snprintf(name, sizeof name, "user.%zu", done / kValue);
    if (fsetxattr(fd, name, block, kValue, 0) != 0) return false;
  }
  return true;
}

struct Way {
  const char* name;
  bool (*fill)(int fd, std::size_t size);
};
constexpr Way kWays[] = {
    {"write", by_write},
    {"map", by_mapping},
    {"populate", by_populating},
    {"splice", by_splicing},
    {"set-aside", by_setting_aside},
    {"send", by_sending},
    {"copy", by_copying},
    {"children", by_children},
    {"overwrite", by_overwriting},
    {"attributes", by_attributes},
};

/// Writes N MiB to a file of a directory in one of these ways; "nameless": to an unnamed file;
/// "stay": keeps it afterwards.
int fill_in_a_way(Arguments arguments) {
  const Way* way = kWays;
  while (way != std::end(kWays) && std::strcmp(way->name, arguments[0]) != 0) ++way;
  if (way == std::end(kWays)) return unasked(arguments[0]);
  bool nameless = false;
  bool stay = false;
  for (Arguments word = arguments + 3; *word != nullptr; ++word) {
    nameless = nameless || std::strcmp(*word, "nameless") == 0;
    stay = stay || std::strcmp(*word, "stay") == 0;
  }
  char name[256];
  std::snprintf(name, sizeof name, "%s/%s", arguments[1], way->name);
  const int fd = open(name, O_CREAT | O_RDWR, 0600);
  if (fd < 0 || (nameless && unlink(name) != 0)) return refused();
  if (!way->fill(fd, mebibytes(arguments[2]))) return refused();
  while (stay) pause();
  return worked();
}

constexpr Probe kProbes[] = {
    {"fill-nameless", "DIRECTORY MIB", 2, fill_without_names},
    {"fill-by", "WAY DIRECTORY MIB [nameless] [stay]", 3, fill_in_a_way},
    {"fill-without-first", "FILE MIB", 2, fill_without_first},
    {"make-files", "DIRECTORY COUNT", 2, make_files},
    {"make-sparse", "FILE BYTES [ignore]", 2, make_sparse},
    {"write-children", "DIRECTORY COUNT MIB", 3, write_from_children},
};

}  // namespace
const Table kDiskProbes{kProbes, sizeof kProbes / sizeof kProbes[0]};
}  // namespace probe
