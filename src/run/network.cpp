#include "run/network.hpp"

#include <sys/resource.h>

#include "spawn/links.hpp"

namespace sbx::run {
namespace {

constexpr unsigned kInside = 1000;  ///< the sandbox's uid and gid, in its own user namespace

/// Each connection takes two descriptors of the supervisor. The command's own limit is the
/// policy's.
void allow_many_descriptors() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &files);  // fewer connections at a time then
}

}  // namespace

Status RunNetwork::prepare() {
  if (!plan_.allow_list) return {};
  allow_many_descriptors();
  request_.gateway = true;
  request_.sockets = network::Gateway::wishes(plan_, spawn::has_ipv6());
  request_.take = [this](spawn::NetworkEnds ends) { return take(std::move(ends)); };
  return {};
}

Status RunNetwork::take(spawn::NetworkEnds ends) {
  gateway_ = SBX_TRY(
      network::Gateway::make(plan_, network::Space(std::move(ends.gateway_space), kInside, kInside),
                             std::move(ends.sockets), ends.has_ipv6));
  return {};
}

void RunNetwork::live_in(supervise::Settings& settings) {
  if (gateway_ == nullptr) return;
  settings.attach = [this](EventLoop& loop) { return gateway_->attach(loop); };
  settings.detach = [this] { gateway_->detach(); };
}

void RunNetwork::put_into(Outcome& outcome) {
  if (gateway_ != nullptr) gateway_->put_into(outcome);
}

}  // namespace sbx::run
