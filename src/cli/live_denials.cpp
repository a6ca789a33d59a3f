#include "cli/live_denials.hpp"

#include <poll.h>
#include <unistd.h>

#include "base/text.hpp"
#include "cli/console.hpp"

namespace sbx::cli {

void LiveDenials::started(const Started& run) {
  if (next_ != nullptr) next_->started(run);
}

void LiveDenials::denied(const Denial& denial) {
  if (next_ != nullptr) next_->denied(denial);
  if (!is_refusal(denial.kind) || !told_.insert(denial.kind).second) return;
  // A terminal that Ctrl-S has stopped must not stop the supervisor.
  pollfd terminal{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&terminal, 1, 0) != 1 || (terminal.revents & POLLOUT) == 0) return;
  const std::string by = denial.process.empty() ? "" : " by " + printable(denial.process);
  console().tell("sbx: " + paint_.bold("denied:") + " " + printable(denial.what) + by +
                 " (the end says what would allow it)\n");
}

void LiveDenials::limit_met(const LimitMet& met) {
  if (next_ != nullptr) next_->limit_met(met);
}

void LiveDenials::output_cut(const std::string& stream, Bytes limit) {
  if (next_ != nullptr) next_->output_cut(stream, limit);
}

}  // namespace sbx::cli
