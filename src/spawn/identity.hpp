#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "host/host.hpp"
#include "plan/plan.hpp"

/// The sandbox's identity on the host. For an ordinary caller: the caller's own. For a caller with
/// root's privileges: R = base + 1000, a uid that nothing else uses, so that the sandbox gets
/// neither root's files nor root's exemptions (RLIMIT_NPROC, sysctls).
namespace sbx::spawn {

struct MappedIdentity {
  bool changes_ids = false;
  uid_t base = 0;  ///< first of the 65,536 host ids that map to 0 to 65535 inside
  uid_t uid_on_host = 0;
  gid_t gid_on_host = 0;
  UniqueFd lock;  ///< of the base, in a file of root's: no two runs share one
  /// Without a user namespace the keeper has this uid, and the program has `uid_on_host`.
  /// 0: there is no keeper.
  uid_t keeper = 0;
};

/// Chooses and locks an identity, as the plan wants it. Errors: host (no free ids, no place for the
/// locks).
[[nodiscard]] Result<MappedIdentity> acquire_identity(const plan::Identity& wanted,
                                                      const host::Host& host);

/// Writes setgroups, uid_map and gid_map of a process just cloned. Errors: setup.
[[nodiscard]] Status write_id_maps(pid_t pid, const MappedIdentity& identity,
                                   const host::Host& host);

/// User namespaces that exist only as maps for idmapped mounts: from ids on disk to ids of the
/// sandbox, where the owner of the granted directory becomes 1000. One per owner.
class IdMaps {
 public:
  explicit IdMaps(uid_t base) : base_(base) {}
  /// The namespace's descriptor for files owned by uid:gid. Errors: setup. Needs CAP_SETUID over
  /// the initial user namespace.
  [[nodiscard]] Result<int> for_owner(uid_t uid, gid_t gid);

 private:
  uid_t base_;
  std::map<std::pair<uid_t, gid_t>, UniqueFd> namespaces_;
};

}  // namespace sbx::spawn
