#include "supervise/meters/full_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <memory>
#include <string_view>

#include "base/unique_fd.hpp"

namespace sbx::supervise {
namespace {

constexpr int kDeepest = 16;
constexpr int kMostEntries = 4096;

class Search {
 public:
  explicit Search(std::uint64_t size) : size_(size) {}

  bool below(int at, const char* name, int depth) {
    UniqueFd fd(::openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd.valid()) return false;
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(::fdopendir(fd.get()), &::closedir);
    if (!directory) return false;
    (void)fd.release();
    while (const dirent* const entry = ::readdir(directory.get())) {
      if (++entries_ > kMostEntries) return false;
      const std::string_view each(entry->d_name);
      if (each == "." || each == "..") continue;
      struct stat facts{};
      if (::fstatat(::dirfd(directory.get()), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0)
        continue;
      if (S_ISREG(facts.st_mode) && static_cast<std::uint64_t>(facts.st_size) == size_) return true;
      if (S_ISDIR(facts.st_mode) && depth < kDeepest &&
          below(::dirfd(directory.get()), entry->d_name, depth + 1))
        return true;
    }
    return false;
  }

 private:
  std::uint64_t size_;
  int entries_ = 0;
};

}  // namespace

bool has_file_of_size(int directory, std::uint64_t size) {
  return Search(size).below(directory, ".", 0);
}

}  // namespace sbx::supervise
