#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <sbx/error.hpp>
#include <sbx/units.hpp>

#include "base/budgets.hpp"
/// A policy after all layers are merged: plain data that does not change. Only src/policy reads
/// TOML.
namespace sbx::policy {

/// A value and the place that set it.
template <class T>
struct Sourced {
  T value{};
  Origin origin{};
};
template <class T>
using SourcedList = std::vector<Sourced<T>>;

enum class Enforcement : std::uint8_t { strict, best_effort };
/// From narrow to wide.
enum class Isolation : std::uint8_t { namespaces, automatic, landlock };
enum class WorkspaceMode : std::uint8_t { empty, read_only, overlay, read_write };
enum class SyscallBase : std::uint8_t { none, minimal, default_ };
enum class DeniedCall : std::uint8_t { kill, errno_ };
enum class NetworkMode : std::uint8_t { none, allow_list, host };
enum class DiskOn : std::uint8_t { memory, directory };
enum class Exceed : std::uint8_t { kill, automatic, truncate };
enum class RuleOperator : std::uint8_t { eq, ne, lt, le, gt, ge, in, masked_eq };
enum class RuleAction : std::uint8_t { allow, deny };

/// A granted path. `source` is absolute ("~" and relative forms are already resolved against the
/// layer's directory); `target` is absolute, or empty for "where it is on the host".
struct PathGrant {
  std::string source;
  std::string target;
  bool optional = false;
  bool special = false;  ///< of filesystem.write: FIFOs and sockets may be made in it
  bool operator==(const PathGrant&) const = default;
};

/// One `[[syscalls.rule]]`.
struct SyscallRule {
  std::string name;            ///< of the system call
  bool has_condition = false;  ///< false: the rule holds for every call of that name
  int argument = 0;            ///< 0 to 5
  RuleOperator op = RuleOperator::eq;
  std::vector<std::uint64_t>
      values;  ///< one value; several with `in`; {mask, value} with masked_eq
  std::vector<std::string>
      symbols;  ///< the values as written ("AF_UNIX"), for messages and the writer
  RuleAction action = RuleAction::allow;
  std::string reason;
  bool operator==(const SyscallRule&) const = default;
};

struct Interpreters {
  SourcedList<std::string> allow;
  Sourced<std::string> venv;
  std::map<std::string, Sourced<std::vector<std::string>>> extensions;  ///< "py" -> {"python3"}
};
struct Workspace {
  Sourced<std::string>
      source;  ///< as written ("."): resolved against the working directory by plan
  Sourced<WorkspaceMode> mode;
};
struct Outputs {
  SourcedList<std::string> collect;
  Sourced<Bytes> max_bytes;
  Sourced<std::uint64_t> max_files;
  Sourced<std::uint64_t> max_depth;
};
struct Filesystem {
  Sourced<std::string> system;  ///< "host" or an absolute directory
  SourcedList<PathGrant> read;
  SourcedList<PathGrant> write;
  SourcedList<std::string> deny;
  SourcedList<std::string> sockets;
  Sourced<std::uint64_t> scan;
  Sourced<bool> landlock;
  SourcedList<std::string> seed;
  SourcedList<std::string> private_;  ///< absolute directories inside
  Workspace workspace;
  Outputs outputs;
};
struct Environment {
  Sourced<std::string> user;
  SourcedList<std::string> pass;
  std::map<std::string, Sourced<std::string>> set;
};
struct Syscalls {
  Sourced<SyscallBase> base;
  SourcedList<std::string> allow;  ///< names and @groups
  SourcedList<std::string> deny;
  Sourced<DeniedCall> denied;
  SourcedList<SyscallRule> rules;
};
struct Network {
  Sourced<NetworkMode> mode;
  SourcedList<std::string> allow;
  Sourced<bool> private_;
  Sourced<bool> match_sni;
  SourcedList<std::string> publish;
  Sourced<bool> named;
};
struct Limits {
#define SBX_LIMIT(name, type, initial, form) Sourced<type> name;
  SBX_BUDGETS(SBX_LIMIT)
#undef SBX_LIMIT
  Sourced<std::uint64_t> open_files;
  Sourced<DiskOn> disk_on;
};
struct Output {
  Sourced<Bytes> stdout_;
  Sourced<Bytes> stderr_;
  Sourced<Bytes> passed;
  Sourced<Exceed> exceed;
  Sourced<Bytes> results;  ///< of a cell
};

/// Of sessions only; a run has no use for them.
struct Session {
  Sourced<Milliseconds> idle;
  Sourced<Milliseconds> lifetime;
  Sourced<std::uint64_t> calls;
  Sourced<std::uint64_t> contexts;
  Sourced<Milliseconds> cpu_time;  ///< 0 means unlimited
  Sourced<Bytes> log;
  Sourced<bool> put_aside;  ///< new protected names in live directories are renamed
};

struct Policy {
  Sourced<std::string> name;
  Sourced<std::string> description;
  Sourced<bool> locked;
  Sourced<Enforcement> enforcement;
  Sourced<Isolation> isolation;
  Interpreters interpreters;
  Filesystem filesystem;
  Environment environment;
  Syscalls syscalls;
  Network network;
  Limits limits;
  Output output;
  Session session;
  /// "built-in", or the path of the strongest policy file; for the record.
  std::string source;
  /// Lines worth telling on stderr ("policy file lies inside the workspace", "used the built-in of
  /// that name").
  std::vector<std::string> notes;
  /// The files that were read, absolute: read-only inside, never applied or collected.
  std::vector<std::string> files;
  /// What led to those files: the user's config.toml if it was read, and the place of each symbolic
  /// link on the way to one of them, its directory canonical. Whoever replaces one of these chooses
  /// what the next run may do, so they are protected as the files are.
  std::vector<std::string> ways;
};

}  // namespace sbx::policy
