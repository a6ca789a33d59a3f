#include "cli/session_changes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "base/progress.hpp"
#include "base/signals.hpp"
#include "base/tell.hpp"
#include "base/text.hpp"
#include "changes/applying.hpp"
#include "changes/facts.hpp"
#include "changes/kept.hpp"
#include "changes/words.hpp"
#include "cli/answer.hpp"
#include "cli/console.hpp"
#include "cli/session_documents.hpp"
#include "cli/usage.hpp"
#include "host/state.hpp"
#include "run/launch.hpp"
#include "session/json.hpp"
#include "session/live_sessions.hpp"
#include "session/snapshot.hpp"

namespace sbx::cli {
namespace {

/// A connection that asks nothing: it closes when the session ends.
class SessionLife {
 public:
  static Result<SessionLife> watch(const host::Host& host, const std::string& name) {
    return SessionLife(SBX_TRY(session::connect_to(host, name)));
  }
  /// From here on the end of the session is SIGHUP to this process, which is as if the user's
  /// terminal were gone. It is sent by the kernel, so nothing that is typed after the end comes
  /// before it.
  Status hang_up_at_its_end() {
    (void)std::signal(SIGHUP, SIG_DFL);  // nohup is for what asks nobody
    const int flags = ::fcntl(socket_.get(), F_GETFL);
    if (::fcntl(socket_.get(), F_SETOWN, ::getpid()) != 0 ||
        ::fcntl(socket_.get(), F_SETSIG, SIGHUP) != 0 ||
        ::fcntl(socket_.get(), F_SETFL, flags | O_ASYNC) != 0)
      return fail_errno(ErrorKind::internal, "no-signalfd", "cannot hear of the session's end");
    return has_ended() ? fail(gone()) : Status();  // before the signal was ordered
  }
  [[nodiscard]] bool has_ended() const {
    pollfd life{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    return ::poll(&life, 1, 0) > 0;
  }
  [[nodiscard]] static Error gone() {
    return {.kind = ErrorKind::host,
            .code = "session-gone",
            .message = "the session has ended before the question was answered"};
  }

 private:
  explicit SessionLife(UniqueFd socket) : socket_(std::move(socket)) {}
  UniqueFd socket_;
};

int applied(const SessionAsker& asker, const AppliedDocument& done) {
  if (asker.typed.output.json && print(dump(session::headed(done))) != kDone)
    return exit_status::kCouldNot;
  if (done.signal.value_or(0) != 0) return exit_status_of(Cancelled{*done.signal});
  if (done.failures.value_or(false)) return exit_status::kCouldNot;
  return done.incomplete ? kFindings : kDone;
}

}  // namespace

Result<int> show_changes(const SessionAsker& asker, bool texts) {
  SBX_TRY(asker.most(1));
  using protocol::View;
  const View view = asker.typed.patch         ? View::patch
                    : texts                   ? View::diff
                    : asker.typed.output.json ? View::json
                                              : View::list;
  protocol::ChangesAnswer seen = SBX_TRY(asker.ask_reader(protocol::ChangesRequest{
      .view = view, .colors = paint_for(asker.typed.output.color, STDOUT_FILENO).on}));
  const std::string text = seen.text.value_or("");
  const int printed = asker.typed.output.json      ? print(dump(session::headed(seen)))
                      : asker.typed.patch || texts ? print(text)
                                                   : print_fitted(text);
  if (!asker.typed.patch) return printed;
  const std::vector<protocol::LeftFacts> left =
      seen.left.value_or(std::vector<protocol::LeftFacts>{});
  if (!asker.typed.output.json)
    for (const protocol::LeftFacts& each : left)
      console().tell("sbx: not in the patch: " + printable(each.path) + ": " + printable(each.why) +
                     "\n");
  return printed != kDone || left.empty() ? printed : kFindings;
}

/// The session only makes a snapshot, and its calls go on. This process asks and applies: nothing
/// is left to answer once it has ended.
Result<int> apply_session(const SessionAsker& asker) {
  const bool asks = !asker.typed.bring_out.yes;
  const bool is_silent = asker.is_silent();
  auto life = SBX_TRY(SessionLife::watch(asker.host, asker.operands.front()));
  SBX_TRY(changes::check_asking(asks, console().person()));
  Progress progress(STDERR_FILENO, is_silent);
  const protocol::SnapshotAnswer made =
      SBX_TRY(asker.ask_reader(protocol::SnapshotRequest{.silent = !progress.is_shown()}));
  const std::vector<std::string> patterns(asker.operands.begin() + 1, asker.operands.end());
  if (!made.snapshot) {
    if (!is_silent) console().tell("sbx: nothing was changed, so nothing is applied\n");
    return applied(asker, {.incomplete = !patterns.empty()});
  }
  // Signals wait: apply_changes() takes them; one that comes before or after keeps no snapshot
  // from being dropped.
  const signals::Held held(signals::kEnding, signals::Ignored::is_taken_too);
  const session::Snapshot snapshot = SBX_TRY(session::Snapshot::of(made));
  changes::Kept kept = SBX_TRY(snapshot.load());
  kept.copy.copied = copies_shown_by(progress);
  if (asks) SBX_TRY(life.hang_up_at_its_end());
  const changes::ApplyEnd end = SBX_TRY(changes::apply_changes(
      kept.copy, kept.changes,
      {.patterns = patterns,
       .policy_files = kept.facts.policy_files,
       .asks = asks,
       .state_directory = host::state_directory(asker.host),
       .silent = is_silent,
       .rest = "sbx session changes --json " + asker.operands.front()},
      paint_for(asker.typed.output.color, STDERR_FILENO), console().person()));
  snapshot.note_as_applied(kept, end.applied);
  if (asks && end.signal == SIGHUP && life.has_ended()) return fail(SessionLife::gone());
  if (end.leaves_something() && !is_silent)
    console().tell("sbx: the session keeps what was not applied\n" +
                   (end.applied.conflicts.empty()
                        ? std::string()
                        : changes::conflict_help("sbx session diff --patch " +
                                                 shell_word(asker.operands.front()))));
  return applied(asker, {.applied = changes::applied_facts(end.applied),
                         .incomplete = end.applied.is_incomplete() || !end.wanted || !end.all_met,
                         .failures = {end.applied.has_failures()},
                         .signal = {end.signal}});
}

Result<int> keep_session(const SessionAsker& asker) {
  SBX_TRY(asker.most(2));
  if (asker.operands.size() < 2)
    return usage("usage", "\"sbx session keep\" needs a session and the name of a set",
                 "sbx session keep work before-lunch");
  SBX_TRY(changes::check_set_name(asker.operands[1]));
  const protocol::BroughtOutAnswer done = SBX_TRY(asker.keep_as(asker.operands[1]));
  return asker.answered(write_fields(done, Form::document),
                        done.failures ? exit_status::kCouldNot : kDone);
}

}  // namespace sbx::cli
