#include "cgroup/unified.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cgroup/files.hpp"
#include "cgroup/outliving.hpp"

namespace sbx::cgroup {
namespace {

Error no_spot(std::string why) {
  return {.kind = ErrorKind::host, .code = "no-cgroup", .message = std::move(why)};
}

bool may_write(const std::string& path) {
  return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
}

Controllers controllers_in(const std::string& file) {
  const std::string list = read_text(AT_FDCWD, file).value_or("");
  return {.memory = has_word(list, "memory"),
          .pids = has_word(list, "pids"),
          .cpu = has_word(list, "cpu")};
}

std::string parent_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

bool is_unit(std::string_view name) {
  return name.ends_with(".slice") || name.ends_with(".service") || name.ends_with(".scope");
}

/// The mark that systemd (since 250) puts on the group of a unit with Delegate=.
bool has_delegate_mark(const std::string& directory) {
  std::array<char, 4> value{};
  for (const char* const mark : {"user.delegate", "trusted.delegate"})
    if (::getxattr(directory.c_str(), mark, value.data(), value.size()) == 1 && value[0] == '1')
      return true;
  return false;
}

enum class Delegation : std::uint8_t { unmanaged, marked, systemds };

/// The delegation of the nearest systemd unit at or above `directory`.
Delegation delegation_of(std::string directory, const std::string& mount) {
  while (directory.size() > mount.size()) {
    if (has_delegate_mark(directory)) return Delegation::marked;
    if (is_unit(std::string_view(directory).substr(directory.rfind('/') + 1)))
      return Delegation::systemds;
    directory = parent_of(directory);
  }
  return Delegation::unmanaged;
}

bool is_owned(const std::string& directory, uid_t uid) {
  struct stat facts{};
  return ::stat(directory.c_str(), &facts) == 0 && facts.st_uid == uid;
}

/// True if the caller may make groups in `directory`.
bool is_delegated(const std::string& directory, const GroupPath& own, const Caller& caller) {
  if (!may_write(directory) || !may_write(directory + "/cgroup.procs")) return false;
  const Delegation delegation = delegation_of(directory, own.mount);
  if (delegation == Delegation::marked) return true;
  return delegation == Delegation::unmanaged && caller.uid != 0 && is_owned(directory, caller.uid);
}

/// The root of the hierarchy itself, not of a cgroup namespace.
bool is_hierarchy_root(const std::string& directory) {
  return ::access((directory + "/cgroup.type").c_str(), F_OK) != 0;
}

bool is_alone(const std::string& directory, pid_t pid) {
  return read_text(AT_FDCWD, directory + "/cgroup.procs") == std::to_string(pid);
}

/// Inside a container the group that sbx is in looks like the root, and root owns it.
bool may_take_over(const std::string& directory, const GroupPath& own, const Caller& caller) {
  if (!may_write(directory) || !may_write(directory + "/cgroup.procs") ||
      !may_write(directory + "/cgroup.subtree_control"))
    return false;
  switch (delegation_of(directory, own.mount)) {
    case Delegation::marked:
      return true;
    case Delegation::unmanaged:
      return is_owned(directory, caller.uid);
    case Delegation::systemds:
      return caller.in_own_scope && is_owned(directory, caller.uid);
  }
  return false;
}

void lower_cpus(std::optional<double>& cpus, const std::string& directory) {
  const auto text = read_text(AT_FDCWD, directory + "/cpu.max");
  if (!text || text->starts_with("max")) return;
  const auto quota = static_cast<double>(number_of("quota " + *text, "quota"));
  const auto blank = text->find(' ');
  if (blank == std::string::npos) return;
  const auto period = static_cast<double>(number_of("period " + text->substr(blank + 1), "period"));
  if (period > 0) lower_to(cpus, std::optional(quota / period));
}

/// Adds and removes controllers for the children of a group: "+memory +pids".
std::string change_of(Controllers controllers, char sign) {
  std::string change;
  const auto add = [&](bool wanted, const char* name) {
    if (wanted) change += (change.empty() ? "" : " ") + (sign + std::string(name));
  };
  add(controllers.memory, "memory");
  add(controllers.pids, "pids");
  add(controllers.cpu, "cpu");
  return change;
}

/// A group without its mark would stay for ever.
template <class Make>
Result<OwnedDirectory> make_marked(Make make) {
  const std::string name = unique_name();
  Result<OwnedDirectory> directory;
  do_outliving([&] { directory = make(name); });
  return directory;
}

Result<OwnedDirectory> make_marked_in(const std::string& parent) {
  return make_marked([&](const std::string& name) { return OwnedDirectory::make(parent, name); });
}

Result<OwnedDirectory> make_marked_in(const OwnedDirectory& around) {
  return make_marked([&](const std::string& name) { return around.make_inner(name); });
}

/// sbx's own group below the one it was started in, which has no processes meanwhile.
class Aside {
 public:
  static Result<Aside> move(const std::string& from, Controllers controllers) {
    Aside aside;
    aside.from_ = from;
    aside.controllers_ = controllers;
    aside.directory_ = SBX_TRY(make_marked_in(from));
    SBX_TRY(write_text(aside.directory_.fd(), "cgroup.procs", "0"));
    aside.moved_ = true;
    SBX_TRY(write_text(AT_FDCWD, from + "/cgroup.subtree_control", change_of(controllers, '+')));
    return aside;
  }

