#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sbx/outcome.hpp>
#include <sbx/units.hpp>

#include "base/budgets.hpp"
#include "host/host.hpp"
#include "plan/access.hpp"
#include "plan/filter/filter.hpp"
#include "plan/mount.hpp"
#include "plan/request.hpp"
#include "plan/tier/tier.hpp"
#include "policy/network_match.hpp"
#include "policy/network_rules.hpp"
#include "policy/policy.hpp"

/// Everything that is decided before anything is done. `--dry-run` prints a Plan; later steps take
/// no policy decisions.
namespace sbx::plan {

/// A directory of the host that the program writes to directly, as the survey found it.
struct LiveDirectory {
  std::string source;
  std::vector<std::string> guarded;  ///< names below it that are hidden or read-only, sorted
  bool special = false;              ///< FIFOs and sockets are allowed in it
};

/// A file or directory that sbx makes in a .git of a live grant while the sandbox is there,
/// protected.hpp.
struct PlannedPlaceholder {
  std::string directory;  ///< the .git
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::string name;
  std::string content;  ///< of a file
  bool is_directory = false;
  std::string target;  ///< inside
};

/// A unix socket of the machine that the program may connect to, without a mount of it.
struct GrantedSocket {
  std::string path;  ///< canonical
  std::string target;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
};

/// A limit that each process inherits.
struct ProcessLimit {
  int resource = 0;  ///< RLIMIT_*
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
  Origin origin;
};

/// User and group ids of the sandbox.
struct Identity {
  /// Root identity: uid R = base + 1000 on the host; base is chosen when the run starts.
  bool privileged = false;
  uid_t uid = 1000;  ///< inside
  gid_t gid = 1000;
  /// Without a user namespace: the program has a uid of the machine to itself, and its keeper
  /// another one; both are chosen when the run starts.
  bool own_uids = false;
  /// Without a user namespace: the program has the caller's own ids, as its keeper has.
  bool callers_own = false;

  [[nodiscard]] bool is_outside_namespaces() const { return own_uids || callers_own; }
  /// Those of sbx among the sandbox's: PID 1, or a keeper and its second.
  [[nodiscard]] std::uint64_t own_tasks() const { return is_outside_namespaces() ? 2 : 1; }
};

struct OutputPlan {
  Bytes stdout_cap{};
  Bytes stderr_cap{};
  Bytes passed_cap{};
  policy::Exceed exceed = policy::Exceed::automatic;
};

struct NetworkPlan {
  bool own_namespace = true;  ///< false: mode = "host"
  bool allow_list = false;    ///< a gateway leads to the destinations in `rules`
  std::vector<policy::PlacedRule> rules;
  struct Published {
    policy::Publication publication;
    Origin origin;
  };
  std::vector<Published> published;
  bool private_ = false;  ///< a name may resolve to addresses that are not globally reachable
  bool match_sni = true;
  bool named = true;            ///< refused destinations are reported
  bool closed = false;          ///< no internet socket can be made, not even to loopback
  bool none_was_typed = false;  ///< --net none: adding --allow-host is an error
  std::string rule;            ///< the reason to refuse: "not in network.allow (web-fetch.toml:21)"
  std::string match_sni_rule;  ///< "network.match_sni = true (web-fetch.toml:25)"

