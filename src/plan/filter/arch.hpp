#pragma once

#include <linux/audit.h>

#include <cstdint>

/// What differs between architectures, besides the table itself (syscalls_<arch>.def).
namespace sbx::plan {

#if defined(__x86_64__)
#define SBX_SYSCALL_TABLE "plan/filter/syscalls_x86_64.def"
inline constexpr std::uint32_t kAuditArch = AUDIT_ARCH_X86_64;
/// The first system call number of x32, the other ABI that reports AUDIT_ARCH_X86_64 (seccomp(2), "Caveats").
inline constexpr std::uint32_t kForeignAbiStart = 0x40000000;
#else
#error "no table of system calls for this architecture yet"
#endif

}  // namespace sbx::plan
