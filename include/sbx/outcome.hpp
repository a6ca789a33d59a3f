#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <sbx/error.hpp>
#include <sbx/units.hpp>

/// How a run ended and what sbx observed. The JSON form is schema "sbx.run/1", sbx-record(5).
namespace sbx {

/// The budgets that can end a run.
enum class Budget : std::uint8_t { wall_time, cpu_time, memory, output, file_size, disk };
/// As in the record and the policy: "wall_time", "memory". Empty for other values.
[[nodiscard]] constexpr const char* name_of(Budget budget) {
  switch (budget) {
    case Budget::wall_time:
      return "wall_time";
    case Budget::cpu_time:
      return "cpu_time";
    case Budget::memory:
      return "memory";
    case Budget::output:
      return "output";
    case Budget::file_size:
      return "file_size";
    case Budget::disk:
      return "disk";
  }
  return "";
}

struct Exited {
  int code = 0;
  bool operator==(const Exited&) const = default;
};
struct Signaled {
  int signal = 0;
  bool operator==(const Signaled&) const = default;
};
/// sbx or the kernel ended the run because a budget was exceeded.
struct OverBudget {
  Budget budget{};
  bool operator==(const OverBudget&) const = default;
};
/// `syscalls.denied = "kill"` ended the run.
struct Denied {
  std::string call;
  bool operator==(const Denied&) const = default;
};
/// A signal to sbx ended the run, whatever the command returned.
struct Cancelled {
  int signal = 0;
  bool operator==(const Cancelled&) const = default;
};
/// The sandbox's init was killed from outside after the command began, so the command's own end is
/// unknown.
struct Lost {
  bool operator==(const Lost&) const = default;
};
using Verdict = std::variant<Exited, Signaled, OverBudget, Denied, Cancelled, Lost>;

/// One of the child's output streams.
struct Stream {
  /// Captured bytes (head and tail of the cap); empty if passed through.
  std::optional<std::string> text;
  std::uint64_t bytes = 0;  ///< number of bytes that the child wrote
  bool truncated = false;
  std::uint64_t head_bytes = 0;  ///< bytes of `text` (or of what was passed through) before the gap
  std::uint64_t tail_bytes = 0;  ///< bytes of `text` after the gap
  bool joined = false;           ///< stderr is the same file as stdout, whose counts include it
  std::string last;              ///< its last bytes, for hints; not in the record
};

/// Output that could not be passed through.
struct WriteError {
  std::string stream;  ///< "stdout"
  int errno_value = 0;
};

enum class Evidence : std::uint8_t { kernel_counter, signal, sampled };
struct LimitMet {
  std::string limit;  ///< "processes", "disk", "file_size"
  std::uint64_t value = 0;
  std::optional<std::uint64_t> peak;
  Evidence evidence{};
};

/// The kind of a denial: a system call, a destination, a path that --explain saw, or a protected
/// name that the program made in a live directory.
enum class DenialKind : std::uint8_t { syscall, network, path, name };
/// As in the record: "syscall", "network", "path", "name". Empty for other values.
[[nodiscard]] constexpr const char* name_of(DenialKind kind) {
  switch (kind) {
    case DenialKind::syscall:
      return "syscall";
    case DenialKind::network:
      return "network";
    case DenialKind::path:
      return "path";
    case DenialKind::name:
      return "name";
  }
  return "";
}
/// The kind of that name; empty for a name of another version.
[[nodiscard]] constexpr std::optional<DenialKind> denial_kind(std::string_view name) {
  for (unsigned char i = 0; *name_of(static_cast<DenialKind>(i)) != '\0'; ++i)
    if (name == name_of(static_cast<DenialKind>(i))) return static_cast<DenialKind>(i);
  return std::nullopt;
}
/// Something was refused. Else --explain saw that it was looked for, which a program can fake and
/// often does in vain.
[[nodiscard]] constexpr bool is_refusal(DenialKind kind) {
  switch (kind) {
    case DenialKind::syscall:
    case DenialKind::network:
    case DenialKind::name:
      return true;
    case DenialKind::path:
      return false;
  }
  return true;
}

struct Denial {
  DenialKind kind = DenialKind::syscall;
  std::string what;  ///< "ptrace", "socket(AF_PACKET)"
  std::uint64_t count = 0;
  std::string process;     ///< comm of the first process that tried; empty if unknown
  std::string rule;        ///< the rule or default that decided, and where it is
  std::string allow_with;  ///< the policy line that would allow it
  std::string risk;
  /// The options of `sbx run` that would allow it without replacing list entries: {"--allow-host",
  /// "example.org:443"}; empty if no option does.
  std::vector<std::string> options{};
  /// What calls share refused it while this call ran, perhaps to another one: the network of a
  /// session, its live directories.
  bool during_call = false;
};

/// What a hint is about: a place that the policy makes read-only; a name that is here and was not
/// granted; a server of the host on a port of the loopback; a file that the run made and that is
/// gone; a module that another interpreter has.
enum class HintKind : std::uint8_t { read_only, not_granted, loopback, lost_file, module };
/// As in the record: "read-only". Empty for other values.
[[nodiscard]] constexpr const char* name_of(HintKind kind) {
  switch (kind) {
    case HintKind::read_only:
      return "read-only";
    case HintKind::not_granted:
      return "not-granted";
    case HintKind::loopback:
      return "loopback";
    case HintKind::lost_file:
      return "lost-file";
    case HintKind::module:
      return "module";
  }
  return "";
}

/// What the program may have met that no refused system call tells, and what would let it go on.
struct Hint {
  HintKind kind{};
  std::string what;  ///< a path, an address or the name of a module
  std::string text;  ///< a sentence without its full stop
  /// Options of `sbx run` or `sbx session start`: {"--read", "data.csv"}; empty if no option helps.
  std::vector<std::string> options{};
  bool perhaps = true;  ///< it follows from what the program wrote, which may be untrue
};

/// Traffic through one rule of network.allow or network.publish.
struct NetworkUse {
  std::string rule;               ///< "api.example.com:443", "127.0.0.1:8080:80"
  std::uint64_t connections = 0;  ///< TCP connections and UDP flows
  std::uint64_t bytes_in = 0;     ///< to the program
  std::uint64_t bytes_out = 0;    ///< from the program
};
/// An allowed destination that could not be reached.
struct NetworkFailure {
  std::string what;  ///< "api.example.com:443"
  std::string why;   ///< "no such name", "refused by 192.0.2.1", "timed out after 10 s"
  std::uint64_t count = 0;
};

/// What a policy or sbx promises and a machine may keep with a weaker means. X(enumerator, name in
/// the record).
#define SBX_PROMISES(X)                          \
  X(isolation, "isolation")                      \
  X(names, "names")                              \
  X(own_tmp, "tmp")                              \
  X(own_ipc, "ipc")                              \
  X(own_end, "end")                              \
  X(allowed_calls, "syscalls.allow")             \
  X(landlock, "landlock")                        \
  X(own_proc, "proc")                            \
  X(host_name, "hostname")                       \
  X(trusted_policy, "trusted-policy")            \
  X(named_calls, "syscalls.named")               \
  X(network_mode, "network.mode")                \
  X(named_destinations, "network.named")         \
  X(live_grant, "filesystem.write")              \
  X(hidden_files, "filesystem.deny")             \
  X(workspace_mode, "filesystem.workspace.mode") \
  X(cpu_time, "limits.cpu_time")                 \
  X(cpus, "limits.cpus")                         \
  X(memory, "limits.memory")                     \
  X(processes, "limits.processes")               \
  X(open_files, "limits.open_files")             \
  X(file_size, "limits.file_size")               \
  X(disk, "limits.disk")                         \
  X(disk_files, "limits.disk_files")             \
  X(no_core_dumps, "core dumps")                 \
  X(changes, "changes")

enum class Promise : std::uint8_t {
#define SBX_PROMISE(enumerator, name) enumerator,
  SBX_PROMISES(SBX_PROMISE)
#undef SBX_PROMISE
      one_grant,  ///< of the grant of one path, which is its name in the record
};

struct Degraded {
  Promise promise{};
  std::string path{};  ///< of one_grant; empty for the others
  std::string why{};
  std::string instead{};  ///< the substitute; empty: none

