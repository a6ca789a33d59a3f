#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

/// Facts about the machine and the caller, looked at once per run and passed on as values.
namespace sbx::host {

enum class FileType : std::uint8_t {
  regular,
  directory,
  symlink,
  socket,
  fifo,
  character,
  block,
  other
};

struct FileFacts {
  FileType type = FileType::other;
  std::uint64_t device = 0;  ///< st_dev
  std::uint64_t inode = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  mode_t mode = 0;  ///< permission bits
  std::uint64_t size = 0;
  std::uint32_t device_number = 0;  ///< st_rdev of device files
  std::uint32_t links = 1;          ///< names of the file
  std::uint64_t stored = 0;         ///< bytes that it takes up
  std::int64_t changed = 0;         ///< st_ctime in nanoseconds
  std::int64_t modified = 0;        ///< st_mtime in nanoseconds
};

/// One name in a directory.
struct Entry {
  std::string name;
  FileType type = FileType::other;
};

/// A name found on a walk through a tree.
struct Seen {
  std::string_view
      directory;  ///< that holds it, relative to the root of the walk; empty for the root
  std::string_view name;
  const FileFacts& facts;
  bool is_mount = false;  ///< something is mounted on it: the facts are those of what is mounted
};
enum class Walk : std::uint8_t { into, past, end };
using Visit = std::function<Walk(const Seen&)>;
/// Called with a directory, relative to the root, that the caller may not list; empty: the root
/// itself.
using Shut = std::function<void(const std::string& directory)>;
/// Asked of a name, before anything else is known of it; an empty one wants all.
using Wanted = std::function<bool(std::string_view name)>;

/// The one seam to the host's files for everything before a run; tests use a canned one.
class Files {
 public:
  virtual ~Files() = default;
  /// Facts of the path itself (links not followed). Error: host, with errno.
  [[nodiscard]] virtual Result<FileFacts> look(const std::string& path) const = 0;
  /// The path with every link resolved, absolute. Error: host, with errno.
  [[nodiscard]] virtual Result<std::string> canonical(const std::string& path) const = 0;
  [[nodiscard]] virtual Result<std::string> link_target(const std::string& path) const = 0;
  /// At most `limit` bytes from the start of a regular file.
  [[nodiscard]] virtual Result<std::string> read_head(const std::string& path,
                                                      std::size_t limit) const = 0;
  /// What a directory holds, sorted by name, without "." and ".." and without what is not wanted.
  [[nodiscard]] virtual Result<std::vector<Entry>> list(const std::string& path,
                                                        const Wanted& wanted) const = 0;
  [[nodiscard]] Result<std::vector<Entry>> list(const std::string& path) const {
    return list(path, nullptr);
  }
  /// Visits every name below a directory, in no order. Follows no link and enters no mount below
  /// it. Enters a directory if `visit` returns `into`. Errors: host.
  [[nodiscard]] virtual Status walk(const std::string& root, const Visit& visit,
                                    const Shut& shut) const = 0;
  /// Whether a tmpfs of this kernel has extended attributes of users (since Linux 6.6).
  [[nodiscard]] virtual bool memory_takes_attributes() const = 0;
  /// access(2) by the effective ids.
  [[nodiscard]] virtual bool may_read(const std::string& path) const = 0;
  [[nodiscard]] virtual bool may_execute(const std::string& path) const = 0;
};

/// The real file system.
[[nodiscard]] std::shared_ptr<const Files> real_files();

/// A mount: where it is and what it is, from /proc/self/mountinfo.
struct MountPoint {
  std::string path;
  std::string type;     ///< "ext4", "overlay", "tmpfs"
  std::string root;     ///< what of the file system is mounted: "/" for all of it
  std::string options;  ///< of the file system: "rw,memory"
};

struct Rlimit {
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
};

/// What keeps a budget of the whole tree.
enum class Means : std::uint8_t { none, cgroup_v1, cgroup_v2 };

/// As records have it: "cgroup-v2"; empty for none.
[[nodiscard]] constexpr const char* name_of(Means means) {
  switch (means) {
    case Means::cgroup_v1:
      return "cgroup-v1";
    case Means::cgroup_v2:
      return "cgroup-v2";
    case Means::none:
      break;
  }
  return "";
}

/// The control group that a run will be in, as far as there is one; what src/cgroup found by doing.
struct ControlGroup {
  Means memory = Means::none;     ///< none: polled
  Means cpus = Means::none;       ///< none: by affinity
  Means cpu_time = Means::none;   ///< none: counted by process
  Means processes = Means::none;  ///< none: RLIMIT_NPROC of the sandbox's user namespace
  bool memory_is_off = false;     ///< the kernel runs without its memory controller
  std::string why = "no cgroup that sbx may use";  ///< why one of them is `none`

  /// The file that counts kills for want of memory in the group that sbx runs in; may be empty.
  std::string outer_events;

  /// The smallest limits of the groups that sbx itself runs in: a job's, a container's.
  struct Granted {
    std::optional<std::uint64_t> memory_bytes;
    std::optional<std::uint64_t> processes;
    std::optional<double> cpus;
  };
  Granted granted;
};

struct Host {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  ///< supplementary
  mode_t umask = 022;
  /// CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID over the initial user namespace: idmapped mounts and
  /// a uid of its own.
  bool privileged = false;
  /// CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_SETGID, CAP_SETUID and CAP_SETPCAP, as root of a
  /// container mostly has them: programs can get a uid of their own without a user namespace.
  bool changes_ids = false;
  /// Root of the machine, whose processes fork(2) holds to no RLIMIT_NPROC, and programs get no
  /// other uid: root of a container without a user namespace of its own.
  bool escapes_process_limit = false;
  bool refuses_namespaces = false;  ///< as a run has found out
  std::string
      /// $HOME if an absolute directory owned by the caller, else of the passwd entry; may be empty
      home;
  std::string working_directory;  ///< canonical; empty when it can't be read
  std::map<std::string, std::string> environment;
  std::vector<std::string> path;  ///< PATH, absolute entries only
  int landlock_abi = 0;           ///< 0: no Landlock
  /// An emulator of single programs (qemu-user) answers system calls, and lacks those that
  /// sandboxes need.
  bool emulated = false;
  std::vector<int> cpus;  ///< the caller's affinity
  std::uint64_t memory_available_bytes = 0;
  std::map<int, Rlimit> rlimits;  ///< by RLIMIT_*
  ControlGroup control_group;
  std::shared_ptr<const Files> files;
  /// Called now and then during a walk through a directory with the number of entries so far, and
  /// at its end with 0; may be empty.
  std::function<void(const std::string& directory, std::uint64_t entries)> on_walk;
};

/// What is mounted, in the order of /proc/self/mountinfo. Not part of a Host: reading it costs 0.1
/// ms, and only grants of directories need it. Errors: host.
[[nodiscard]] Result<std::vector<MountPoint>> mounts(const Files& files);

/// Looks at the caller alone: ids, environment and directories. Enough to reach a session. Errors:
/// host (no /proc).
[[nodiscard]] Result<Host> probe_caller();
/// Looks at the machine too. Errors: host (no /proc). Needs no privileges.
[[nodiscard]] Result<Host> probe();

}  // namespace sbx::host
