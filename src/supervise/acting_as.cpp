#include "supervise/acting_as.hpp"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/message.hpp"

namespace sbx::supervise {
namespace {

bool has_no_capability() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2] = {};
  return ::syscall(SYS_capget, &header, data) == 0 && data[0].effective == 0 &&
         data[1].effective == 0;
}

}  // namespace

Result<ProgramIds> ProgramIds::make(uid_t uid, gid_t gid) {
  ProgramIds ids;
  ids.changes_ = true;
  ids.uid_ = uid;
  ids.gid_ = gid;
  ids.own_uid_ = ::geteuid();
  ids.own_gid_ = ::getegid();
  const int count = ::getgroups(0, nullptr);
  ids.own_groups_.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  bool can = count >= 0 && ::getgroups(count, ids.own_groups_.data()) == count;
  if (can) {
    const ActingAs program(ids);
    can = program.is() && has_no_capability();  // securebits(7) can say otherwise
  }
  if (can) return ids;
  return fail(Error{.kind = ErrorKind::setup,
                    .code = "setup-identity",
                    .message = "sbx can't take the ids of its program without capabilities",
                    .hint = "start sbx as root, without securebits: capsh --print shows them"});
}

bool ProgramIds::take_for_good() const {
  return !changes_ || (::syscall(SYS_setgroups, 0, nullptr) == 0 &&
                       ::syscall(SYS_setresgid, -1, gid_, -1) == 0 &&
                       ::syscall(SYS_setresuid, -1, uid_, -1) == 0);
}

ActingAs::ActingAs(const ProgramIds& ids) : ids_(ids), is_(ids.take_for_good()) {}

/// The uid first: with it the capability to change the others comes back.
ActingAs::~ActingAs() {
  if (!ids_.changes_) return;
  SBX_ASSERT(::syscall(SYS_setresuid, -1, ids_.own_uid_, -1) == 0);
  SBX_ASSERT(::syscall(SYS_setresgid, -1, ids_.own_gid_, -1) == 0);
  SBX_ASSERT(::syscall(SYS_setgroups, ids_.own_groups_.size(), ids_.own_groups_.data()) == 0);
}

}  // namespace sbx::supervise