  Aside() = default;
  Aside(Aside&& other) noexcept
      : from_(std::move(other.from_)),
        controllers_(other.controllers_),
        directory_(std::move(other.directory_)),
        moved_(std::exchange(other.moved_, false)) {}
  Aside& operator=(Aside&&) = delete;
  /// As it was before, as far as others let it be.
  ~Aside() {
    if (!moved_) return;
    (void)write_text(AT_FDCWD, from_ + "/cgroup.subtree_control", change_of(controllers_, '-'));
    (void)write_text(AT_FDCWD, from_ + "/cgroup.procs", "0");
  }

 private:
  std::string from_;
  Controllers controllers_;
  OwnedDirectory directory_;  // removed last, when this process has left it
  bool moved_ = false;
};

class UnifiedGroup final : public Group {
 public:
  UnifiedGroup(std::optional<Aside> aside, OwnedDirectory directory, Controllers controllers)
      : aside_(std::move(aside)), directory_(std::move(directory)), controllers_(controllers) {
    if (controllers_.memory)
      events_ = UniqueFd(::openat(directory_.fd(), "memory.events", O_RDONLY | O_CLOEXEC));
  }

  Status limit(const Budgets& budgets, std::uint64_t of_sbx) override {
    if (controllers_.memory) {
      SBX_TRY(set("memory.max", std::to_string(budgets.memory.count)));
      // Absent where the kernel does not count swap, or has none.
      if (::faccessat(directory_.fd(), "memory.swap.max", F_OK, 0) == 0)
        SBX_TRY(set("memory.swap.max", "0"));
      // In a held group the kernel kills the group of one call as a whole, not all of them.
      SBX_TRY(set("memory.oom.group", held_ ? "0" : "1"));
    }
    if (controllers_.pids) SBX_TRY(set("pids.max", std::to_string(budgets.processes + of_sbx)));
    if (controllers_.cpu) {
      const auto quota =
          static_cast<std::uint64_t>(std::llround(budgets.cpus * static_cast<double>(kPeriod)));
      SBX_TRY(set("cpu.max",
                  std::to_string(std::max(quota, kShortestQuota)) + " " + std::to_string(kPeriod)));
    }
    return {};
  }

  [[nodiscard]] int directory() const override { return held_ ? init_.fd() : directory_.fd(); }
  [[nodiscard]] std::vector<int> joins() const override { return {}; }

  /// A group whose children have controllers has no processes itself (cgroups(7)): PID 1 gets a
  /// group of its own.
  Status hold() override {
    init_ = SBX_TRY(make_marked_in(directory_));
    held_ = true;
    return set("cgroup.subtree_control", change_of(controllers_, '+'));
  }
  Result<std::unique_ptr<Group>> make_inner() override {
    OwnedDirectory directory = SBX_TRY(make_marked_in(directory_));
    auto inner = std::make_unique<UnifiedGroup>(std::nullopt, std::move(directory), controllers_);
    if (controllers_.memory) SBX_TRY(inner->set("memory.oom.group", "1"));
    inner->outer_ = this;
    return inner;
  }
  [[nodiscard]] std::vector<int> descriptors() const override {
    return {directory_.fd(), events_.get()};
  }
  void sweep_inner() override { sweep(directory_.path()); }
  Status move(pid_t pid) override { return set("cgroup.procs", std::to_string(pid)); }

  [[nodiscard]] bool limits_memory() const override { return controllers_.memory; }
  [[nodiscard]] bool limits_processes() const override { return controllers_.pids; }
  /// Every group of cgroup v2 counts CPU time, with or without the controller.
  [[nodiscard]] bool counts_cpu_time() const override { return true; }

  [[nodiscard]] Alarm memory_alarm() const override { return {events_.get(), EPOLLPRI}; }
  /// Reading is what makes it quiet: kernfs notes what this descriptor has seen.
  void quiet_alarm() override { (void)events(); }
  /// memory.events counts kills in the groups below too. A call's group ends the call, which says
  /// so itself; the group around it counts its own processes only.
  [[nodiscard]] std::uint64_t memory_kills() const override {
    if (held_)
      return number_of(read_text(directory_.fd(), "memory.events.local").value_or(""), "oom_kill");
    return number_of(events(), "oom_kill");
  }
  /// A group inside has no limit of its own: the one around it was reached.
  [[nodiscard]] std::uint64_t memory_limit_met() const override {
    if (outer_ == nullptr) return number_of(events(), "oom");
    return outer_->memory_limit_met() - limit_met_before_;
  }
  void forget_memory_limit() override {
    if (outer_ != nullptr) limit_met_before_ = outer_->memory_limit_met();
  }
  [[nodiscard]] std::uint64_t memory_held() const override {
    const std::string facts = read_text(directory_.fd(), "memory.stat").value_or("");
    std::uint64_t sum = 0;  // "kernel" would be all of the kernel's, but is new in Linux 5.18
    for (const char* part : {"anon", "shmem", "kernel_stack", "pagetables", "slab_unreclaimable"})
      sum += number_of(facts, part);
    return sum;
  }
  [[nodiscard]] std::uint64_t memory_used() const override { return number("memory.current"); }
  [[nodiscard]] std::uint64_t memory_peak() const override { return number("memory.peak"); }

