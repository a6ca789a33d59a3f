#pragma once

#include <sys/fsuid.h>
#include <sys/types.h>

namespace sbx::workspace {

/// What is made meanwhile belongs to the sandbox. For root: its own uid has no id in the sandbox,
/// and making a file there is EOVERFLOW. The rights of root over files come back with it,
/// setfsuid(2).
class MadeFor {
 public:
  MadeFor(uid_t uid, gid_t gid) {
    gid_ = static_cast<gid_t>(::setfsgid(gid));
    uid_ = static_cast<uid_t>(::setfsuid(uid));
  }
  MadeFor(const MadeFor&) = delete;
  MadeFor& operator=(const MadeFor&) = delete;
  ~MadeFor() {
    ::setfsuid(uid_);
    ::setfsgid(gid_);
  }

 private:
  uid_t uid_ = 0;
  gid_t gid_ = 0;
};

}  // namespace sbx::workspace
