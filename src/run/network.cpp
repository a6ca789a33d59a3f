#include "run/network.hpp"

#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>

#include "run/connect_note.hpp"
#include "spawn/links.hpp"
#include "supervise/meters/reserve.hpp"
#include "supervise/meters/socket_meter.hpp"

namespace sbx::run {
namespace {

constexpr unsigned kInside = 1000;  ///< the sandbox's uid and gid, in its own user namespace

/// Each connection takes two of the supervisor's descriptors, and up to four while it buffers data.
/// The command's own limit comes from the policy.
Status allow_many_descriptors() {
  constexpr rlim_t kLeast = 40;  // for start-up and one connection
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return {};
  const rlim_t reserve = supervise::reserve_of(files.rlim_max);
  if (files.rlim_max < kLeast + reserve)
    return fail(
        Error{.kind = ErrorKind::setup,
              .code = "setup-sockets",
              .message = "connections need more descriptors than " + std::to_string(files.rlim_max),
              .hint = "see the limit of open files: ulimit -n"});
  files.rlim_cur = files.rlim_max - reserve;
  (void)::setrlimit(RLIMIT_NOFILE, &files);  // if it fails: fewer connections at a time
  return {};
}

}  // namespace

Status RunNetwork::prepare() {
  request_.take = [this](spawn::NetworkEnds ends) { return take(std::move(ends)); };
  if (!plan_.published.empty()) {
    publisher_ = SBX_TRY(network::Publisher::make(plan_));
    request_.space = true;
  }
  if (plan_.names_attempts()) request_.sockets = network::Offline::requests();
  if (publisher_ || plan_.allow_list) SBX_TRY(allow_many_descriptors());
  if (plan_.allow_list) {
    request_.gateway = true;
    request_.sockets = network::Gateway::requests(plan_, spawn::has_ipv6());
  }
  if (counts_sockets_) request_.sockets.push_back(supervise::SocketMeter::request());
  return {};
}

Status RunNetwork::take(spawn::NetworkEnds ends) {
  if (counts_sockets_) {
    diagnosis_ = std::move(ends.sockets.back());
    ends.sockets.pop_back();
  }
  if (publisher_ != nullptr)
    publisher_->lead_into(network::NetworkNamespace(std::move(ends.space), kInside, kInside));
  if (plan_.allow_list)
    gateway_ = SBX_TRY(network::Gateway::make(
        plan_, network::NetworkNamespace(std::move(ends.gateway_space), kInside, kInside),
        std::move(ends.sockets), ends.has_ipv6));
  else if (plan_.names_attempts())
    offline_ = std::make_unique<network::Offline>(plan_, std::move(ends.sockets));
  return {};
}

Status RunNetwork::attach(EventLoop& loop) {
  if (gateway_ != nullptr) gateway_->tell(events_);
  if (offline_ != nullptr) offline_->tell(events_);
  if (publisher_ != nullptr) SBX_TRY(publisher_->attach(loop));
  if (gateway_ != nullptr) SBX_TRY(gateway_->attach(loop));
  if (offline_ != nullptr) SBX_TRY(offline_->attach(loop));
  return {};
}

Status RunNetwork::attach(EventLoop& loop, const network::HearsRefusals& hears) {
  if (gateway_ != nullptr) gateway_->tell_each(hears);
  if (offline_ != nullptr) offline_->tell_each(hears);
  return attach(loop);
}

void RunNetwork::expect(const policy::Address& address, std::uint16_t port) {
  if (gateway_ != nullptr) gateway_->expect(address, port);
}

bool RunNetwork::sends() const {
  return (publisher_ != nullptr && publisher_->sends()) ||
         (gateway_ != nullptr && gateway_->sends());
}

void RunNetwork::detach() {
  if (publisher_ != nullptr) publisher_->detach();
  if (gateway_ != nullptr) gateway_->detach();
  if (offline_ != nullptr) offline_->detach();
}

void RunNetwork::live_in(supervise::Settings& settings, Events* events) {
  events_ = events;
  if (publisher_ == nullptr && gateway_ == nullptr && offline_ == nullptr) return;
  if (plan_.notes_connect())
    settings.notes.push_back(connect_note(offline_.get(), [this](const auto& address, auto port) {
      if (gateway_ != nullptr) gateway_->expect(address, port);
    }));
  settings.attach = [this](EventLoop& loop) { return attach(loop); };
  settings.sends = [this] { return sends(); };
  settings.detach = [this] { detach(); };
}

supervise::SocketDiagnosis RunNetwork::sockets() const {
  const auto is_tcp = [](const SocketRequest& request) {
    return !request.in_gateway && request.domain == AF_INET && request.type == SOCK_STREAM;
  };
  const auto& made = request_.sockets;
  return {
      .fd = diagnosis_.get(),
      .sockets = static_cast<unsigned>(std::ranges::count(made, false, &SocketRequest::in_gateway)),
      .tcp = static_cast<unsigned>(std::ranges::count_if(made, is_tcp))};
}

void RunNetwork::put_into(Outcome& outcome) {
  if (publisher_ != nullptr) publisher_->put_into(outcome);
  if (gateway_ != nullptr) gateway_->put_into(outcome);
  if (offline_ != nullptr) offline_->put_into(outcome);
}

}  // namespace sbx::run
