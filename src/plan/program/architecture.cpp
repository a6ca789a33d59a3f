#include "plan/program/architecture.hpp"

#include <elf.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

namespace sbx::plan {
namespace {

#if defined(__x86_64__)
constexpr std::uint16_t kOwnMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kOwnMachine = EM_AARCH64;
#endif

struct MachineName {
  std::uint16_t machine;
  std::string_view in_32_bits;
  std::string_view in_64_bits;
};
constexpr auto kMachines = std::to_array<MachineName>({
    {EM_386, "32-bit x86", ""},
    {EM_X86_64, "x32", "x86-64"},
    {EM_ARM, "32-bit Arm", ""},
    {EM_AARCH64, "64-bit Arm with 32-bit pointers", "64-bit Arm"},
    {EM_RISCV, "32-bit RISC-V", "64-bit RISC-V"},
    {EM_PPC64, "", "64-bit PowerPC"},
    {EM_S390, "31-bit S/390", "64-bit S/390"},
});

/// e_type and the fields after it are as wide in both classes, elf(5).
constexpr std::size_t kMachineAt = 18;
constexpr std::size_t kNeeded = 20;

std::string machine_name(std::uint16_t machine, bool wide) {
  const auto* const known = std::ranges::find(kMachines, machine, &MachineName::machine);
  const std::string_view name = known == kMachines.end() ? std::string_view()
                                : wide                   ? known->in_64_bits
                                                         : known->in_32_bits;
  if (!name.empty()) return std::string(name);
  return "another machine (ELF number " + std::to_string(machine) + ")";
}

/// The bytes of "7f454c46…".
std::string bytes_of(std::string_view hex) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
    unsigned value = 0;
    std::from_chars(hex.data() + at, hex.data() + at + 2, value, 16);
    bytes += static_cast<char>(value);
  }
  return bytes;
}

/// Whether an entry of binfmt_misc applies to a file, as in
/// Documentation/admin-guide/binfmt-misc.rst.
bool applies(std::string_view entry, std::string_view head) {
  if (!entry.starts_with("enabled")) return false;
  std::size_t offset = 0;
  std::string magic;
  std::string mask;
  while (!entry.empty()) {
    const std::string_view line = entry.substr(0, entry.find('\n'));
    entry.remove_prefix(std::min(entry.size(), line.size() + 1));
    if (line.starts_with("offset "))
      std::from_chars(line.data() + 7, line.data() + line.size(), offset);
    if (line.starts_with("magic ")) magic = bytes_of(line.substr(6));
    if (line.starts_with("mask ")) mask = bytes_of(line.substr(5));
  }
  if (magic.empty() || offset > head.size() || magic.size() > head.size() - offset) return false;
  for (std::size_t i = 0; i < magic.size(); ++i) {
    const int differs = head[offset + i] ^ magic[i];
    if ((i < mask.size() ? differs & mask[i] : differs) != 0) return false;
  }
  return true;
}

bool has_interpreter(std::string_view head, const host::Files& files) {
  const std::string directory = "/proc/sys/fs/binfmt_misc";
  constexpr std::size_t kEntryLimit = 4096;
  const auto entries = files.list(directory);
  return entries && std::ranges::any_of(*entries, [&](const host::Entry& entry) {
           if (entry.name == "register" || entry.name == "status") return false;
           const auto text = files.read_head(directory + "/" + entry.name, kEntryLimit);
           return text && applies(*text, head);
         });
}

}  // namespace

std::string_view own_architecture() {
  return std::ranges::find(kMachines, kOwnMachine, &MachineName::machine)->in_64_bits;
}

std::string foreign_architecture(std::string_view head, const host::Files& files) {
  if (head.size() < kNeeded) return {};
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(head[at]); };
  const bool wide = byte(EI_CLASS) == ELFCLASS64;
  const bool big_endian = byte(EI_DATA) == ELFDATA2MSB;
  const auto machine =
      static_cast<std::uint16_t>(big_endian ? byte(kMachineAt) << 8 | byte(kMachineAt + 1)
                                            : byte(kMachineAt + 1) << 8 | byte(kMachineAt));
  if (machine == kOwnMachine && wide && !big_endian) return {};
  if (has_interpreter(head, files)) return {};
  return machine_name(machine, wide) + (big_endian ? " in big-endian order" : "");
}

}  // namespace sbx::plan
