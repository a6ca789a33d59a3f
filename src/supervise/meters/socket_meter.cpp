#include "supervise/meters/socket_meter.hpp"

#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/netlink_diag.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/sys.hpp"
#include "supervise/meters/process_tree.hpp"

namespace sbx::supervise {
namespace {

/// Divisors: listing takes at most 1/20 of the time and at least 1/400. In between, the remaining
/// budget decides, as in next_look_microseconds().
constexpr std::uint64_t kShareAtMost = 20;
constexpr std::uint64_t kShareAtLeast = 400;
constexpr std::uint64_t kGrowing = 8000;  // bytes per microsecond
constexpr std::uint64_t kFromRest = 2500;
/// In microseconds: later looks read the rest of a long list.
constexpr std::uint64_t kMostAtOnce = 1000;
constexpr std::size_t kListRoom = 32768;  // the kernel fills at most this much at once

/// The number after `name` in the text of a /proc file; UINT64_MAX: unknown.
std::uint64_t count_in(std::string_view text, std::string_view name) {
  const auto at = text.find(name);
  std::uint64_t value = UINT64_MAX;
  if (at == std::string_view::npos) return value;
  std::from_chars(text.data() + at + name.size(), text.data() + text.size(), value);
  return value;
}

std::string_view read_again(UniqueFd& file, int directory, const std::string& path,
                            std::array<char, 512>& room) {
  if (!file.valid()) file = UniqueFd(::openat(directory, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return {};
  const ssize_t got = ::pread(file.get(), room.data(), room.size(), 0);
  return {room.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

/// The most that one socket may hold in each direction: the kernel doubles SO_SNDBUF and SO_RCVBUF,
/// socket(7), and TCP sizes its buffers itself up to the third number of tcp_rmem and tcp_wmem,
/// tcp(7).
std::uint64_t most_in_one_socket() {
  static const std::uint64_t most = [] {
    std::array<char, 64> room;
    std::uint64_t found = 0;
    for (const char* const file : {"/proc/sys/net/core/wmem_max", "/proc/sys/net/core/rmem_max"})
      if (const auto each = count_in(read_small(AT_FDCWD, file, room), ""); each != UINT64_MAX)
        found = std::max(found, 2 * each);
    for (const char* const file : {"/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/tcp_wmem"}) {
      const std::string_view text = read_small(AT_FDCWD, file, room);
      if (const auto each = count_in(text.substr(std::min(text.rfind('\t') + 1, text.size())), "");
          each != UINT64_MAX)
        found = std::max(found, each);
    }
    return found;
  }();
  return most;
}

/// Attributes of one message, by their number.
template <typename Value>
std::optional<Value> attribute(const std::byte* body, std::size_t size, int wanted) {
  while (size >= sizeof(rtattr)) {
    rtattr header{};
    std::memcpy(&header, body, sizeof header);
    if (header.rta_len < sizeof header || header.rta_len > size) return std::nullopt;
    if ((header.rta_type & NLA_TYPE_MASK) == wanted &&
        header.rta_len >= sizeof header + sizeof(Value)) {
      Value value{};
      std::memcpy(&value, body + sizeof header, sizeof value);
      return value;
    }
    const std::size_t step = std::min<std::size_t>(RTA_ALIGN(header.rta_len), size);
    body += step;
    size -= step;
  }
  return std::nullopt;
}

using MemoryInfo = std::array<std::uint32_t, SK_MEMINFO_WMEM_QUEUED + 1>;

/// A stream's queue is charged to its sender, whose number is 0 once the program has closed it.
std::uint64_t bytes_of_unix(const std::byte* body, std::size_t size) {
  const auto memory = attribute<MemoryInfo>(body, size, UNIX_DIAG_MEMINFO);
  std::uint64_t bytes = memory ? (*memory)[SK_MEMINFO_WMEM_ALLOC] : 0;
  if (attribute<std::uint32_t>(body, size, UNIX_DIAG_PEER).value_or(0) == 0)
    if (const auto queue = attribute<unix_diag_rqlen>(body, size, UNIX_DIAG_RQLEN))
      bytes += queue->udiag_rqueue;
  return bytes;
}

std::uint64_t bytes_of(const MemoryInfo& memory) {
  return std::uint64_t{memory[SK_MEMINFO_RMEM_ALLOC]} + memory[SK_MEMINFO_WMEM_QUEUED] +
         memory[SK_MEMINFO_FWD_ALLOC];
}

template <typename Request>
bool send_request(int socket, const Request& request) {
  struct {
    nlmsghdr header;
    Request request;
  } message{};
  message.header.nlmsg_len = sizeof message;
  message.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  message.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  message.request = request;
  return ::send(socket, &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof message);
}

}  // namespace

SocketRequest SocketMeter::request() {
  return {.domain = AF_NETLINK, .type = SOCK_RAW, .protocol = NETLINK_SOCK_DIAG};
}

SocketMeter::SocketMeter(const SocketDiagnosis& own, pid_t pid1, int processes)
    : own_(own),
      net_((processes >= 0 ? std::string("1") : process_directory(pid1)) + "/net/"),
      processes_(processes) {
  if (own_.fd >= 0) room_.resize(kListRoom);
}

SocketMeter::Counts SocketMeter::counts() {
  std::array<char, 512> room;
  const int proc = proc_of(processes_);
  Counts now;
  const std::string_view text = read_again(sockstat_, proc, net_ + "sockstat", room);
  now.all = count_in(text, "sockets: used ");
  now.tcp = count_in(text, "TCP: inuse ");
  now.tcp6 = count_in(read_again(sockstat6_, proc, net_ + "sockstat6", room), "TCP6: inuse ");
  return now;
}

std::uint64_t SocketMeter::look(std::uint64_t room) {
  cost_ = 0;
  if (own_.fd < 0) return 0;
  const std::uint64_t before = sys::spent_microseconds();
  if (!reads_ && sys::now_microseconds() >= begins_at_) begin(counts());
  if (reads_) go_on(kMostAtOnce);
  cost_ = sys::spent_microseconds() - before;
  listing_cost_ += cost_;
  if (reads_ && lists_.empty()) finish(room);
  return std::max(known_, sum_.bytes);
}

std::uint64_t SocketMeter::look_at_all(std::uint64_t room) {
  constexpr std::uint64_t kAnyTime = UINT64_MAX / 2;
  const std::uint64_t before = sys::spent_microseconds();
  if (reads_) go_on(kAnyTime);  // complete it first: the socket answers one question at a time
  begin(counts());
  if (reads_) go_on(kAnyTime);
  cost_ = listing_cost_ = sys::spent_microseconds() - before;
  if (reads_) finish(room);
  return known_;
}

/// The TCP table covers the whole machine and is the most expensive to walk: so it is listed only
/// if there are TCP sockets.
void SocketMeter::begin(const Counts& now) {
  listing_cost_ = 0;
  at_begin_ = now;
  sum_ = {};
  if (now.all <= own_.sockets) {
    known_ = 0;
    return;
  }
  lists_ = {{"netlink", AF_NETLINK, NDIAG_PROTO_ALL},
            {"UDP", AF_INET6, IPPROTO_UDP},
            {"UDP", AF_INET, IPPROTO_UDP}};
  if (now.tcp6 > 0) lists_.push_back({"TCP", AF_INET6, IPPROTO_TCP});
  if (now.tcp > own_.tcp) lists_.push_back({"TCP", AF_INET, IPPROTO_TCP});
  lists_.push_back({"unix", AF_UNIX, 0});
  reads_ = true;
  ask_next();
}

void SocketMeter::go_on(std::uint64_t most_microseconds) {
  const std::uint64_t before = sys::spent_microseconds();
  while (!lists_.empty() && sys::spent_microseconds() < before + most_microseconds) {
    if (read_part()) continue;
    lists_.pop_back();
    ask_next();
  }
}

void SocketMeter::finish(std::uint64_t room) {
  const bool rests = sum_.bytes <= known_ + known_ / 16;
  reads_ = false;
  known_ = sum_.bytes;
  begins_at_ = sys::now_microseconds() + std::clamp(room / (rests ? kFromRest : kGrowing),
                                                    listing_cost_ * kShareAtMost,
                                                    listing_cost_ * kShareAtLeast);
  const std::uint64_t all = std::min(at_begin_.all, counts().all);
  if (all != UINT64_MAX) hidden_ = std::max(hidden_, all - std::min(all, sum_.sockets));
}

std::uint64_t SocketMeter::may_hide() const {
  return hidden_ * most_in_one_socket();
}

bool SocketMeter::ask(const List& list) const {
  const auto family = static_cast<std::uint8_t>(list.family);
  const auto protocol = static_cast<std::uint8_t>(list.protocol);
  if (list.family == AF_UNIX)
    return send_request(own_.fd, unix_diag_req{.sdiag_family = family,
                                               .sdiag_protocol = 0,
                                               .pad = 0,
                                               .udiag_states = ~0U,
                                               .udiag_ino = 0,
                                               .udiag_show = UDIAG_SHOW_PEER | UDIAG_SHOW_RQLEN |
                                                             UDIAG_SHOW_MEMINFO,
                                               .udiag_cookie = {~0U, ~0U}});
  if (list.family == AF_NETLINK)
    return send_request(own_.fd, netlink_diag_req{.sdiag_family = family,
                                                  .sdiag_protocol = protocol,
                                                  .pad = 0,
                                                  .ndiag_ino = 0,
                                                  .ndiag_show = NDIAG_SHOW_MEMINFO,
                                                  .ndiag_cookie = {}});
  // Sockets in TIME_WAIT or being created are not full sockets.
  constexpr unsigned kNoSockets = 1U << TCP_TIME_WAIT | 1U << TCP_SYN_RECV | 1U << 12;
  inet_diag_req_v2 request{};
  request.sdiag_family = family;
  request.sdiag_protocol = protocol;
  request.idiag_ext = 1U << (INET_DIAG_SKMEMINFO - 1);
  request.idiag_states = ~kNoSockets;
  return send_request(own_.fd, request);
}

void SocketMeter::ask_next() {
  while (!lists_.empty() && !ask(lists_.back())) {
    note_unlisted(lists_.back().kind);
    lists_.pop_back();
  }
}

bool SocketMeter::read_part() {
  const ssize_t got = ::recv(own_.fd, room_.data(), room_.size(), MSG_DONTWAIT);
  if (got <= 0) {
    note_unlisted(lists_.back().kind);
    return false;
  }
  auto left = static_cast<std::size_t>(got);
  for (const std::byte* at = room_.data(); left >= sizeof(nlmsghdr);) {
    nlmsghdr header{};
    std::memcpy(&header, at, sizeof header);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > left) return false;
    if (header.nlmsg_type == NLMSG_DONE) return false;
    if (header.nlmsg_type == NLMSG_ERROR) {
      note_unlisted(lists_.back().kind);
      return false;
    }
    add(at + sizeof header, header.nlmsg_len - sizeof header);
    const std::size_t step = std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), left);
    at += step;
    left -= step;
  }
  return true;
}

void SocketMeter::add(const void* body, std::size_t size) {
  const auto* const bytes = static_cast<const std::byte*>(body);
  const int family = lists_.back().family;
  const std::size_t head = family == AF_UNIX      ? sizeof(unix_diag_msg)
                           : family == AF_NETLINK ? sizeof(netlink_diag_msg)
                                                  : sizeof(inet_diag_msg);
  if (size < head) return;
  ++sum_.sockets;
  if (family == AF_UNIX) {
    sum_.bytes += bytes_of_unix(bytes + head, size - head);
    return;
  }
  const int number = family == AF_NETLINK ? int{NETLINK_DIAG_MEMINFO} : int{INET_DIAG_SKMEMINFO};
  if (const auto memory = attribute<MemoryInfo>(bytes + head, size - head, number))
    sum_.bytes += bytes_of(*memory);
}

void SocketMeter::note_unlisted(const char* kind) {
  if (unlisted_.find(kind) != std::string::npos) return;
  if (!unlisted_.empty()) unlisted_ += ", ";
  unlisted_ += kind;
}

}  // namespace sbx::supervise
