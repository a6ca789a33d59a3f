#include "supervise/socket_copies.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "base/descriptor_reserve.hpp"
#include "base/entries.hpp"
#include "base/sys.hpp"
#include "supervise/meters/process_list.hpp"
#include "supervise/meters/process_tree.hpp"

namespace sbx::supervise {
namespace {

/// A quarter of what this process may have open beside its reserve: streams and meters need some.
std::size_t most_copies() {
  constexpr rlim_t kMost = 512;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
  const rlim_t reserved = sys::reserved_descriptors(files.rlim_cur);
  return static_cast<std::size_t>(
      std::min((files.rlim_cur - std::min(files.rlim_cur, reserved)) / 4, kMost));
}

}  // namespace

SocketCopies::SocketCopies(pid_t keeper) : keeper_(keeper), most_(most_copies()) {}

bool SocketCopies::has_room() {
  if (copies_.size() < most_) return true;
  const std::uint64_t began = sys::now_microseconds();
  sweep();
  constexpr std::size_t kLittle = 8;  // a part of the table
  constexpr std::uint64_t kRest = 20;
  const std::uint64_t ended = sys::now_microseconds();
  if (most_ - copies_.size() < most_ / kLittle) rests_until_ = ended + kRest * (ended - began);
  return copies_.size() < most_;
}

bool SocketCopies::must_rest() const {
  return copies_.size() >= most_ && sys::now_microseconds() < rests_until_;
}

void SocketCopies::sweep() {
  if (const auto used = in_use())
    std::erase_if(copies_, [&](const auto& copy) { return !used->contains(copy.first); });
}

/// Not those on their way in another socket's queue, and not those of a thread with descriptors of
/// its own: such a socket can't be connected afterwards.
std::optional<std::set<SocketCopies::Inode>> SocketCopies::in_use() const {
  std::size_t left = 8192;  // some 10 ms
  std::set<Inode> used;
  ProcessList processes(keeper_, -1);
  if (!processes.sees_pid1()) return std::nullopt;
  processes.refresh();
  for (const ProcessList::Process& each : processes.all()) {
    const std::string path = process_directory(each.number) + "/fd";
    const UniqueFd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory.valid()) continue;
    (void)sys::read_entries<4096>(directory.get(), [&](const dirent64& entry) {
      std::array<char, 64> link;
      const ssize_t size = ::readlinkat(directory.get(), static_cast<const char*>(entry.d_name),
                                        link.data(), link.size());
      const auto inode =
          socket_in_link({link.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))});
      if (inode) used.insert(*inode);
      return --left > 0;
    });
    if (left == 0) return std::nullopt;
  }
  return used;
}

void SocketCopies::add(UniqueFd socket) {
  const Inode inode = inode_of(socket.get());
  copies_.insert_or_assign(inode, std::move(socket));
}

int SocketCopies::find(Inode inode) const {
  const auto found = copies_.find(inode);
  return found == copies_.end() ? -1 : found->second.get();
}

SocketCopies::Inode SocketCopies::inode_of(int socket) {
  struct stat facts{};
  return ::fstat(socket, &facts) == 0 ? facts.st_ino : 0;
}

std::optional<std::uint64_t> socket_in_link(std::string_view link) {
  constexpr std::string_view kBefore = "socket:[";
  if (!link.starts_with(kBefore)) return std::nullopt;
  SocketCopies::Inode inode = 0;
  const char* const end = link.data() + link.size();
  const auto [next, error] = std::from_chars(link.data() + kBefore.size(), end, inode);
  if (error != std::errc() || next == end || *next != ']') return std::nullopt;
  return inode;
}

}  // namespace sbx::supervise