  [[nodiscard]] std::optional<CpuTime> cpu_time() const override {
    const auto text = read_text(directory_.fd(), "cpu.stat");
    if (!text) return std::nullopt;
    const std::uint64_t user = number_of(*text, "user_usec");
    const std::uint64_t all = number_of(*text, "usage_usec");
    return CpuTime{.user_microseconds = std::min(user, all),
                   .system_microseconds = all - std::min(user, all)};
  }

  [[nodiscard]] std::uint64_t process_refusals() const override {
    return number_of(read_text(directory_.fd(), "pids.events").value_or(""), "max");
  }
  [[nodiscard]] std::uint64_t processes_peak() const override { return number("pids.peak"); }

  bool freeze(bool frozen) override { return set("cgroup.freeze", frozen ? "1" : "0").has_value(); }
  [[nodiscard]] bool is_frozen() const override {
    return number_of(read_text(directory_.fd(), "cgroup.events").value_or(""), "frozen") == 1;
  }
  bool kill() override { return set("cgroup.kill", "1").has_value(); }

 private:
  [[nodiscard]] Status set(const char* file, std::string_view value) const {
    return write_text(directory_.fd(), file, value);
  }
  [[nodiscard]] std::uint64_t number(const char* file) const {
    return read_number(directory_.fd(), file).value_or(0);
  }
  [[nodiscard]] std::string events() const {
    std::array<char, 512> room;
    const ssize_t got = ::pread(events_.get(), room.data(), room.size(), 0);
    return {room.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
  }

  std::optional<Aside> aside_;  // left after the group is removed
  OwnedDirectory directory_;
  OwnedDirectory init_;  ///< of a held group
  bool held_ = false;
  const UnifiedGroup* outer_ = nullptr;
  std::uint64_t limit_met_before_ = 0;  ///< of the group around
  Controllers controllers_;
  UniqueFd events_;
};

}  // namespace

Result<Spot> find_spot(const GroupPath& own, const Caller& caller) {
  const std::string directory = own.directory();
  if (is_hierarchy_root(directory)) {
    const Controllers controllers = controllers_in(directory + "/cgroup.subtree_control");
    if (!may_write(directory)) return fail(no_spot("the root cgroup can't be written"));
    if (!controllers.any())
      return fail(no_spot("the root cgroup passes no controller on (cgroup.subtree_control)"));
    return Spot{.parent = directory, .controllers = controllers};
  }
  if (!own.group.empty()) {
    const std::string above = parent_of(directory);
    const Controllers controllers = controllers_in(above + "/cgroup.subtree_control");
    if (controllers.any() && is_delegated(above, own, caller))
      return Spot{.parent = above, .controllers = controllers};
  }
  if (!may_take_over(directory, own, caller))
    return fail(no_spot("the cgroup that sbx runs in is not delegated to this user"));
  const Controllers controllers = controllers_in(directory + "/cgroup.controllers");
  if (!controllers.any()) return fail(no_spot("the cgroup that sbx runs in has no controllers"));
  if (!is_alone(directory, caller.pid))
    return fail(no_spot("other processes are in the cgroup that sbx runs in"));
  return Spot{.parent = directory, .controllers = controllers, .alone = true};
}

bool lacks_memory_controller(const GroupPath& own) {
  if (!is_hierarchy_root(own.mount)) return false;
  const auto list = read_text(AT_FDCWD, own.mount + "/cgroup.controllers");
  return list && !has_word(*list, "memory");
}

host::ControlGroup::Granted granted_by_unified(const GroupPath& own) {
  host::ControlGroup::Granted granted;
  for (std::string directory = own.directory(); directory.size() >= own.mount.size();
       directory = parent_of(directory)) {
    lower_to(granted.memory_bytes, read_number(AT_FDCWD, directory + "/memory.max"));
    lower_to(granted.processes, read_number(AT_FDCWD, directory + "/pids.max"));
    lower_cpus(granted.cpus, directory);
    if (directory.size() == own.mount.size()) break;
  }
  return granted;
}

Result<std::unique_ptr<Group>> make_unified(const GroupPath& own, const Spot& spot) {
  sweep(spot.parent);
  std::optional<Aside> aside;
  if (spot.alone) aside.emplace(SBX_TRY(Aside::move(own.directory(), spot.controllers)));
  OwnedDirectory directory = SBX_TRY(make_marked_in(spot.parent));
  return std::make_unique<UnifiedGroup>(std::move(aside), std::move(directory), spot.controllers);
}

}  // namespace sbx::cgroup
