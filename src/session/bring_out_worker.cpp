#include "session/bring_out_worker.hpp"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <utility>

#include "base/random.hpp"
#include "base/signals.hpp"
#include "base/tell.hpp"
#include "base/text.hpp"
#include "changes/bring_out.hpp"
#include "changes/json.hpp"
#include "changes/kept.hpp"
#include "changes/patch.hpp"
#include "changes/words.hpp"
#include "protocol/packet.hpp"
#include "session/json.hpp"
#include "workspace/changes.hpp"

namespace sbx::session {
namespace {

changes::BringOutOptions options_of(const Json& request) {
  changes::BringOutOptions options;
  options.diff = member_or(request, "diff", false);
  options.yes = member_or(request, "yes", false);
  options.keep = member_or(request, "keep", "");
  options.directory = binary_of(request, "out");
  for (const auto& [key, list] :
       {std::pair("patterns", &options.patterns), std::pair("collect", &options.collect)})
    if (const auto patterns = request.find(key); patterns != request.end())
      for (const Json& each : *patterns)
        if (each.is_string()) list->push_back(each.get<std::string>());
  return options;
}

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

Json answer_of(const changes::BroughtOut& out, const Outcome& outcome) {
  Json json{{"changes", changes::changes_json(outcome.changes)}};
  if (outcome.changes_left_out > 0) json["changes_left_out"] = outcome.changes_left_out;
  if (out.kept)
    json["kept"] = {
        {"name", out.kept->name}, {"changes", out.kept->count}, {"bytes", out.kept->bytes}};
  if (out.applied) json["applied"] = changes::applied_json(*out.applied);
  if (out.patch)
    json["patch"] = {{"text", lossy_utf8(out.patch->text)},
                     {"left", changes::left_json(out.patch->left)}};
  json["incomplete"] = out.is_incomplete;
  json["failures"] = out.has_failures;
  json["signal"] = out.signal;
  return json;
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
Error not_kept(Error error, const std::string& state_directory) {
  if (error.errno_value != ENOSPC && error.errno_value != EDQUOT) return error;
  error.message =
      "cannot keep the changes in '" + printable(state_directory) + "': " + error.message;
  error.hint =
      "make room there, for example with \"sbx changes drop NAME\", or start the session "
      "with XDG_STATE_HOME set to another directory of your home";
  return error;
}

Paint paint_of(const Json& request, int descriptor) {
  return paint_for(static_cast<Color>(std::clamp(member_or(request, "color", 0), 0, 2)),
                   descriptor);
}

/// For `changes` and `diff`: nothing is changed.
Result<Json> view(BringOutTask& state) {
  workspace::Copy copy;
  workspace::ChangeSet changes;
  {
    const CallsFrozen frozen(state.held);
    SBX_TRY(Status(frozen.status()));
    copy = SBX_TRY(state.held.copy());
    if (!copy.is_overlay) return fail(not_layered());
    changes = SBX_TRY(workspace::read_changes(copy));
  }
  Json json{{"changes", changes::changes_json(changes.changes)}, {"left_out", changes.left_out}};
  const std::string form = member_or(state.body, "view", "");
  const auto texts = form == "diff" ? changes::Texts::shown : changes::Texts::left_out;
  const std::string rest = "sbx session changes --json " + state.name;
  if (form == "patch") {
    const changes::Patch patch = changes::make_patch(copy, changes.changes);
    put_binary(json, "text", patch.text);
    json["left"] = changes::left_json(patch.left);
  } else if (form != "json") {
    put_binary(json, "text",
               changes::tally_words(changes.changes) + "\n" +
                   changes::listing_words(copy, changes, texts, paint_of(state.body, STDOUT_FILENO),
                                          rest));
  }
  return json;
}

/// Sets are kept below `state_directory`. The calls are stopped until this returns.
Result<std::pair<changes::BroughtOut, Outcome>> keep_in(BringOutTask& state,
                                                        const changes::BringOutOptions& options,
                                                        const std::string& state_directory,
                                                        bool silent) {
  if (options.directory.empty() && !workspace::has_overlay(state.held.plan()))
    return fail(not_layered());
  changes::BringOut work(options, state.held.policy(), state.held.plan(), state_directory);
  auto prepared = work.prepare();
  // It names an option of run.
  if (!prepared && prepared.error().code == "no-changes-kept") return fail(not_layered());
  SBX_TRY(std::move(prepared));
  workspace::Copy* const copy = work.copy(true);
  if (copy == nullptr) return fail(not_layered());
  const CallsFrozen frozen(state.held);
  SBX_TRY(Status(frozen.status()));
  *copy = SBX_TRY(state.held.copy());
  Outcome outcome;
  const Status done = work.finish(outcome, state.id, silent, paint_of(state.body, STDERR_FILENO));
  if (!done && !options.keep.empty()) return fail(not_kept(done.error(), state_directory));
  SBX_TRY(Status(done));
  return std::pair(work.take(), std::move(outcome));
}

/// Something else is written beside the files: that there are none is not worth a word.
void tell_collected(const BringOutTask& state, const changes::BringOutOptions& options,
                    const changes::BroughtOut& out) {
  if (!out.collected) return;
  const workspace::Collected& done = *out.collected;
  if (done.files.empty() && done.left.empty() && done.unmatched == 0) return;
  std::vector<std::string> patterns = options.collect;
  if (patterns.empty())
    for (const auto& each : state.held.policy().filesystem.outputs.collect)
      patterns.push_back(each.value);
  write_stderr(changes::collected_words(done, patterns, options.directory));
}

Result<Json> bring_out(BringOutTask& state) {
  const changes::BringOutOptions options = options_of(state.body);
  const bool silent = member_or(state.body, "silent", false);
  const bool beside = member_or(state.body, "beside", false);
  const auto [out, outcome] =
      SBX_TRY(keep_in(state, options, state.held.state_directory(), silent || beside));
  if (beside && !silent) tell_collected(state, options, out);
  return answer_of(out, outcome);
}

/// For `apply`. A stopped process can be woken from inside, by a timer of its own for one, and a
/// person takes time to answer. So what is shown and what is applied is a copy: the client asks and
/// applies, while the calls go on.
Result<Json> take_snapshot(BringOutTask& state) {
  sweep_snapshots(state.held.state_directory());
  ucred client{};
  socklen_t size = sizeof client;
  if (::getsockopt(state.client.get(), SOL_SOCKET, SO_PEERCRED, &client, &size) != 0)
    return fail_errno(ErrorKind::internal, "no-socket", "cannot tell who asks");
  changes::BringOutOptions options;
  options.keep = std::to_string(client.pid) + "-" + random_hex();
  const std::string directory = snapshot_directory(state.held.state_directory());
  const changes::BroughtOut out = SBX_TRY(keep_in(state, options, directory, true)).first;
  Json json{{"snapshot", out.kept ? Json(out.kept->name) : Json(nullptr)}};
  put_binary(json, "directory", directory);
  return json;
}

Result<Json> do_task(BringOutTask& state) {
  if (state.body.contains("view")) return view(state);
  return member_or(state.body, "snapshot", false) ? take_snapshot(state) : bring_out(state);
}

/// Whoever made it has ended, or nobody can tell.
bool is_orphaned(const std::string& snapshot) {
  pid_t maker = 0;
  const char* const end = snapshot.data() + snapshot.size();
  if (std::from_chars(snapshot.data(), end, maker).ec != std::errc{} || maker <= 0) return true;
  return ::kill(maker, 0) != 0 && errno == ESRCH;
}

}  // namespace

std::string snapshot_directory(const std::string& state_directory) {
  return state_directory.empty() ? "" : state_directory + "/applying";  // empty: there is no home
}

void sweep_snapshots(const std::string& state_directory) {
  const auto store = changes::Store::open(snapshot_directory(state_directory));
  if (!store) return;
  const auto sets = store->list();
  if (!sets) return;
  for (const changes::KeptFacts& each : *sets)
    if (is_orphaned(each.name)) (void)store->drop(each.name);  // one that is read stays
}

void bring_out_and_answer(BringOutTask state) {
  // A session that is killed takes its processes with it. It may be dead already.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != state.session) ::_exit(1);
  // Whoever asked may cancel it, and its end must wake the calls: not even SIGKILL of the client
  // does without that.
  signals::take_defaults();
  // From here on the client passes signals on. Said by the session, it could come after the answer.
  (void)protocol::send(state.client.get(), {{"pid", ::getpid()}});
  for (std::size_t fd = 0; fd < state.fds.size() && fd < 3; ++fd)
    (void)::dup2(state.fds[fd].get(), static_cast<int>(fd));
  auto done = do_task(state);
  (void)protocol::send(state.client.get(),
                       done ? *done : Json{{"error", protocol::error_json(done.error())}});
  ::_exit(0);  // without destructors: this process has a copy of the session's sandbox
}

}  // namespace sbx::session
