#include "base/unwritable.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.hpp"

namespace sbx {

std::string cure_of_unwritable(const std::string& directory, int errno_value) {
  const std::string elsewhere = "name a directory that you can write to";
  switch (errno_value) {
    case ENOENT:
      return "make the directory first: mkdir -p " + shell_word(directory);
    case ENOTDIR:
      return "name a directory; a part of that path is a file";
    case EROFS:
      return "that file system is read-only: " + elsewhere;
    case ENOSPC:
    case EDQUOT:
      return "that file system is full: make room, or name a directory on another one";
    case EACCES:
    case EPERM: {
      // Only its owner can change a mode; what cannot be looked at is behind another directory.
      struct stat facts{};
      const bool own = ::stat(directory.c_str(), &facts) == 0 && facts.st_uid == ::geteuid() &&
                       facts.st_uid != 0;
      return own ? "chmod u+rwx " + shell_word(directory) + ", or " + elsewhere : elsewhere;
    }
    default:
      return elsewhere;
  }
}

}  // namespace sbx
