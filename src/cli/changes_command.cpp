#include "cli/changes_command.hpp"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/progress.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "changes/applying.hpp"
#include "changes/facts.hpp"
#include "changes/kept.hpp"
#include "changes/patch.hpp"
#include "changes/words.hpp"
#include "cli/answer.hpp"
#include "cli/complaint.hpp"
#include "cli/console.hpp"
#include "host/state.hpp"
#include "policy/keys.hpp"
#include "record/words.hpp"

namespace sbx::cli {
namespace {

using changes::Kept;
using changes::KeptFacts;
using changes::Store;

int changes_failed(const Invocation& typed, const Error& error) {
  return complain(typed, error);
}

Error wrong_use(const Invocation& typed, const char* needs) {
  return {.kind = ErrorKind::usage,
          .code = "usage",
          .message = fmt::format("\"sbx {}\" {}", typed.command, needs),
          .hint = "\"sbx changes list\" names what is kept"};
}

Result<std::string> state_directory() {
  return host::state_directory(SBX_TRY(host::probe()));
}

Result<Store> open_store() {
  return Store::open(SBX_TRY(state_directory()));
}

/// The error for an unknown name, with the most similar existing one.
Error with_suggestion(Error error, const Store& store, const std::string& name) {
  if (error.code != "no-such-set") return error;
  std::vector<std::string> names;
  if (const auto sets = store.list())
    for (const KeptFacts& each : *sets) names.push_back(each.name);
  const std::vector<std::string_view> views(names.begin(), names.end());
  if (const std::string_view meant = policy::nearest(name, views); !meant.empty())
    error.hint = fmt::format("did you mean \"{}\"?", meant);
  return error;
}

Result<Kept> load(const std::string& name) {
  const Store store = SBX_TRY(open_store());
  auto kept = store.load(name);
  if (!kept) return fail(with_suggestion(std::move(kept).error(), store, name));
  return kept;
}

std::string text_of_command(const KeptFacts& facts) {
  constexpr std::size_t kLongest = 200;
  std::string text;
  for (const std::string& word : facts.command)
    text += (text.empty() ? "" : " ") + shell_word(word);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + " …";
  return printable(text);
}

// --- list

Json facts_json(const KeptFacts& facts) {
  Json json;
  json["name"] = facts.name;
  if (facts.directory.empty()) {
    put_name(json, "error", facts.outcome);
    return json;
  }
  json["made"] = facts.made;
  put_name(json, "directory", facts.directory);
  json["run"] = facts.run;
  put_names(json, "command", facts.command);
  put_name(json, "outcome", facts.outcome);
  json["success"] = facts.success;
  json["count"] = facts.count;
  json["bytes"] = facts.bytes;
  if (!facts.lost.empty()) json["lost"] = changes::left_json(facts.lost);
  if (facts.applied_at != 0)
    json["last_applied"] = {{"at", facts.applied_at}, {"changes", facts.applied}};
  return json;
}

Json head_json() {
  Json json;
  json["schema"] = "sbx.changes/1";
  json["sbx"] = SBX_VERSION;
  return json;
}

std::string list_words(const std::vector<KeptFacts>& sets) {
  std::size_t widest = 4;
  for (const KeptFacts& each : sets) widest = std::max(widest, each.name.size());
  std::string text = fmt::format("{:<{}}  {:<16}  {:>7}  {:>10}  {}\n", "NAME", widest, "KEPT",
                                 "CHANGES", "SIZE", "DIRECTORY");
  for (const KeptFacts& each : sets)
    text += each.directory.empty()
                ? fmt::format("{:<{}}  {}\n", each.name, widest, printable(each.outcome))
                : fmt::format("{:<{}}  {:<16}  {:>7}  {:>10}  {}\n", each.name, widest,
                              minute_text(each.made), each.count, describe(Bytes{each.bytes}),
                              printable(each.directory));
  return text;
}

int list_sets(const Invocation& typed) {
  if (!typed.operands.empty()) return changes_failed(typed, wrong_use(typed, "takes no operands"));
  const auto store = open_store();
  if (!store) return changes_failed(typed, store.error());
  const auto sets = store->list();
  if (!sets) return changes_failed(typed, sets.error());
  if (!typed.output.json && sets->empty()) {  // a program that parses stdout then finds no sets
    console().tell("nothing is kept; \"sbx run --keep NAME\" keeps the changes of a run\n");
    return kDone;
  }
  if (!typed.output.json) return print_fitted(list_words(*sets));
  Json json = head_json();
  json["sets"] = Json::array();
  for (const KeptFacts& each : *sets) json["sets"].push_back(facts_json(each));
  return print(dump(json));
}

// --- show, diff

std::string help_for(const std::vector<workspace::Left>& conflicts, const KeptFacts& facts) {
  return conflicts.empty() ? std::string()
                           : changes::conflict_help("sbx changes diff --patch " + facts.name);
}

std::string applied_line(const changes::KeptFacts& facts) {
  if (facts.applied_at == 0) return {};
  return fmt::format("  applied {}: {} of {} changes\n", time_text(facts.applied_at), facts.applied,
                     facts.count);
}

std::string head_words(const Kept& kept, const Paint& paint) {
  const std::string outcome =
      kept.facts.outcome.empty() ? "" : " (" + printable(kept.facts.outcome) + ")";
  // A session has neither one command nor one end.
  const std::string source = kept.facts.command.empty()
                                 ? "the session " + printable(kept.facts.run) + outcome
                                 : text_of_command(kept.facts) + outcome;
  return fmt::format("{}: {} in {}\n  kept {} of {}\n{}", paint.bold(kept.facts.name),
                     changes::tally_words(kept.changes.changes), printable(kept.facts.directory),
                     time_text(kept.facts.made), source, applied_line(kept.facts)) +
         changes::lost_words(kept.facts.lost, {});
}

/// If the directory is gone, shows what can be shown without it.
int show(const Invocation& typed, changes::Texts texts) {
  if (typed.operands.size() != 1) return changes_failed(typed, wrong_use(typed, "needs one name"));
  auto kept = load(typed.operands.front());
  if (!kept) return changes_failed(typed, kept.error());
  const Status there = changes::open_directories(*kept);
  std::vector<workspace::Left> conflicts;
  if (there)
    conflicts = workspace::conflicts_now(kept->copy, kept->changes.changes, kept->changes.links);
  if (typed.output.json) {
    Json json = head_json();
    json.update(facts_json(kept->facts));
    json["directory_error"] = there ? Json(nullptr) : Json(there.error().text());
    json["changes"] = write_list(kept->changes.changes, Form::document);
    json["conflicts"] = changes::left_json(conflicts);
    return print(dump(json));
  }
  const Paint paint = paint_for(typed.output.color, STDOUT_FILENO);
  const std::string rest = fmt::format("sbx changes show --json {}", kept->facts.name);
  std::set<std::string> stale;
  for (const workspace::Left& each : conflicts) stale.insert(each.path);
  const std::string words =
      head_words(*kept, paint) +
      changes::listing_words(kept->copy, kept->changes, texts, paint, rest, stale);
  const int printed = texts == changes::Texts::shown ? print(words) : print_fitted(words);
  console().tell(changes::conflict_words(conflicts) + help_for(conflicts, kept->facts));
  if (there) return printed;
  const int status = changes_failed(typed, there.error());
  return texts == changes::Texts::shown ? status : printed;
}

/// For `git apply`: contains nothing that `sbx changes apply` would refuse.
int patch(const Invocation& typed) {
  if (typed.operands.size() != 1) return changes_failed(typed, wrong_use(typed, "needs one name"));
  auto kept = load(typed.operands.front());
  if (!kept) return changes_failed(typed, kept.error());
  if (const Status there = changes::open_directories(*kept); !there)
    return changes_failed(typed, there.error());
  workspace::Selection selection =
      workspace::select(kept->copy, kept->changes, {}, kept->facts.policy_files);
  const changes::Patch made = changes::make_patch(kept->copy, selection.changes);
  const int printed = print(made.text);
  selection.left.insert(selection.left.end(), made.left.begin(), made.left.end());
  for (const workspace::Left& each : selection.left)
    console().tell("sbx: not in the patch: " + printable(each.path) + ": " + each.why + "\n");
  console().tell(changes::conflict_words(
      workspace::conflicts_now(kept->copy, selection.changes, selection.links)));
  return printed != kDone || selection.left.empty() ? printed : kFindings;
}

// --- apply

int apply_status(const changes::ApplyEnd& end) {
  if (end.signal != 0) return exit_status_of(Cancelled{end.signal});
  if (end.applied.has_failures()) return exit_status::kCouldNot;
  return !end.applied.is_incomplete() && end.wanted && end.all_met ? kDone : kFindings;
}

/// Notes the apply for `list` and `show`. A convenience: failure changes nothing.
void note_applied(const std::string& name, std::size_t count) {
  if (count == 0) return;
  if (const auto store = open_store()) (void)store->note_applied(name, ::time(nullptr), count);
}

int apply(const Invocation& typed) {
  if (typed.operands.empty()) return changes_failed(typed, wrong_use(typed, "needs a name"));
  auto kept = load(typed.operands.front());
  if (!kept) return changes_failed(typed, kept.error());
  if (const Status asking = changes::check_asking(!typed.bring_out.yes, console().person());
      !asking)
    return changes_failed(typed, asking.error());
  if (const Status there = changes::open_directories(*kept); !there)
    return changes_failed(typed, there.error());
  const changes::Request request{.patterns = {typed.operands.begin() + 1, typed.operands.end()},
                                 .policy_files = kept->facts.policy_files,
                                 .asks = !typed.bring_out.yes,
                                 .state_directory = state_directory().value_or(""),
                                 .silent = typed.output.json || typed.output.quiet,
                                 .rest = "sbx changes show --json " + kept->facts.name};
  Progress progress(STDERR_FILENO, request.silent);
  kept->copy.copied = copies_shown_by(progress);
  const auto end =
      changes::apply_changes(kept->copy, kept->changes, request,
                             paint_for(typed.output.color, STDERR_FILENO), console().person());
  if (!end) return changes_failed(typed, end.error());
  note_applied(kept->facts.name, end->applied.done.size());
  if (!request.silent) console().tell(help_for(end->applied.conflicts, kept->facts));
  if (typed.output.json) {
    Json json = head_json();
    json.update(facts_json(kept->facts));
    json["applied"] = write_fields(changes::applied_facts(end->applied), Form::document);
    if (const int printed = print(dump(json)); printed != kDone) return printed;
  }
  return apply_status(*end);
}

// --- drop

Error none_dropped(const Store& store, const std::string& name) {
  return with_suggestion({.kind = ErrorKind::usage,
                          .code = "no-such-set",
                          .message = fmt::format("no changes are kept under the name \"{}\", and "
                                                 "nothing was removed",
                                                 printable(name)),
                          .hint = "\"sbx changes list\" names what is kept"},
                         store, name);
}

int drop(const Invocation& typed) {
  if (typed.operands.empty()) return changes_failed(typed, wrong_use(typed, "needs a name"));
  const auto store = open_store();
  if (!store) return changes_failed(typed, store.error());
  int status = kDone;
  // A mistyped name must not cost the sets that were named beside it.
  for (const std::string& name : typed.operands)
    if (typed.operands.size() > 1 && !store->has(name))
      return changes_failed(typed, none_dropped(*store, name));
  for (const std::string& name : typed.operands)
    if (const Status dropped = store->drop(name); !dropped)
      status =
          std::max(status, changes_failed(typed, with_suggestion(dropped.error(), *store, name)));
  return status;
}

}  // namespace

int changes_command(const Invocation& typed) {
  if (typed.command == "changes list") return list_sets(typed);
  if (typed.command == "changes show") return show(typed, changes::Texts::left_out);
  if (typed.command == "changes diff" && typed.patch) return patch(typed);
  if (typed.command == "changes diff") return show(typed, changes::Texts::shown);
  if (typed.command == "changes apply") return apply(typed);
  return drop(typed);
}

}  // namespace sbx::cli
