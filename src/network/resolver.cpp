#include "network/resolver.hpp"

#include <ares.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>
#include <utility>

namespace sbx::network {
namespace {

using policy::Address;
using policy::Family;
using Failure = Resolver::Failure;

/// How long an address waits for those of the other family (RFC 8305, 3).
constexpr std::chrono::milliseconds kOtherFamily{50};
constexpr int kTries = 3;

Address address_in(const ares_addrinfo_node& node) {
  if (node.ai_family == AF_INET)
    return Address::from_bytes(Family::v4,
                               &reinterpret_cast<const sockaddr_in*>(node.ai_addr)->sin_addr);
  return Address::from_bytes(Family::v6,
                             &reinterpret_cast<const sockaddr_in6*>(node.ai_addr)->sin6_addr);
}

std::vector<Address> addresses_of(const ares_addrinfo* list) {
  std::vector<Address> addresses;
  // An answer may have four thousand.
  std::set<std::pair<Family, std::array<std::uint8_t, 16>>> seen;
  for (const ares_addrinfo_node* node = list == nullptr ? nullptr : list->nodes; node != nullptr;
       node = node->ai_next) {
    if (node->ai_family != AF_INET && node->ai_family != AF_INET6) continue;
    const Address address = address_in(*node);
    if (seen.emplace(address.family, address.bytes).second) addresses.push_back(address);
  }
  return addresses;
}

Failure failure_of(int status) {
  switch (status) {
    case ARES_SUCCESS:
      return Failure::none;
    case ARES_ENOTFOUND:
    case ARES_ENODATA:
    case ARES_EBADNAME:
      return Failure::no_such_name;
    case ARES_ETIMEOUT:
      return Failure::timed_out;
    default:
      return Failure::no_answer;
  }
}

std::string duration_text(std::chrono::milliseconds time) {
  return time.count() % 1000 == 0 ? std::to_string(time.count() / 1000) + " s"
                                  : std::to_string(time.count()) + " ms";
}

std::string why_no_answer(int status) {
  // Also what c-ares makes of servers that fail or refuse: it goes on until there is no other.
  if (status == ARES_ECONNREFUSED) return "no DNS server of this machine answers";
  return std::string("no answer from DNS (") + ::ares_strerror(status) + ")";
}

struct ChannelDeleter {
  void operator()(ares_channel channel) const { ::ares_destroy(channel); }
};
using Channel = std::unique_ptr<std::remove_pointer_t<ares_channel>, ChannelDeleter>;

/// c-ares keeps its process-wide state until the last user is gone.
struct Library {
  Library() { ready = ::ares_library_init(ARES_LIB_INIT_ALL) == ARES_SUCCESS; }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (ready) ::ares_library_cleanup();
  }
  bool ready = false;
};

/// The stronger of two answers about one name: "no such name" holds for the name, "no address" only
/// for one family.
int weightier(int one, int other) {
  const auto rank = [](int status) {
    return status == ARES_ENOTFOUND ? 3
           : status == ARES_SUCCESS ? 0
           : status == ARES_ENODATA ? 1
                                    : 2;
  };
  return rank(other) > rank(one) ? other : one;
}

}  // namespace

class Resolver::Impl {
 public:
  Impl(EventLoop& loop, Options options) : loop_(loop), options_(std::move(options)) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl();

  Status start();
  LookupId lookup(std::string_view canonical, Callback callback);
  void forget(LookupId id);

 private:
  struct Lookup {
    std::string name;
    Callback callback;
    std::vector<Address> addresses{};
    bool asked_servers = false;
    int pending = 0;
    int status = ARES_SUCCESS;
    EventLoop::TimerId deadline = EventLoop::kNoTimer;
    EventLoop::TimerId other_family = EventLoop::kNoTimer;
  };
  /// What c-ares is given: it calls back for each one, also when its lookup was forgotten.
  struct Ticket {
    Impl* self = nullptr;
    LookupId id = 0;
  };
  struct Arrival {
    LookupId id = 0;
    int status = 0;
    std::vector<Address> addresses;
  };

  Result<Channel> make_channel(const char* lookups);
  static void socket_state(void* self, ares_socket_t fd, int readable, int writable);
  static void finished(void* ticket, int status, int timeouts, ares_addrinfo* list);
  void ask(const Channel& channel, LookupId id, const std::string& name, int family);
  void deliver();
  void arrived(Arrival arrival);
  void complete(LookupId id);
  [[nodiscard]] Answer answer_of(Lookup& lookup) const;
  void process(int readable, int writable);
  void arm();