  /// As the record names it: "limits.memory", "landlock", "'/data'".
  [[nodiscard]] std::string what() const {
    switch (promise) {
#define SBX_PROMISE(enumerator, name) \
  case Promise::enumerator:           \
    return name;
      SBX_PROMISES(SBX_PROMISE)
#undef SBX_PROMISE
      case Promise::one_grant:
        break;
    }
    return "'" + path + "'";
  }
  /// The promise of this name, and the path of one_grant.
  static Degraded named(const std::string& what) {
#define SBX_PROMISE(enumerator, name) \
  if (what == (name)) return {.promise = Promise::enumerator};
    SBX_PROMISES(SBX_PROMISE)
#undef SBX_PROMISE
    const bool quoted = what.size() >= 2 && what.front() == '\'' && what.back() == '\'';
    return {.promise = Promise::one_grant, .path = quoted ? what.substr(1, what.size() - 2) : what};
  }
};

struct Usage {
  std::uint64_t wall_ms = 0;
  std::uint64_t user_ms = 0;
  std::uint64_t system_ms = 0;
  std::optional<std::uint64_t> memory_peak_bytes;
  std::optional<std::uint64_t> processes_peak;
  std::optional<std::uint64_t> written_bytes;
};

/// One stage of the start-up, for --trace-time.
struct Stamp {
  std::string stage;
  std::uint64_t microseconds = 0;  ///< since sbx started
};

enum class ChangeKind : std::uint8_t {
  created,
  modified,
  deleted,
  mode,   ///< the permissions only
  links,  ///< not its content: it became a name of another file, or of one of its own
};
/// As in the record: "created". Empty for other values.
[[nodiscard]] constexpr const char* name_of(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::created:
      return "created";
    case ChangeKind::modified:
      return "modified";
    case ChangeKind::deleted:
      return "deleted";
    case ChangeKind::mode:
      return "mode";
    case ChangeKind::links:
      return "links";
  }
  return "";
}
enum class FileType : std::uint8_t { file, directory, link, fifo, socket, device };
/// As in the record: "file". Empty for other values.
[[nodiscard]] constexpr const char* name_of(FileType type) {
  switch (type) {
    case FileType::file:
      return "file";
    case FileType::directory:
      return "directory";
    case FileType::link:
      return "link";
    case FileType::fifo:
      return "fifo";
    case FileType::socket:
      return "socket";
    case FileType::device:
      return "device";
  }
  return "";
}

