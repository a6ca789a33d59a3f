#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.hpp"
#include "base/result.hpp"
#include "policy/addresses.hpp"

/// Names on the host: /etc/hosts, then the servers of /etc/resolv.conf, by c-ares in the
/// supervisor's loop. Names are absolute; search lists, NSS and HOSTALIASES are not used.
namespace sbx::network {

class Resolver {
 public:
  struct Options {
    std::chrono::milliseconds timeout{5000};  ///< of a whole lookup
    /// "ADDRESS" or "ADDRESS:PORT", comma-separated: asked instead of those of resolv.conf.
    std::string servers{};
    std::string resolv_conf = "/etc/resolv.conf";
  };
  enum class Failure : std::uint8_t {
    none,
    no_such_name,  ///< there is none, or it has no address
    timed_out,
    no_answer,  ///< servers refuse or can't be reached
  };
  struct Answer {
    std::vector<policy::Address> addresses;  ///< as the server ordered them, v4 and v6, each once
    Failure failure = Failure::none;
    /// "no such name", "timed out after 5 s", "no DNS server of this machine answers"
    std::string why;
  };
  using Callback = std::function<void(Answer)>;
  using LookupId = std::uint64_t;

  /// Reads the configuration of the calling process's mount namespace. Errors: host.
  [[nodiscard]] static Result<std::unique_ptr<Resolver>> make(EventLoop& loop, Options options);
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;
  /// Lookups under way are given up without a callback.
  ~Resolver();

  /// Looks up A and AAAA of a canonical name. Calls back once, never before lookup() returned;
  /// the callback may look up and cancel others.
  LookupId lookup(std::string_view canonical, Callback callback);
  /// Its callback is not called any more. No-op for one that is over.
  void cancel(LookupId id);

 private:
  class Impl;
  explicit Resolver(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sbx::network