  EventLoop& loop_;
  const Options options_;
  Library library_;
  std::unordered_map<LookupId, Lookup> lookups_;
  std::vector<Arrival> arrivals_;
  LookupId last_ = 0;
  EventLoop::TimerId timer_ = EventLoop::kNoTimer;
  EventLoop::TimerId delivery_ = EventLoop::kNoTimer;
  std::set<int> watched_;
  // Destroyed first: ares_destroy calls back.
  Channel files_;
  Channel servers_;
};

Resolver::Impl::~Impl() {
  for (auto& [id, lookup] : lookups_) {
    loop_.cancel(lookup.deadline);
    loop_.cancel(lookup.other_family);
  }
  loop_.cancel(timer_);
  loop_.cancel(delivery_);
}

Result<Channel> Resolver::Impl::make_channel(const char* lookups) {
  std::string order = lookups;
  std::string path = options_.resolv_conf;
  ares_options options{};
  // Absolute names: a search list would make another name of one that doesn't exist.
  options.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES;
  options.timeout = static_cast<int>(std::max<std::int64_t>(options_.timeout.count() / kTries, 1));
  options.tries = kTries;
  options.ndots = 1;
  options.lookups = order.data();
  options.resolvconf_path = path.data();
  options.sock_state_cb = &socket_state;
  options.sock_state_cb_data = this;
  ares_channel channel = nullptr;
  const int status = ::ares_init_options(&channel, &options,
                                         ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
                                             ARES_OPT_NDOTS | ARES_OPT_DOMAINS | ARES_OPT_LOOKUPS |
                                             ARES_OPT_RESOLVCONF | ARES_OPT_SOCK_STATE_CB);
  if (status != ARES_SUCCESS) {
    return fail({.kind = ErrorKind::host,
                 .code = "no-resolver",
                 .message = "cannot look up names as '" + options_.resolv_conf +
                            "' says: " + ::ares_strerror(status)});
  }
  Channel owned(channel);
  if (!options_.servers.empty() &&
      ::ares_set_servers_ports_csv(channel, options_.servers.c_str()) != ARES_SUCCESS) {
    return fail({.kind = ErrorKind::host,
                 .code = "no-resolver",
                 .message = "'" + options_.servers + "' names no DNS servers"});
  }
  return owned;
}

Status Resolver::Impl::start() {
  if (!library_.ready) {
    return fail({.kind = ErrorKind::host,
                 .code = "no-resolver",
                 .message = "cannot initialise the resolver library"});
  }
  files_ = SBX_TRY(make_channel("f"));
  servers_ = SBX_TRY(make_channel("b"));
  return {};
}

Resolver::LookupId Resolver::Impl::lookup(std::string_view canonical, Callback callback) {
  const LookupId id = ++last_;
  Lookup lookup{.name = std::string(canonical), .callback = std::move(callback), .pending = 1};
  lookup.deadline = loop_.after(options_.timeout, [this, id] { complete(id); });
  const std::string name = lookup.name;
  lookups_.emplace(id, std::move(lookup));
  // A name that stands in /etc/hosts has the addresses there and no others.
  ask(files_, id, name, AF_UNSPEC);
  return id;
}

void Resolver::Impl::ask(const Channel& channel, LookupId id, const std::string& name, int family) {
  ares_addrinfo_hints hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = ARES_AI_NOSORT;  // sorting would connect a socket to each address
  auto ticket = std::make_unique<Ticket>(Ticket{this, id});
  ::ares_getaddrinfo(channel.get(), name.c_str(), nullptr, &hints, &finished, ticket.release());
  arm();
}

void Resolver::Impl::finished(void* data, int status, int, ares_addrinfo* list) {
  const std::unique_ptr<Ticket> ticket(static_cast<Ticket*>(data));
  std::vector<Address> addresses = addresses_of(list);
  if (list != nullptr) ::ares_freeaddrinfo(list);
  if (status == ARES_EDESTRUCTION) return;
  Impl& self = *ticket->self;
  self.arrivals_.push_back({ticket->id, status, std::move(addresses)});
  // Not now: c-ares is in the middle of its lists, and a callback may look up and cancel.
  if (self.delivery_ == EventLoop::kNoTimer)
    self.delivery_ = self.loop_.after(std::chrono::microseconds(0), [&self] { self.deliver(); });
}

void Resolver::Impl::deliver() {
  delivery_ = EventLoop::kNoTimer;
  for (Arrival& arrival : std::exchange(arrivals_, {})) arrived(std::move(arrival));
}

