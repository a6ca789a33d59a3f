#pragma once

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sbx {

/// The capabilities of this thread have no effect meanwhile, capabilities(7): what it does for a
/// program that has none then succeeds only where the program could do it.
class WithoutCapabilities {
 public:
  explicit WithoutCapabilities(bool wanted) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    if (!wanted || ::syscall(SYS_capget, &header, held_) != 0) return;
    __user_cap_data_struct none[2] = {held_[0], held_[1]};
    for (__user_cap_data_struct& each : none) each.effective = 0;
    are_out_ = ::syscall(SYS_capset, &header, none) == 0;
  }
  WithoutCapabilities(const WithoutCapabilities&) = delete;
  WithoutCapabilities& operator=(const WithoutCapabilities&) = delete;
  ~WithoutCapabilities() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    if (are_out_) ::syscall(SYS_capset, &header, held_);
  }

 private:
  __user_cap_data_struct held_[2] = {};
  bool are_out_ = false;
};

}  // namespace sbx