  /// The network is closed, and the program's attempts are reported.
  [[nodiscard]] bool names_attempts() const { return own_namespace && !allow_list && named; }
  /// The rule with so many ports that each is opened only when connect(2) is called for it; null if
  /// there is none.
  [[nodiscard]] const policy::PlacedRule* wide_rule() const {
    for (const policy::PlacedRule& placed : rules)
      if (placed.rule.is_wide()) return &placed;
    return nullptr;
  }
  /// The supervisor inspects connect(2) while the caller waits.
  [[nodiscard]] bool notes_connect() const { return names_attempts() || wide_rule() != nullptr; }
};

/// For the record and messages.
struct InterpreterFacts {
  std::string path;    ///< host path of the program executed; empty if that is the command itself
  std::string prefix;  ///< bound besides the system directories; empty: a system interpreter
  std::string reason;  ///< "#! line", "extension .py", "--lang python", "shim of pyenv"
};

struct Sight;

/// A program that execve(2) may find.
struct Executable {
  std::string path;  ///< inside
  std::vector<std::string> words;
};

/// Inits of a held sandbox that wait for a call, at most.
inline constexpr std::uint64_t kInitsAhead = 4;

struct Plan {
  std::vector<std::string> command;  ///< argv of the main process
  std::string executable;            ///< absolute path inside
  /// A call tries this before `executable`, because only the sandbox knows whether this file is
  /// there.
  std::optional<Executable> first;
  std::vector<std::string> environment;  ///< NAME=VALUE
  std::string working_directory;         ///< inside
  /// A call's command begins in this one, from `working_directory` on; only the sandbox knows
  /// whether it is there. Empty: `working_directory`.
  std::string call_directory;
  mode_t umask = 022;
  InterpreterFacts interpreter;
  Identity identity;
  std::vector<Mount> mounts;
  /// The directory that holds the private disk of a sandbox which sees the machine's own files.
  /// Empty: the sandbox has a root of its own.
  std::string private_directory;
  std::vector<Access> access;  ///< what the program may reach
  /// The machine's /dev/shm is among that, if it is empty when the run begins.
  bool lends_shared_memory = false;
  /// The supervisor makes, connects and binds the program's unix sockets.
  bool names_sockets = false;
  std::vector<GrantedSocket> sockets;  ///< that it connects to besides the program's own
  std::vector<ProcessLimit> process_limits;
  Budgets budgets;
  std::vector<int> affinity;       ///< ceil(cpus) random CPUs of the caller's; empty: all
  bool disk_in_directory = false;  ///< the private disk is a directory of the state home, no tmpfs
  host::ControlGroup control_group;  ///< enforces the budgets of the whole tree
  /// No limit of the kernel's holds for the program's processes: the supervisor counts them.
  bool counts_tasks = false;
  OutputPlan output;
  NetworkPlan network;
  Filter filter;
  policy::DeniedCall denied = policy::DeniedCall::errno_;
  bool keeps_host_name = false;  ///< the caller's: this machine does not let it be set
  bool landlock_files = true;    ///< enforce files; scopes are used wherever the kernel has them
  int landlock_abi = 0;          ///< 0: none
  bool interactive = false;
  StdinMode stdin_mode = StdinMode::inherit;
  std::string stdin_file;
  bool explain = false;  ///< report the paths that are looked up but not granted
  TierKind tier{};
  std::vector<Namespace> namespaces;      ///< that the sandbox has of its own
  std::vector<std::string> hidden_names;  ///< patterns, deny.hpp
  std::vector<LiveDirectory> live;
  /// Live grants, mounts in them, and /dev/shm, on a tmpfs of the host: limits.disk bounds its
  /// growth.
  std::vector<std::string> live_in_memory;
  std::vector<std::string> live_on_overlay;  ///< possibly; found out by trying
  /// Directories of sbx's own state in live grants. They are created before the mounts so that they
  /// can be masked.
  std::vector<std::string> state_directories;
  std::vector<PlannedPlaceholder> placeholders;
  std::uint64_t most_entries = 0;      ///< filesystem.scan
  std::uint64_t calls = 0;             ///< of a held sandbox: inits that it can have at once
  std::shared_ptr<const Sight> sight;  ///< of a held sandbox, else null
  std::vector<Degraded> degraded;
  /// --require; checked again when a run finds weaker enforcement.
  std::vector<std::string> required;
  std::vector<std::string> notes;         ///< lines for stderr
  std::string weaker_isolation;           ///< of the notes, the one that is never silent by habit
  std::vector<std::string> explanations;  ///< lines for -v: what was bound and why
};

}  // namespace sbx::plan
