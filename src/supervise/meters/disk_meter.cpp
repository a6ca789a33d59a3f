#include "supervise/meters/disk_meter.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/beneath.hpp"
#include "base/entries.hpp"
#include "base/sys.hpp"

namespace sbx::supervise {
namespace {

constexpr std::uint64_t kNamesAtOnce = 1000;  // about a millisecond

std::uint64_t free_bytes(int directory) {
  struct statfs facts{};
  if (directory < 0 || ::fstatfs(directory, &facts) != 0) return 0;
  return facts.f_bfree * static_cast<std::uint64_t>(facts.f_bsize);
}

}  // namespace

/// A tmpfs without a limit reports 0 of 0.
Exhausted exhausted(const struct statfs& facts) {
  return {.blocks = facts.f_blocks > 0 && facts.f_bfree == 0,
          .names = facts.f_files > 0 && facts.f_ffree == 0};
}

Exhausted exhausted(int directory) {
  struct statfs facts{};
  return directory >= 0 && ::fstatfs(directory, &facts) == 0 ? exhausted(facts) : Exhausted{};
}

DiskMeter::DiskMeter(int directory)
    : directory_(directory), free_at_start_(free_bytes(directory)) {}

std::uint64_t DiskMeter::lost() const {
  const std::uint64_t now = free_bytes(directory_);
  return free_at_start_ > now ? free_at_start_ - now : 0;
}

bool DiskMeter::step() {
  if (directory_ < 0) return false;
  if (waiting_.empty()) {
    counting_bytes_ = counting_files_ = 0;
    closed_ = false;
    waiting_.emplace_back(".");
  }
  looked_ = 0;
  while (!waiting_.empty() && looked_ < kNamesAtOnce) {
    const std::string directory = std::move(waiting_.back());
    waiting_.pop_back();
    look_into(directory);
  }
  if (!waiting_.empty()) return false;
  bytes_ = closed_ ? std::max(counting_bytes_, lost()) : counting_bytes_;
  files_ = counting_files_;
  return true;
}

void DiskMeter::look_into(const std::string& directory) {
  const auto opened =
      sys::open_resolved(directory_, directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, kBeneath);
  if (!opened) {
    // The entry is gone or can't be opened; a path that is too long counts as the latter.
    closed_ = closed_ || opened.error().errno_value != ENOENT;
    return;
  }
  // What can't be read on is counted as far as it was read.
  (void)sys::read_entries<16'384>(opened->get(), [&](const dirent64& entry) {
    struct stat facts{};
    ++looked_;
    if (::fstatat(opened->get(), entry.d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0) return true;
    ++counting_files_;
    counting_bytes_ += static_cast<std::uint64_t>(facts.st_blocks) * 512 /
                       (S_ISDIR(facts.st_mode) ? 1 : std::max<nlink_t>(facts.st_nlink, 1));
    if (S_ISDIR(facts.st_mode)) waiting_.push_back(directory + "/" + entry.d_name);
    return true;
  });
}

}  // namespace sbx::supervise
