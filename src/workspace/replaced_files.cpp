#include "workspace/replaced_files.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>

namespace sbx::workspace {
namespace {

constexpr std::uint64_t kMostFiles = 16'384;  // an inode in memory each: 20 MB of the kernel's
constexpr std::uint64_t kMostBytes = 64 << 20;
constexpr std::uint64_t kOthers = 64;  // descriptors that everything else has need of
constexpr std::size_t kThreads = 32;   // they wait for the disk, not for a CPU
constexpr std::size_t kPerThread = 64;
constexpr std::uint64_t kStoredBlock = 512;  // the unit of st_blocks

struct Work {
  std::vector<UniqueFd>& files;
  std::atomic<std::size_t> next = 0;
};

void* close_some(void* argument) {
  auto& work = *static_cast<Work*>(argument);
  for (std::size_t at = work.next++; at < work.files.size(); at = work.next++)
    work.files[at].reset();
  return nullptr;
}

}  // namespace

ReplacedFiles::ReplacedFiles() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  limit_before_ = files.rlim_cur;
  files.rlim_cur = std::max(files.rlim_cur, std::min<rlim_t>(files.rlim_max, kMostFiles + kOthers));
  (void)::setrlimit(RLIMIT_NOFILE, &files);  // fewer at a time then
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > kOthers)
    most_files_ = std::min<std::uint64_t>(kMostFiles, files.rlim_cur - kOthers);
}

ReplacedFiles::~ReplacedFiles() {
  (void)free_all();
  rlimit files{};
  if (limit_before_ == 0 || ::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = limit_before_;
  (void)::setrlimit(RLIMIT_NOFILE, &files);  // lower than it is: never refused
}

void ReplacedFiles::keep(int directory, const std::string& name, const struct stat& facts) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(facts.st_blocks) * kStoredBlock;
  if (facts.st_nlink > 1 || S_ISDIR(facts.st_mode) || bytes > kMostBytes) return;
  if (files_.size() >= most_files_ || bytes > kMostBytes - bytes_) (void)free_all();
  if (most_files_ == 0) return;
  UniqueFd file(::openat(directory, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!file.valid()) return;
  files_.push_back(std::move(file));
  bytes_ += bytes;
}

bool ReplacedFiles::free_all() {
  if (files_.empty()) return false;
  Work work{.files = files_};
  std::array<pthread_t, kThreads> helpers{};
  std::size_t started = 0;
  const std::size_t wanted = std::min(kThreads, files_.size() / kPerThread);
  while (started < wanted &&
         ::pthread_create(&helpers.at(started), nullptr, close_some, &work) == 0)
    ++started;
  close_some(&work);
  for (std::size_t i = 0; i < started; ++i) ::pthread_join(helpers.at(i), nullptr);
  files_.clear();
  bytes_ = 0;
  return true;
}

}  // namespace sbx::workspace
