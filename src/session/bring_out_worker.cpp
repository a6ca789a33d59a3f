#include "session/bring_out_worker.hpp"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>
#include <variant>
#include <vector>

#include "base/copied.hpp"
#include "base/random.hpp"
#include "base/signals.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "changes/applied_notes.hpp"
#include "changes/bring_out.hpp"
#include "changes/facts.hpp"
#include "changes/kept.hpp"
#include "changes/words.hpp"
#include "protocol/packet.hpp"
#include "session/changes_view.hpp"
#include "session/reader_events.hpp"
#include "session/snapshot_store.hpp"
#include "workspace/changes.hpp"

namespace sbx::session {
namespace {

/// Wakes the calls however the work ends.
class CallsFrozen {
 public:
  explicit CallsFrozen(run::HeldSandbox& held) : held_(held), status_(held.stop_calls()) {}
  CallsFrozen(const CallsFrozen&) = delete;
  CallsFrozen& operator=(const CallsFrozen&) = delete;
  ~CallsFrozen() { held_.continue_calls(); }
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  run::HeldSandbox& held_;
  Status status_;
};

protocol::BroughtOutAnswer answer_of(const changes::BroughtOut& out, const Outcome& outcome) {
  protocol::BroughtOutAnswer answer{.changes = outcome.changes,
                                    .incomplete = out.is_incomplete,
                                    .failures = out.has_failures,
                                    .signal = out.signal};
  if (outcome.changes_left_out > 0) answer.changes_left_out.emplace(outcome.changes_left_out);
  if (out.kept) answer.kept = changes::kept_facts(*out.kept);
  return answer;
}

Error not_layered() {
  return {.kind = ErrorKind::usage,
          .code = "no-changes-kept",
          .message = "the session's workspace is not copy-on-write",
          .hint =
              "sbx session start --workspace .:overlay starts one with such a workspace; sbx "
              "session get copies files out of this one"};
}

/// Which directory has no room is for its owner to know.
Error not_kept(Error error, int errno_value, const std::string& state_directory) {
  if (errno_value != ENOSPC && errno_value != EDQUOT) return error;
  error.message =
      "cannot keep the changes in '" + printable(state_directory) + "': " + error.message;
  error.hint =
      "make room there, for example with \"sbx changes drop NAME\", or start the session "
      "with XDG_STATE_HOME set to another directory of your home";
  return error;
}

Error incomplete(const changes::KeptFacts& kept, const std::string& directory) {
  if (const auto store = changes::Store::open(directory)) (void)store->drop(kept.name);
  const changes::LostChange& first = kept.lost.front();
  return not_kept({.kind = ErrorKind::host,
                   .code = "not-kept",
                   .message = "'" + printable(first.path) + "': " + first.why},
                  first.errno_value, directory);
}

/// While the calls are stopped.
Result<workspace::Copy> copy_of(const BringOutTask& state) {
  workspace::Copy copy = SBX_TRY(state.held.copy());
  const auto store = changes::Store::open(notes_directory(state.held.state_directory()));
  if (store) changes::take_notes(*store, notes_of(state.session, state.id), copy);
  return copy;
}

/// For `changes` and `diff`: nothing is changed.
Result<protocol::ChangesAnswer> answer(BringOutTask& state, const protocol::ChangesRequest& asked) {
  workspace::Copy copy;
  workspace::ChangeSet changes;
  {
    const CallsFrozen frozen(state.held);
    SBX_TRY(Status(frozen.status()));
    copy = SBX_TRY(copy_of(state));
    if (!copy.is_overlay) return fail(not_layered());
    changes = SBX_TRY(workspace::read_changes(copy));
  }
  return seen_changes(copy, std::move(changes), asked, state.name);
}

/// What the client hears of the work, beside what makes it wait.
struct Heard {
  bool words = false;
  bool progress = false;
};

/// Sets are kept below `state_directory`. The calls are stopped until this returns.
Result<std::pair<changes::BroughtOut, Outcome>> keep_in(BringOutTask& state,
                                                        const changes::BringOutOptions& options,
                                                        const std::string& state_directory,
                                                        ReaderEvents& events, const Heard& heard) {
  if (options.directory.empty() && !workspace::has_overlay(state.held.plan()))
    return fail(not_layered());
  changes::BringOut work(options, state.held.policy(), state.held.plan(), state_directory);
  auto prepared = work.prepare({});
  // It names an option of run.
  if (!prepared && prepared.error().code == "no-changes-kept") return fail(not_layered());
  SBX_TRY(std::move(prepared));
  workspace::Copy* const copy = work.copy(true);
  if (copy == nullptr) return fail(not_layered());
  const CallsFrozen frozen(state.held);
  SBX_TRY(Status(frozen.status()));
  *copy = SBX_TRY(copy_of(state));
  Outcome outcome;
  const Status done = work.finish(outcome, state.id,
                                  {.silent = !heard.words,
                                   .copied = heard.progress ? events.progress() : Copied(),
                                   .person = events.person()});
  if (!done && !options.keep.empty())
    return fail(not_kept(done.error(), done.error().errno_value, state_directory));
  SBX_TRY(Status(done));
  return std::pair(work.take(), std::move(outcome));
}

/// Something else is written beside the files: that there are none is not worth a word where no
/// pattern was given for them.
void tell_collected(const BringOutTask& state, const changes::BringOutOptions& options,
                    const changes::BroughtOut& out, ReaderEvents& events) {
  if (!out.collected) return;
  const workspace::Collected& done = *out.collected;
  const bool has_some = !done.files.empty() || !done.left.empty() || done.unmatched > 0;
  if (!has_some && options.collect.empty()) return;
  std::vector<std::string> patterns = options.collect;
  if (patterns.empty())
    for (const auto& each : state.held.policy().filesystem.outputs.collect)
      patterns.push_back(each.value);
  events.say(changes::collected_words(done, patterns, options.directory) +
             changes::uncollected_words(done, options.collect));
}

/// All of it, as a failure.
Result<protocol::BroughtOutAnswer> list_lost(BringOutTask& state) {
  const CallsFrozen frozen(state.held);
  SBX_TRY(Status(frozen.status()));
  const workspace::Copy copy = SBX_TRY(copy_of(state));
  if (copy.empty()) return protocol::BroughtOutAnswer{};
  const workspace::ChangeSet changes = SBX_TRY(workspace::read_changes(copy));
  return protocol::BroughtOutAnswer{.changes = changes.changes, .failures = true};
}

Result<protocol::BroughtOutAnswer> answer(BringOutTask& state, const protocol::KeepRequest& asked) {
  const changes::BringOutOptions options{.keep = asked.set};
  ReaderEvents events(state.client.get());
  const auto kept = keep_in(state, options, state.held.state_directory(), events,
                            {.words = !asked.silent, .progress = !asked.silent});
  if (!kept && state.is_at_end) {
    (void)protocol::send(state.client.get(), kept.error());
    return list_lost(state);
  }
  if (!kept) return fail(kept.error());
  return answer_of(kept->first, kept->second);
}

Result<protocol::BroughtOutAnswer> answer(BringOutTask& state,
                                          const protocol::BringOutRequest& asked) {
  const changes::BringOutOptions options{.directory = asked.directory, .collect = asked.collect};
  ReaderEvents events(state.client.get());
  const auto [out, outcome] = SBX_TRY(
      keep_in(state, options, state.held.state_directory(), events, {.progress = !asked.silent}));
  if (!asked.silent) tell_collected(state, options, out, events);
  return answer_of(out, outcome);
}

/// For `apply`. A stopped process can be woken from inside, by a timer of its own for one, and a
/// person takes time to answer. So what is shown and what is applied is a copy: the client asks and
/// applies, while the calls go on.
Result<protocol::SnapshotAnswer> answer(BringOutTask& state,
                                        const protocol::SnapshotRequest& asked) {
  sweep_snapshots(state.held.state_directory());
  ucred client{};
  socklen_t size = sizeof client;
  if (::getsockopt(state.client.get(), SOL_SOCKET, SO_PEERCRED, &client, &size) != 0)
    return fail_errno(ErrorKind::internal, "no-socket", "cannot tell who asks");
  changes::BringOutOptions options;
  options.keep = std::to_string(client.pid) + "-" + random_hex();
  const std::string directory = snapshot_directory(state.held.state_directory());
  ReaderEvents events(state.client.get());
  const changes::BroughtOut out =
      SBX_TRY(keep_in(state, options, directory, events, {.progress = !asked.silent})).first;
  // Half of the changes would be applied as if they were all.
  if (out.has_failures) return fail(incomplete(*out.kept, directory));
  protocol::SnapshotAnswer made{.directory = directory,
                                .notes_directory = notes_directory(state.held.state_directory()),
                                .notes = notes_of(state.session, state.id)};
  if (out.kept) made.snapshot = out.kept->name;
  return made;
}

}  // namespace

void bring_out_and_answer(BringOutTask state) {
  // A session that is killed takes its processes with it. It may be dead already.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != state.session) ::_exit(1);
  // Whoever asked may cancel it, and its end must wake the calls: not even SIGKILL of the client
  // does without that.
  signals::take_defaults();
  // From here on the client passes signals on. Said by the session, it could come after the answer.
  (void)protocol::send(state.client.get(), protocol::ReaderBegun{});
  std::visit(
      [&](const auto& asked) {
        const auto done = answer(state, asked);
        (void)(done ? protocol::send(state.client.get(), *done)
                    : protocol::send(state.client.get(), done.error()));
      },
      state.asked);
  ::_exit(0);  // without destructors: this process has a copy of the session's sandbox
}

}  // namespace sbx::session
