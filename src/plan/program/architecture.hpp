#pragma once

#include <string>
#include <string_view>

#include "host/host.hpp"

/// What an ELF file was built for, and what this machine runs in a sandbox.
namespace sbx::plan {

/// "x86-64" or "64-bit Arm": the one architecture whose system calls the filter lets through.
[[nodiscard]] std::string_view own_architecture();

/// What the ELF file was built for ("32-bit x86"), if that is another architecture and no
/// interpreter for it is registered (binfmt_misc). Empty if the kernel can be left to run it, or to
/// say what is wrong with it. `head`: its first bytes.
[[nodiscard]] std::string foreign_architecture(std::string_view head, const host::Files& files);

}  // namespace sbx::plan
