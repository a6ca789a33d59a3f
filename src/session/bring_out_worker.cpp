#include "session/bring_out_worker.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/text.hpp"
#include "changes/applying.hpp"
#include "changes/bring_out.hpp"
#include "changes/json.hpp"
#include "changes/kept.hpp"
#include "changes/patch.hpp"
#include "changes/words.hpp"
#include "session/json.hpp"
#include "session/message.hpp"
#include "workspace/changes.hpp"

namespace sbx::session {
namespace {

changes::BringOutOptions options_of(const Json& wish) {
  changes::BringOutOptions options;
  options.diff = wish.value("diff", false);
  options.yes = wish.value("yes", false);
  options.keep = wish.value("keep", "");
  options.folder = binary_of(wish, "out");
  for (const auto& [key, list] :
       {std::pair("patterns", &options.patterns), std::pair("collect", &options.collect)})
    if (const auto patterns = wish.find(key); patterns != wish.end())
      for (const Json& each : *patterns)
        if (each.is_string()) list->push_back(each.get<std::string>());
  return options;
}

/// Wakes the calls however the work ends.
class Stopped {
 public:
  explicit Stopped(run::HeldSandbox& held) : held_(held), status_(held.stop_calls()) {}
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;
  ~Stopped() { held_.continue_calls(); }
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
          .hint = "sbx session start --workspace .:overlay starts one with such a workspace"};
}

Paint paint_of(const Json& wish, int descriptor) {
  return paint_for(static_cast<Color>(std::clamp(wish.value("color", 0), 0, 2)), descriptor);
}

/// For `changes` and `diff`: nothing is changed.
Result<Json> view(BringOutTask& task) {
  workspace::Copy copy;
  workspace::ChangeSet changes;
  {
    const Stopped stopped(task.held);
    SBX_TRY(Status(stopped.status()));
    copy = SBX_TRY(task.held.copy());
    if (!copy.is_overlay) return fail(not_layered());
    changes = SBX_TRY(workspace::read_changes(copy));
  }
  Json json{{"changes", changes::changes_json(changes.changes)}, {"left_out", changes.left_out}};
  const std::string form = task.wish.value("view", "");
  const auto texts = form == "diff" ? changes::Texts::shown : changes::Texts::left_out;
  const std::string rest = "sbx session changes --json " + task.name;
  if (form == "patch") {
    const changes::Patch patch = changes::make_patch(copy, changes.changes);
    put_binary(json, "text", patch.text);
    json["left"] = changes::left_json(patch.left);
  } else if (form != "json") {
    put_binary(
        json, "text",
        changes::tally_words(changes.changes) + "\n" +
            changes::listing_words(copy, changes, texts, paint_of(task.wish, STDOUT_FILENO), rest));
  }
  return json;
}

Result<Json> bring_out(BringOutTask& task) {
  const changes::BringOutOptions options = options_of(task.wish);
  changes::BringOut work(options, task.held.policy(), task.held.plan(), task.held.state_folder());
  SBX_TRY(work.prepare());
  workspace::Copy* const copy = work.copy(true);
  if (copy == nullptr) return fail(not_layered());
  const Stopped stopped(task.held);
  SBX_TRY(Status(stopped.status()));
  *copy = SBX_TRY(task.held.copy());
  Outcome outcome;
  SBX_TRY(work.finish(outcome, task.id, task.wish.value("silent", false),
                      paint_of(task.wish, STDERR_FILENO)));
  return answer_of(work.take(), outcome);
}

/// A stopped process can be woken from inside, by a timer of its own for one. So what is shown and what is applied is a
/// copy, taken once: a change set that is dropped afterwards. The calls go on while the user is asked.
class Snapshot {
 public:
  Snapshot(BringOutTask& task, changes::Store store)
      : task_(task), store_(std::move(store)), name_("applying-" + task.id.substr(2)) {}
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  ~Snapshot() {
    if (is_kept_) (void)store_.drop(name_);
  }

  /// False where nothing has changed.
  Result<bool> take() {
    changes::BringOutOptions options;
    options.keep = name_;
    changes::BringOut work(options, task_.held.policy(), task_.held.plan(),
                           task_.held.state_folder());
    SBX_TRY(work.prepare());
    workspace::Copy* const copy = work.copy(true);
    const Stopped stopped(task_.held);
    SBX_TRY(Status(stopped.status()));
    *copy = SBX_TRY(task_.held.copy());
    Outcome outcome;
    SBX_TRY(work.finish(outcome, task_.id, true, {}));
    const auto kept = work.take().kept;
    if (!kept) return false;
    name_ = kept->name;
    is_kept_ = true;
    return true;
  }
  [[nodiscard]] Result<changes::Kept> load() const { return store_.load(name_); }

 private:
  BringOutTask& task_;
  changes::Store store_;
  std::string name_;
  bool is_kept_ = false;
};

Result<Json> apply(BringOutTask& task) {
  const changes::BringOutOptions options = options_of(task.wish);
  SBX_TRY(changes::check_asking(!options.yes));
  Snapshot snapshot(task, SBX_TRY(changes::Store::open_or_make(task.held.state_folder())));
  const bool silent = task.wish.value("silent", false);
  if (!SBX_TRY(snapshot.take())) {
    if (!silent) write_stderr("sbx: nothing was changed, so nothing is applied\n");
    return Json{{"applied", nullptr}, {"incomplete", !options.patterns.empty()}};
  }
  changes::Kept kept = SBX_TRY(snapshot.load());
  SBX_TRY(changes::open_folders(kept));
  const changes::ApplyEnd end =
      SBX_TRY(changes::apply_changes(kept.copy, kept.changes,
                                     {.patterns = options.patterns,
                                      .policy_files = kept.facts.policy_files,
                                      .asks = !options.yes,
                                      .silent = silent},
                                     paint_of(task.wish, STDERR_FILENO)));
  const bool failed = std::ranges::any_of(end.applied.left,
                                          [](const workspace::Left& left) { return left.failed; });
  return Json{{"applied", changes::applied_json(end.applied)},
              {"incomplete", !end.applied.conflicts.empty() || !end.wanted || !end.all_met},
              {"failures", failed},
              {"signal", end.signal}};
}

Result<Json> do_task(BringOutTask& task) {
  if (task.wish.contains("view")) return view(task);
  return task.wish.value("apply", false) ? apply(task) : bring_out(task);
}

}  // namespace

void bring_out_and_answer(BringOutTask task) {
  // Whoever asked may cancel it, and its end must wake the calls: not even SIGKILL of the client does without that.
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) (void)std::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // From here on the client passes signals on. Said by the session, it could come after the answer.
  (void)send(task.client.get(), {{"pid", ::getpid()}});
  for (std::size_t fd = 0; fd < task.fds.size() && fd < 3; ++fd)
    (void)::dup2(task.fds[fd].get(), static_cast<int>(fd));
  auto done = do_task(task);
  (void)send(task.client.get(), done ? *done : Json{{"error", error_json(done.error())}});
  ::_exit(0);  // without destructors: this process has a copy of the session's sandbox
}

}  // namespace sbx::session
