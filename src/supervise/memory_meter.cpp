#include "supervise/memory_meter.hpp"

#include <fcntl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "supervise/process_tree.hpp"

namespace sbx::supervise {
namespace {

/// The number after `name` ("Pss_Anon:") in a file of /proc, in kB; 0 when it is not there.
std::uint64_t kilobytes_of(std::string_view text, std::string_view name) {
  const auto at = text.find(name);
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + name.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Resident minus shared pages: fields 2 and 3 of /proc/PID/statm, proc(5).
std::uint64_t private_bytes(std::string_view statm) {
  std::array<std::uint64_t, 3> fields{};
  for (std::uint64_t& field : fields) {
    const auto [end, error] = std::from_chars(statm.data(), statm.data() + statm.size(), field);
    if (error != std::errc{}) return 0;
    statm.remove_prefix(static_cast<std::size_t>(end - statm.data()));
    statm.remove_prefix(std::min(statm.find_first_not_of(' '), statm.size()));
  }
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return fields[1] > fields[2] ? (fields[1] - fields[2]) * page : 0;
}

}  // namespace

/// The processes of the sandbox at one moment.
struct MemoryMeter::Tree {
  int proc;
  std::vector<std::string> folders;

  explicit Tree(const MemoryMeter& meter)
      : proc(proc_of(meter.processes_)), folders(processes_of(meter.pid1_, meter.processes_)) {}
};

std::uint64_t MemoryMeter::scratch_used() const {
  struct statfs facts{};
  if (scratch_ < 0 || ::fstatfs(scratch_, &facts) != 0) return 0;
  return (facts.f_blocks - facts.f_bfree) * static_cast<std::uint64_t>(facts.f_bsize);
}

std::uint64_t MemoryMeter::upper_bound(const Tree& tree) const {
  std::uint64_t anonymous = 0;
  std::uint64_t shared = 0;
  std::array<char, 4096> room;
  for (const std::string& folder : tree.folders) {
    anonymous += private_bytes(read_small(tree.proc, folder + "/statm", room));
    shared += kilobytes_of(read_small(tree.proc, folder + "/status", room), "RssShmem:") * 1024;
  }
  return anonymous + std::max(scratch_used(), shared);
}

std::uint64_t MemoryMeter::exact(const Tree& tree) const {
  std::uint64_t anonymous = 0;
  std::uint64_t shared = 0;
  std::array<char, 4096> room;
  for (const std::string& folder : tree.folders) {
    const std::string_view text = read_small(tree.proc, folder + "/smaps_rollup", room);
    anonymous += kilobytes_of(text, "Pss_Anon:") * 1024;
    shared += kilobytes_of(text, "Pss_Shmem:") * 1024;
    // A process may have made itself unreadable (PR_SET_DUMPABLE): then its upper bound stands.
    if (text.empty()) anonymous += private_bytes(read_small(tree.proc, folder + "/statm", room));
  }
  // A mapped file of the private tmpfs is in both: the larger of the two is what is surely there.
  return anonymous + std::max(scratch_used(), shared);
}

std::uint64_t MemoryMeter::look(std::uint64_t budget) {
  const Tree tree(*this);
  std::uint64_t used = upper_bound(tree);
  if (used > budget) used = exact(tree);
  peak_ = std::max(peak_, used);
  return used;
}

std::uint64_t next_look_microseconds(std::uint64_t headroom_bytes) {
  constexpr std::uint64_t kBytesPerMicrosecond = 8000;
  return std::clamp<std::uint64_t>(headroom_bytes / kBytesPerMicrosecond, 1000, 50'000);
}

}  // namespace sbx::supervise
