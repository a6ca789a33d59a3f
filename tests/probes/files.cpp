// Questions about paths, descriptors, mounts and inherited state.
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "probe.hpp"

extern char** environ;

namespace probe {
namespace {

int read_file(Arguments arguments) {
  const int fd = open(arguments[0], O_RDONLY | O_NONBLOCK);
  if (fd < 0) return refused();
  char byte = 0;
  const ssize_t got = read(fd, &byte, 1);
  if (got < 0) return refused();
  if (got == 0) return refused(ENODATA);  // it opens, but is empty
  return worked();
}

int write_file(Arguments arguments) {
  const int fd = open(arguments[0], O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (fd < 0) return refused();
  return answer(write(fd, "x", 1));
}

int rename_file(Arguments arguments) {
  return answer(rename(arguments[0], arguments[1]));
}
int remove_file(Arguments arguments) {
  return answer(unlink(arguments[0]));
}
int link_file(Arguments arguments) {
  return answer(link(arguments[0], arguments[1]));
}
int make_directory(Arguments arguments) {
  return answer(mkdir(arguments[0], 0755));
}
int change_mode(Arguments arguments) {
  return answer(chmod(arguments[0], static_cast<mode_t>(number(arguments[1]))));
}

int look(Arguments arguments) {
  struct stat facts{};
  return answer(lstat(arguments[0], &facts));
}

int list(Arguments arguments) {
  DIR* directory = opendir(arguments[0]);
  if (directory == nullptr) return refused();
  while (const dirent* entry = readdir(directory)) std::printf("%s\n", entry->d_name);
  return kWorked;
}

/// Lists every open descriptor except the one used for listing: number and target.
int list_descriptors(Arguments) {
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return refused();
  while (const dirent* entry = readdir(directory)) {
    const int fd = std::atoi(entry->d_name);
    if (entry->d_name[0] == '.' || fd == dirfd(directory)) continue;
    char target[PATH_MAX] = "";
    char name[64];
    std::snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    if (readlink(name, target, sizeof target - 1) < 0) return refused();
    std::printf("%d %s\n", fd, target);
  }
  return kWorked;
}

int list_environment(Arguments) {
  for (char** entry = environ; *entry != nullptr; ++entry) std::printf("%s\n", *entry);
  return kWorked;
}

int make_device(Arguments arguments) {
  return answer(mknod(arguments[0], S_IFCHR | 0666, makedev(1, 5)));
}
int mount_tmpfs(Arguments arguments) {
  return answer(mount("none", arguments[0], "tmpfs", 0, nullptr));
}
int unmount(Arguments arguments) {
  return answer(umount2(arguments[0], MNT_DETACH));
}
int remount_writable(Arguments arguments) {
  return answer(mount(nullptr, arguments[0], nullptr, MS_REMOUNT | MS_BIND, nullptr));
}

/// The classic escape: keep a descriptor of the old root, chroot below it, walk up from the
/// descriptor.
int leave_chroot(Arguments) {
  const int old_root = open("/", O_RDONLY | O_DIRECTORY);
  if (old_root < 0) return unasked("open /");
  char directory[] = "/tmp/probe-XXXXXX";
  if (mkdtemp(directory) == nullptr) return unasked("mkdtemp");
  const bool has_moved = chroot(directory) == 0;
  const int error = errno;
  unlinkat(old_root, directory + 1, AT_REMOVEDIR);  // outside of a sandbox it would stay
  if (!has_moved) return refused(error);
  if (fchdir(old_root) != 0) return refused();
  for (int i = 0; i < 64; ++i) {
    if (chdir("..") != 0) return refused();
  }
  return answer(chroot("."));
}

/// "worked" if something is above /: the root's parent is another directory, or the working
/// directory is outside of it.
int above_root(Arguments) {
  struct stat root{};
  struct stat parent{};
  if (stat("/", &root) != 0 || stat("/..", &parent) != 0) return unasked("stat");
  if (root.st_ino != parent.st_ino || root.st_dev != parent.st_dev) return worked();
  char directory[PATH_MAX];
  const long length =
      syscall(SYS_getcwd, directory, sizeof directory);  // glibc hides "(unreachable)"
  if (length < 0) return refused();
  return directory[0] == '/' ? refused(EXDEV) : worked();
}

int open_terminal(Arguments arguments) {
  const int fd = open(arguments[0], O_RDWR | O_NOCTTY);
  if (fd < 0) return refused();
  return worked();
}

constexpr Probe kProbes[] = {
    {"read", "FILE", 1, read_file},
    {"write", "FILE", 1, write_file},
    {"rename", "FROM TO", 2, rename_file},
    {"remove", "FILE", 1, remove_file},
    {"link", "FROM TO", 2, link_file},
    {"make-directory", "PATH", 1, make_directory},
    {"change-mode", "PATH MODE", 2, change_mode},
    {"look", "PATH", 1, look},
    {"list", "DIRECTORY", 1, list},
    {"descriptors", "", 0, list_descriptors},
    {"environment", "", 0, list_environment},
    {"make-device", "PATH", 1, make_device},
    {"mount", "DIRECTORY", 1, mount_tmpfs},
    {"unmount", "DIRECTORY", 1, unmount},
    {"remount", "DIRECTORY", 1, remount_writable},
    {"leave-chroot", "", 0, leave_chroot},
    {"above-root", "", 0, above_root},
    {"open-terminal", "PATH", 1, open_terminal},
};

}  // namespace
const Table kFileProbes{kProbes, sizeof kProbes / sizeof kProbes[0]};
}  // namespace probe
