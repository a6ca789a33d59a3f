#include "run/own_disk.hpp"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "base/sys.hpp"
#include "base/text.hpp"
#include "run/settings.hpp"
#include "workspace/private_places.hpp"
#include "workspace/tree.hpp"

namespace sbx::run {
namespace {

bool hides_names_in_overlays(const plan::Plan& plan) {
  return std::ranges::any_of(plan.mounts, [](const plan::Mount& mount) {
    const auto* overlay = mount.as<plan::mount::Overlay>();
    return overlay != nullptr && !overlay->veils.empty();
  });
}

constexpr mode_t kMask = 022;

/// A disk that is a directory of the machine is full for another reason than limits.disk.
Status with_cure(Status done, std::string_view place) {
  if (!done && (done.error().errno_value == ENOSPC || done.error().errno_value == EDQUOT))
    done.error().hint = "make room in " + printable(place);
  return done;
}

/// Waits until file systems stamp with a later time than anything that was written before, and
/// returns that time. They stamp with the coarse clock, which moves on every 1 to 10 ms, and since
/// Linux 6.13 also with the fine one, which is ahead of it, time(7), clock_gettime(2).
timespec later_stamp() {
  timespec before{};
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &before);
  do {
    sys::sleep_1ms();
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  } while (std::pair(now.tv_sec, now.tv_nsec) <= std::pair(before.tv_sec, before.tv_nsec));
  return now;
}

}  // namespace

Status OwnDisk::prepare(const plan::Plan& plan, const spawn::MappedIdentity& identity,
                        const std::string& state, const Copied& hears,
                        std::function<bool()> is_cancelled) {
  is_cancelled_ = std::move(is_cancelled);
  const sys::FileModeMask mask(kMask);
  if (!plan.private_directory.empty()) {
    if (plan.lends_shared_memory)
      memory_ = SBX_TRY(workspace::SharedMemory::take(identity.uid_on_host));
    disk_.make = [&] { return with_cure(make_private(plan, identity, hears), "/tmp"); };
    return {};
  }
  if (has_writable(plan, plan::MountKind::copy))
    disk_.fill = [&](int scratch) {
      const sys::FileModeMask filling(kMask);
      auto done = workspace::fill_copies(plan, scratch, identity.uid_on_host, identity.gid_on_host,
                                         copied_, left_, hears, is_cancelled_);
      filled_ = later_stamp();
      return directory_ == nullptr ? done : with_cure(std::move(done), directory_->path());
    };
  if (!plan.disk_in_directory) return {};
  directory_ = std::make_unique<workspace::DiskDirectory>(
      SBX_TRY(workspace::DiskDirectory::make(state, identity.uid_on_host, identity.gid_on_host)));
  if (!directory_->takes_overlays() && has_writable(plan, plan::MountKind::overlay))
    return fail(
        Error{.kind = ErrorKind::setup,
              .code = "no-overlay",
              .message = "the file system of '" + state + "' can't hold what an overlay writes",
              .retry = Retry::with_copies});
  if (!directory_->takes_whiteouts() && hides_names_in_overlays(plan))
    return fail(
        Error{.kind = ErrorKind::setup,
              .code = "no-whiteouts",
              .message = "the file system of '" + state + "' can't hold what hides denied names",
              .retry = Retry::disk_in_memory});
  place_ = {directory_->path(), directory_->device(), directory_->inode()};
  disk_.directory = &place_;
  disk_.cloned = [this](pid_t pid) { directory_->note_init(pid); };
  return {};
}

/// For a program that is not there yet. What dead runs have left goes first: it may take the room.
Status OwnDisk::make_private(const plan::Plan& plan, const spawn::MappedIdentity& identity,
                             const Copied& hears) {
  const sys::FileModeMask mask(kMask);
  workspace::sweep_private_directories([this](uid_t died) { return memory_.clear_after(died); });
  const uid_t uid = identity.uid_on_host;
  const gid_t gid = identity.gid_on_host;
  directory_ = std::make_unique<workspace::DiskDirectory>(
      SBX_TRY(workspace::DiskDirectory::make_private(plan.private_directory, uid, gid)));
  files_ = SBX_TRY(sys::open_at(AT_FDCWD, directory_->path(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  SBX_TRY(workspace::make_private_places(plan, files_.get(), uid, gid));
  if (!has_writable(plan, plan::MountKind::copy)) return {};
  SBX_TRY(
      workspace::fill_copies(plan, files_.get(), uid, gid, copied_, left_, hears, is_cancelled_));
  filled_ = later_stamp();
  return {};
}

void OwnDisk::tell(std::vector<Degraded>& degraded) const {
  for (const workspace::Left& each : left_)
    degraded.push_back({.promise = Promise::workspace_mode,
                        .why = each.path + ": " + each.why,
                        .instead = "it is not in the copy"});
}

void OwnDisk::describe(workspace::Copy& copy) const {
  copy.filled = filled_;
  for (workspace::Layer& layer : copy.layers) {
    const auto found = copied_.find(
        layer.prefix == "." ? copy.directory : workspace::join(copy.directory, layer.prefix));
    if (found != copied_.end()) layer.copied = found->second;
  }
}

void OwnDisk::hand_to(workspace::Copy& copy) {
  copy.disk = std::move(directory_);
  describe(copy);
}

}  // namespace sbx::run