void Resolver::Impl::arrived(Arrival arrival) {
  const auto found = lookups_.find(arrival.id);
  if (found == lookups_.end()) return;
  Lookup& lookup = found->second;
  --lookup.pending;
  lookup.addresses.insert(lookup.addresses.end(), arrival.addresses.begin(),
                          arrival.addresses.end());
  if (!lookup.asked_servers && lookup.addresses.empty()) {
    lookup.asked_servers = true;
    lookup.pending = 2;
    const std::string name = lookup.name;
    ask(servers_, arrival.id, name, AF_INET);
    ask(servers_, arrival.id, name, AF_INET6);
    return;
  }
  lookup.status = weightier(lookup.status, arrival.status);
  if (lookup.pending <= 0) return complete(arrival.id);
  if (lookup.addresses.empty()) return;
  lookup.other_family = loop_.after(kOtherFamily, [this, id = arrival.id] { complete(id); });
}

Resolver::Answer Resolver::Impl::answer_of(Lookup& lookup) const {
  if (!lookup.addresses.empty()) return {.addresses = std::move(lookup.addresses)};
  const int status = lookup.pending > 0 ? int{ARES_ETIMEOUT} : lookup.status;
  Answer answer{.failure = failure_of(status)};
  if (answer.failure == Failure::timed_out)
    answer.why = "timed out after " + duration_text(options_.timeout);
  else if (answer.failure == Failure::no_such_name)
    answer.why = status == ARES_ENODATA ? "the name has no address" : "no such name";
  else
    answer.why = why_no_answer(status);
  return answer;
}

void Resolver::Impl::complete(LookupId id) {
  const auto found = lookups_.find(id);
  if (found == lookups_.end()) return;
  Answer answer = answer_of(found->second);
  const Callback callback = std::move(found->second.callback);
  forget(id);
  callback(std::move(answer));
}

void Resolver::Impl::forget(LookupId id) {
  const auto found = lookups_.find(id);
  if (found == lookups_.end()) return;
  loop_.cancel(found->second.deadline);
  loop_.cancel(found->second.other_family);
  lookups_.erase(found);
}

void Resolver::Impl::socket_state(void* data, ares_socket_t fd, int readable, int writable) {
  Impl& self = *static_cast<Impl*>(data);
  const std::uint32_t events =
      (readable != 0 ? std::uint32_t{EPOLLIN} : 0) | (writable != 0 ? std::uint32_t{EPOLLOUT} : 0);
  if (events == 0) {
    self.watched_.erase(fd);
    return self.loop_.forget(fd);
  }
  if (!self.watched_.insert(fd).second) return self.loop_.set_events(fd, events);
  // Without memory in the kernel the lookup times out.
  (void)self.loop_.watch(fd, events, [&self, fd](std::uint32_t happened) {
    const bool write = (happened & EPOLLOUT) != 0;
    const bool read = (happened & ~std::uint32_t{EPOLLOUT}) != 0;  // errors are read
    self.process(read ? fd : ARES_SOCKET_BAD, write ? fd : ARES_SOCKET_BAD);
  });
}

void Resolver::Impl::process(int readable, int writable) {
  ::ares_process_fd(servers_.get(), readable, writable);
  arm();
}

void Resolver::Impl::arm() {
  loop_.cancel(std::exchange(timer_, EventLoop::kNoTimer));
  timeval next{};
  if (::ares_timeout(servers_.get(), nullptr, &next) == nullptr) return;
  const auto wait = std::chrono::seconds(next.tv_sec) + std::chrono::microseconds(next.tv_usec);
  // c-ares rounds down to milliseconds: too early would be a busy loop.
  timer_ = loop_.after(wait + std::chrono::milliseconds(1), [this] {
    timer_ = EventLoop::kNoTimer;
    process(ARES_SOCKET_BAD, ARES_SOCKET_BAD);
  });
}

Resolver::Resolver(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Resolver::~Resolver() = default;

Result<std::unique_ptr<Resolver>> Resolver::make(EventLoop& loop, Options options) {
  auto impl = std::make_unique<Impl>(loop, std::move(options));
  SBX_TRY(impl->start());
  return std::unique_ptr<Resolver>(new Resolver(std::move(impl)));
}

Resolver::LookupId Resolver::lookup(std::string_view canonical, Callback callback) {
  return impl_->lookup(canonical, std::move(callback));
}

void Resolver::cancel(LookupId id) {
  impl_->forget(id);
}

}  // namespace sbx::network
