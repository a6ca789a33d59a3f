#include <linux/capability.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "base/sys.hpp"
#include "host/host.hpp"
#include "host/parse.hpp"

extern char** environ;

namespace sbx::host {
namespace {

// Absent in the headers of Debian 12; landlock_create_ruleset(2) is 444 on every architecture.
constexpr long kLandlockCreateRuleset = 444;
constexpr unsigned kLandlockVersionFlag = 1;

constexpr std::size_t kProcFileLimit = std::size_t{4} << 20;

std::vector<gid_t> supplementary_groups() {
  gid_t few[64];
  const int count = ::getgroups(64, few);
  if (count >= 0) return {few, few + count};
  const int wanted = ::getgroups(0, nullptr);
  if (wanted <= 0) return {};
  std::vector<gid_t> groups(static_cast<std::size_t>(wanted));
  const int got = ::getgroups(wanted, groups.data());
  groups.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return groups;
}

/// Capabilities count only over the initial user namespace: root of a rootless container has them
/// all over its own.
bool is_privileged() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  constexpr std::uint32_t kWanted =
      (1U << CAP_SYS_ADMIN) | (1U << CAP_SETUID) | (1U << CAP_SETGID);  // all below 32
  if ((data[0].effective & kWanted) != kWanted) return false;
  const auto map = sys::read_file("/proc/self/uid_map", 4096);
  return map && is_full_id_map(*map);
}

bool is_root_of_machine(uid_t uid) {
  const auto map = sys::read_file("/proc/self/uid_map", 4096);
  return map && is_root_outside(*map, uid);
}

/// Over the user namespace that sbx is in, whichever that is.
bool changes_ids() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2] = {};
  constexpr std::uint32_t kWanted = (1U << CAP_CHOWN) | (1U << CAP_DAC_OVERRIDE) |
                                    (1U << CAP_FOWNER) | (1U << CAP_SETGID) | (1U << CAP_SETUID) |
                                    (1U << CAP_SETPCAP);
  return ::geteuid() == 0 && ::syscall(SYS_capget, &header, data) == 0 &&
         (data[0].effective & kWanted) == kWanted;
}

std::map<std::string, std::string> caller_environment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    variables.emplace(text.substr(0, equals),
                      text.substr(equals + 1));  // the first of a name wins, as in getenv(3)
  }
  return variables;
}

std::string caller_home(uid_t uid, const std::map<std::string, std::string>& environment) {
  const auto named = environment.find("HOME");
  if (named != environment.end() && named->second.starts_with('/')) {
    std::string home = named->second;
    while (home.size() > 1 && home.ends_with('/')) home.pop_back();
    struct stat facts{};
    if (::stat(home.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == uid)
      return home;
  }
  const auto passwd = sys::read_file("/etc/passwd", kProcFileLimit);
  return passwd ? home_in_passwd(*passwd, uid) : std::string();
}

std::string current_directory() {
  char text[4096];
  // getcwd(2) returns "(unreachable)/…" for a directory outside the caller's root.
  if (::getcwd(text, sizeof text) == nullptr || text[0] != '/') return {};
  return text;
}

int landlock_abi() {
  const long abi = ::syscall(kLandlockCreateRuleset, nullptr, 0, kLandlockVersionFlag);
  return abi > 0 ? static_cast<int>(abi) : 0;
}

/// Every kernel that sbx supports has these calls, and refuses the arguments. A filter around sbx
/// may answer ENOSYS for new calls, but seccomp(2) is older than such filters.
bool is_emulated() {
  const auto is_absent = [](long result) { return result == -1 && errno == ENOSYS; };
  return is_absent(::syscall(SYS_openat2, -1, nullptr, nullptr, 0)) &&
         is_absent(::syscall(SYS_clone3, nullptr, 0)) &&
         is_absent(::syscall(SYS_seccomp, -1, 0, nullptr));
}

std::vector<int> usable_cpus() {
  // Bigger than CPU_SETSIZE: the kernel answers EINVAL when its own mask does not fit,
  // sched_setaffinity(2).
  unsigned long mask[128] = {};
  const long bytes = ::syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
  std::vector<int> cpus;
  if (bytes <= 0) return cpus;
  constexpr int kBits = static_cast<int>(sizeof(unsigned long)) * 8;
  for (int cpu = 0; cpu < static_cast<int>(bytes) * 8; ++cpu)
    if ((mask[cpu / kBits] >> (cpu % kBits) & 1U) != 0) cpus.push_back(cpu);
  return cpus;
}

std::map<int, Rlimit> own_limits() {
  constexpr int kResources[] = {RLIMIT_CORE, RLIMIT_NOFILE, RLIMIT_FSIZE,   RLIMIT_NPROC,
                                RLIMIT_CPU,  RLIMIT_STACK,  RLIMIT_MEMLOCK, RLIMIT_SIGPENDING};
  std::map<int, Rlimit> limits;
  for (const int resource : kResources) {
    struct rlimit limit{};
    if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0)
      limits[resource] = {.soft = limit.rlim_cur, .hard = limit.rlim_max};
  }
  return limits;
}

std::unexpected<Error> no_proc(Error error) {
  const bool no_descriptor_left = error.errno_value == EMFILE || error.errno_value == ENFILE;
  if (!no_descriptor_left) {
    error.code = "no-proc";
    error.hint = "sbx needs a mounted /proc";
  }
  return fail(std::move(error));
}

Host caller() {
  Host host;
  host.uid = ::geteuid();
  host.gid = ::getegid();
  host.umask = sys::file_mode_mask();
  host.environment = caller_environment();
  host.home = caller_home(host.uid, host.environment);
  host.working_directory = current_directory();
  if (const auto path = host.environment.find("PATH"); path != host.environment.end())
    host.path = absolute_entries(path->second);
  host.files = real_files();
  return host;
}

}  // namespace

Result<Host> probe_caller() {
  if (::access("/proc/self", F_OK) != 0)
    return no_proc(
        {.kind = ErrorKind::host, .message = "cannot read '/proc/self'", .errno_value = errno});
  return caller();
}

Result<Host> probe() {
  Host host = caller();
  host.groups = supplementary_groups();
  host.privileged = is_privileged();
  host.changes_ids = changes_ids();
  host.escapes_process_limit = !host.privileged && is_root_of_machine(host.uid);
  host.landlock_abi = landlock_abi();
  host.emulated = host.landlock_abi == 0 && is_emulated();
  host.cpus = usable_cpus();
  const auto memory = sys::read_file("/proc/meminfo", kProcFileLimit);
  if (!memory) return no_proc(memory.error());
  host.memory_available_bytes = memory_available(*memory);
  host.rlimits = own_limits();
  return host;
}

Result<std::vector<MountPoint>> mounts(const Files& files) {
  return mounts_in(SBX_TRY(files.read_head("/proc/self/mountinfo", kProcFileLimit)));
}

}  // namespace sbx::host
