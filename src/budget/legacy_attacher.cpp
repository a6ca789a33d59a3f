#include "budget/legacy_attacher.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/sys.hpp"
#include "budget/files.hpp"
#include "budget/legacy_messages.hpp"
#include "budget/owned_folder.hpp"
#include "host/parse.hpp"

namespace sbx::budget {
namespace {

/// Beyond this a limit of cgroup v1 is none: it is written as the largest number of pages.
constexpr std::uint64_t kNoMemoryLimit = std::uint64_t{1} << 62;
constexpr std::size_t kMountTable = std::size_t{4} << 20;

/// Calls back for each group from the own one up to the mounted one.
template <class Look>
void upwards(const std::optional<Place>& place, Look look) {
  if (!place) return;
  for (std::string folder = place->folder(); folder.size() >= place->mount.size();
       folder.resize(folder.rfind('/'))) {
    look(folder);
    if (folder.size() == place->mount.size()) break;
  }
}

void copy_text(std::string_view text, char* room, std::size_t size) {
  const std::size_t length = std::min(text.size(), size - 1);
  std::memcpy(room, text.data(), length);
  room[length] = '\0';
}

class Attacher {
 public:
  explicit Attacher(int channel) : channel_(channel) {}

  void run() {
    make_groups();
    if (!send_groups() || folders_.empty()) return;
    // The grace period that this waits for is the one that PID 1 need not.
    const std::string& first = folders_.front().path();
    (void)write_text(AT_FDCWD, first + "/cgroup.procs", "0");
    Attach order{};
    if (receive(order)) {
      const Attached answer{attach(order.process)};
      if (::send(channel_, &answer, sizeof answer, MSG_NOSIGNAL) == sizeof answer) {
        for (OwnedFolder& folder : folders_) ::close(folder.release());
        return;
      }
    }
    // The supervisor is gone, or needs no groups: they go as well, and this process stands in one.
    (void)write_text(AT_FDCWD, first.substr(0, first.rfind('/')) + "/cgroup.procs", "0");
  }

 private:
  void make_groups() {
    const auto own = sys::read_file("/proc/self/cgroup", kMountTable);
    const auto mounts = sys::read_file("/proc/self/mountinfo", kMountTable);
    if (!own || !mounts) return note("/proc can't be read");
    const Hierarchies found = find_hierarchies(*own, host::mounts_in(*mounts));
    const std::optional<Place>* const places[] = {&found.memory, &found.pids, &found.cpu,
                                                  &found.cpuacct};
    const std::string name = unique_name();
    for (std::size_t i = 0; i < kControllers; ++i)
      if (*places[i]) make_group(i, **places[i], name);
    const host::ControlGroup::Granted granted = granted_by_legacy(found);
    made_.has_memory_granted = granted.memory_bytes.has_value();
    made_.memory_granted = granted.memory_bytes.value_or(0);
    made_.has_processes_granted = granted.processes.has_value();
    made_.processes_granted = granted.processes.value_or(0);
    made_.has_cpus_granted = granted.cpus.has_value();
    made_.cpus_granted = granted.cpus.value_or(0);
  }

  /// cpu and cpuacct are one hierarchy on most machines: then they share the folder.
  void make_group(std::size_t controller, const Place& place, const std::string& name) {
    const std::string path = place.folder() + "/" + name;
    const auto same = std::ranges::find(folders_, path, &OwnedFolder::path);
    if (same != folders_.end()) return take(controller, *same);
    sweep(place.folder());
    auto folder = OwnedFolder::make(place.folder(), name);
    if (!folder) return note(folder.error().text());
    folders_.push_back(std::move(*folder));
    take(controller, folders_.back());
  }

  void take(std::size_t controller, const OwnedFolder& folder) {
    made_.made[controller] = true;
    copy_text(folder.path(), made_.paths[controller].data(), made_.paths[controller].size());
    fds_[controller] = folder.fd();
  }

  void note(std::string_view why) {
    if (made_.why[0] == '\0') copy_text(why, made_.why.data(), made_.why.size());
  }

  bool send_groups() {
    std::array<int, kControllers> fds{};
    std::size_t count = 0;
    for (std::size_t i = 0; i < kControllers; ++i)
      if (made_.made[i]) fds[count++] = fds_[i];
    iovec body{&made_, sizeof made_};
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof fds)] = {};
    msghdr message{};
    message.msg_iov = &body;
    message.msg_iovlen = 1;
    if (count > 0) {
      message.msg_control = space;
      message.msg_controllen = CMSG_SPACE(count * sizeof(int));
      cmsghdr* const rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(count * sizeof(int));
      std::memcpy(CMSG_DATA(rights), fds.data(), count * sizeof(int));
    }
    return ::sendmsg(channel_, &message, MSG_NOSIGNAL) == sizeof made_;
  }

  bool receive(Attach& order) const {
    ssize_t got = ::recv(channel_, &order, sizeof order, 0);
    while (got < 0 && errno == EINTR) got = ::recv(channel_, &order, sizeof order, 0);
    return got == sizeof order;
  }

  int attach(pid_t process) const {
    const std::string number = std::to_string(process);
    for (const OwnedFolder& folder : folders_)
      if (const Status written = write_text(folder.fd(), "cgroup.procs", number); !written)
        return written.error().errno_value;
    return 0;
  }

  int channel_;
  GroupsMade made_;
  std::array<int, kControllers> fds_{};
  std::vector<OwnedFolder> folders_;
};

/// Nothing of the supervisor's may stay open here, its standard streams least of all.
void keep_only(int channel) {
  const auto kept = static_cast<unsigned>(channel);
  if (kept > 0) ::syscall(SYS_close_range, 0U, kept - 1, 0);
  ::syscall(SYS_close_range, kept + 1, ~0U, 0);
}

}  // namespace

host::ControlGroup::Granted granted_by_legacy(const Hierarchies& hierarchies) {
  host::ControlGroup::Granted granted;
  upwards(hierarchies.memory, [&](const std::string& folder) {
    auto limit = read_number(AT_FDCWD, folder + "/memory.limit_in_bytes");
    if (limit && *limit >= kNoMemoryLimit) limit.reset();
    lower_to(granted.memory_bytes, limit);
  });
  upwards(hierarchies.pids, [&](const std::string& folder) {
    lower_to(granted.processes, read_number(AT_FDCWD, folder + "/pids.max"));
  });
  upwards(hierarchies.cpu, [&](const std::string& folder) {
    const auto quota = read_number(AT_FDCWD, folder + "/cpu.cfs_quota_us");  // -1: none
    const auto period = read_number(AT_FDCWD, folder + "/cpu.cfs_period_us");
    if (quota && period && *period > 0)
      lower_to(granted.cpus,
               std::optional(static_cast<double>(*quota) / static_cast<double>(*period)));
  });
  return granted;
}

void run_legacy_attacher(int channel) {
  keep_only(channel);
  // A signal for the whole foreground group is the supervisor's: it tells by closing the channel.
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::prctl(PR_SET_NAME, "sbx-attach");
  Attacher(channel).run();
  ::_exit(0);
}

}  // namespace sbx::budget
