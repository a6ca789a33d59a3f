#include "supervise/meters/entry_meter.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/beneath.hpp"
#include "base/entries.hpp"
#include "base/sys.hpp"

namespace sbx::supervise {
namespace {

constexpr std::uint64_t kAtOnce = 4000;      // names, about a millisecond
constexpr std::uint64_t kOfADirectory = 20;  // opening one takes as long as this many names
constexpr unsigned kWalksToBeSure = 8;
constexpr int kHow = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;

bool names_directory(int holder, const dirent64& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat facts{};
  return ::fstatat(holder, entry.d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(facts.st_mode);
}

}  // namespace

EntryMeter::EntryMeter(std::vector<std::string> directories) {
  std::ranges::sort(directories, {}, &std::string::size);
  for (std::string& path : directories) {
    // A grant inside another is walked with it, unless something is mounted between them.
    const bool is_covered = std::ranges::any_of(tops_, [&](const Top& top) {
      if (!path.starts_with(top.path + "/") && path != top.path) return false;
      const std::string below = "./" + path.substr(std::min(path.size(), top.path.size() + 1));
      return sys::open_resolved(top.directory.get(), below, kHow, kBeneath).has_value();
    });
    if (is_covered) continue;
    auto opened =
        sys::open_resolved(AT_FDCWD, path, kHow, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    if (opened) tops_.push_back({std::move(*opened), std::move(path)});
  }
  walk(UINT64_MAX);
  has_begun_ = true;
  at_start_ = counting_;
  made_ = 0;
}

void EntryMeter::begin(std::uint64_t most) {
  walks_ = true;
  enough_ = most > UINT64_MAX - at_start_ ? UINT64_MAX : at_start_ + most;
  counting_ = 0;
  closing_.clear();
  for (std::size_t i = 0; i < tops_.size(); ++i) waiting_.push_back({i, "."});
}

bool EntryMeter::step(std::uint64_t most) {
  if (!walks_) begin(most);
  looked_ = 0;
  while (!waiting_.empty() && looked_ < kAtOnce && counting_ <= enough_) {
    const CountedDirectory place = std::move(waiting_.back());
    waiting_.pop_back();
    look_into(place);
  }
  if (!waiting_.empty() && counting_ <= enough_) return false;
  complete();
  return true;
}

void EntryMeter::walk(std::uint64_t most) {
  waiting_.clear();
  walks_ = false;
  while (!step(most)) {
  }
}

void EntryMeter::complete() {
  walks_ = false;
  waiting_.clear();
  made_ = counting_ - std::min(counting_, at_start_);
  refused_ = closing_.empty() ? 0 : refused_ + 1;
  if (refused_ >= kWalksToBeSure) closed_ = closing_;
}

void EntryMeter::note_closed(const CountedDirectory& place) {
  const Top& top = tops_[place.top];
  std::string path = place.path == "." ? top.path : top.path + place.path.substr(1);
  // The first count only remembers it: such a directory of the caller's is hidden in the sandbox.
  if (!has_begun_) return closed_at_start_.push_back(std::move(path));
  if (closing_.empty() && std::ranges::find(closed_at_start_, path) == closed_at_start_.end())
    closing_ = std::move(path);
}

void EntryMeter::look_into(const CountedDirectory& place) {
  looked_ += kOfADirectory;
  const auto opened =
      sys::open_resolved(tops_[place.top].directory.get(), place.path, kHow, kBeneath);
  if (!opened) {
    const int error = opened.error().errno_value;
    // These errors mean gone, replaced or covered by a mount; others mean unreadable, or too long a
    // path.
    if (error != ENOENT && error != ENOTDIR && error != ELOOP && error != EXDEV) note_closed(place);
    return;
  }
  // What can't be read on is counted as far as it was read.
  (void)sys::read_entries<32'768>(opened->get(), [&](const dirent64& entry) {
    ++looked_;
    ++counting_;
    if (names_directory(opened->get(), entry))
      waiting_.push_back({place.top, place.path + "/" + entry.d_name});
    return counting_ <= enough_;
  });
}

}  // namespace sbx::supervise