/// What a run did to one name of its copy-on-write workspace, relative to the directory on the
/// host.
struct Change {
  std::string path;  ///< below the workspace, as bytes; "." is the workspace itself
  ChangeKind change{};
  FileType type{};          ///< the present type; for `deleted`, the former one
  std::uint64_t bytes = 0;  ///< the present size; for `deleted`, the former one; 0 unless a file
  unsigned mode = 0;        ///< present permission bits, 07777
  bool operator==(const Change&) const = default;
};

/// A guarded name that appeared in a live directory during the run and still exists at its end.
struct Appeared {
  std::string path;  ///< on the host, as bytes
  /// True: it matches filesystem.deny, and the program could see it. False: a name by which
  /// programs of the host are made to run or trust something.
  bool is_hidden = false;
};

/// Something in a live grant that is dangerous for programs of the host: new or changed since the
/// run began, whoever made it.
struct Hazard {
  std::string path;  ///< on the host, as bytes
  std::string why;   ///< "a link out of the granted directory"
};

/// What still ran when the command had ended by itself, and was ended with it.
struct LeftRunning {
  std::uint64_t count = 0;  ///< processes, without those that had ended and were not waited for
  std::string process;      ///< comm of one of them; empty if unknown
};

struct Outcome {
  Verdict verdict = Exited{};
  std::string detail;  ///< one sentence for people and agents
  Stream out;
  Stream err;
  std::optional<WriteError> write_error;  ///< the first one; sbx run then ends with 125
  std::vector<LimitMet> limits_met;
  std::vector<Denial> denials;
  std::vector<NetworkUse> network_used;
  std::vector<NetworkFailure> network_failures;
  std::vector<Degraded> degraded;  ///< found during the run, in addition to the plan's
  LeftRunning left_running;
  std::vector<std::string> notes;  ///< sentences for stderr
  std::vector<Hint> hints;         ///< most helpful first
  /// Where no network is: ports of the sandbox's own loopback for which the kernel saw connect(2)
  /// called, the first few. Hints follow from them; no record has them.
  std::vector<std::uint16_t> loopback_ports;
  Usage usage;
  std::string cpu_time_means = "summed";  ///< how CPU time was measured: "task-clock" | "summed"
  std::vector<Stamp> stamps;
  std::vector<Change> changes;         ///< of a copy-on-write workspace, by path
  std::uint64_t changes_left_out = 0;  ///< not listed
  std::vector<Appeared> appeared;      ///< in live directories, by path
  std::vector<Hazard> hazards;         ///< in live grants, by path
  std::uint64_t hazards_left_out = 0;  ///< not listed
};

/// The exit status of `sbx run` (sbx(1), "EXIT STATUS").
namespace exit_status {
inline constexpr int kWallTime = 124;
inline constexpr int kCouldNot = 125;
inline constexpr int kNotExecutable = 126;
inline constexpr int kNotFound = 127;
inline constexpr int kMemory = 137;
inline constexpr int kCpuTime = 152;
inline constexpr int kSize = 153;  ///< file size, output with exceed = "kill", disk on a live grant
inline constexpr int kDeniedCall = 159;
}  // namespace exit_status

[[nodiscard]] constexpr int exit_status_of(Budget budget) {
  switch (budget) {
    case Budget::wall_time:
      return exit_status::kWallTime;
    case Budget::cpu_time:
      return exit_status::kCpuTime;
    case Budget::memory:
      return exit_status::kMemory;
    case Budget::output:
    case Budget::file_size:
    case Budget::disk:
      return exit_status::kSize;
  }
  return exit_status::kCouldNot;
}
[[nodiscard]] int exit_status_of(const Verdict& verdict);
[[nodiscard]] int exit_status_of(const Error& error);

}  // namespace sbx
