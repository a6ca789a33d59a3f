#include "supervise/meters/full_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <memory>
#include <string_view>
#include <utility>

#include "base/unique_fd.hpp"

namespace sbx::supervise {
namespace {

constexpr int kDeepest = 16;
constexpr int kMostEntries = 4096;
constexpr std::int64_t kNanoseconds = 1'000'000'000;

class Search {
 public:
  explicit Search(std::uint64_t size) : size_(size) {}

  void below(int at, const char* name, int depth) {
    UniqueFd fd(::openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd.valid()) return;  // as it will be the next time
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(::fdopendir(fd.get()), &::closedir);
    if (!directory) return;
    (void)fd.release();
    while (const dirent* const entry = ::readdir(directory.get())) {
      if (++entries_ > kMostEntries) return give_up();
      const std::string_view each(entry->d_name);
      if (each == "." || each == "..") continue;
      struct stat facts{};
      if (::fstatat(::dirfd(directory.get()), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0)
        continue;
      if (S_ISREG(facts.st_mode) && static_cast<std::uint64_t>(facts.st_size) == size_)
        found_.files.push_back(
            {.device = facts.st_dev,
             .inode = facts.st_ino,
             .modified = facts.st_mtim.tv_sec * kNanoseconds + facts.st_mtim.tv_nsec});
      if (!S_ISDIR(facts.st_mode)) continue;
      if (depth < kDeepest)
        below(::dirfd(directory.get()), entry->d_name, depth + 1);
      else
        give_up();
    }
  }

  [[nodiscard]] FullFiles take() { return std::move(found_); }

 private:
  void give_up() { found_.complete = false; }

  std::uint64_t size_;
  int entries_ = 0;
  FullFiles found_;
};

}  // namespace

FullFiles files_of_size(int directory, std::uint64_t size) {
  Search search(size);
  search.below(directory, ".", 0);
  return search.take();
}

FullFiles files_of_size_on_disk(int disk, std::uint64_t size) {
  struct statfs facts{};
  if (disk < 0 || size == 0 || ::fstatfs(disk, &facts) != 0) return {};
  const auto block = static_cast<std::uint64_t>(facts.f_bsize);
  const std::uint64_t used = (facts.f_blocks - facts.f_bfree) * block;
  return used < size ? FullFiles{} : files_of_size(disk, size);
}

}  // namespace sbx::supervise
