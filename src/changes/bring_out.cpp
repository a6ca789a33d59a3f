#include "changes/bring_out.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <set>
#include <utility>

#include "base/sys.hpp"
#include "base/text.hpp"
#include "changes/applying.hpp"
#include "changes/words.hpp"
#include "workspace/last_copy.hpp"

namespace sbx::changes {
namespace {

constexpr const char* kRest = "unapplied";

std::unexpected<Error> usage(std::string code, std::string message, std::string hint) {
  return fail(Error{.kind = ErrorKind::usage,
                    .code = std::move(code),
                    .message = std::move(message),
                    .hint = std::move(hint)});
}

std::string ending_words(const Outcome& outcome) {
  if (const auto* exited = std::get_if<Exited>(&outcome.verdict))
    return fmt::format("the command exited with status {}", exited->code);
  return outcome.detail;
}

/// Empty if everything that was tried was done.
std::string first_failure(const BroughtOut& done) {
  const auto words = [](const std::string& path, const std::string& why) {
    return "'" + printable(path) + "': " + why;
  };
  for (const std::vector<workspace::Left>* left : {done.collected ? &done.collected->left : nullptr,
                                                   done.applied ? &done.applied->left : nullptr}) {
    if (left == nullptr) continue;
    const auto first = std::ranges::find_if(*left, &workspace::Left::failed);
    if (first != left->end()) return words(first->path, first->why);
  }
  if (!done.kept || done.kept->lost.empty()) return {};
  return words(done.kept->lost.front().path, done.kept->lost.front().why);
}

bool is_protected(const workspace::Left& left) {
  return !left.guard.empty();
}

/// Nobody gave these sets a name, so nobody looks for them.
std::string piled_up(const Store& store) {
  constexpr std::size_t kMany = 5;
  const auto sets = store.list();
  if (!sets) return {};
  const auto count =
      static_cast<std::size_t>(std::ranges::count_if(*sets, [](const KeptFacts& set) {
        return set.name == kRest || set.name.starts_with("unapplied-");
      }));
  if (count < kMany) return {};
  return fmt::format(
      "sbx: {} such sets are kept; \"sbx changes list\" names them, \"sbx changes drop NAME...\" "
      "removes them\n",
      count);
}

bool succeeded(const Outcome& outcome) {
  const auto* exited = std::get_if<Exited>(&outcome.verdict);
  return exited != nullptr && exited->code == 0;
}

}  // namespace

Status BringOut::check_out() const {
  if (!workspace::has_copy(plan_))
    return usage("nothing-to-bring-out", "--out needs a workspace that is private to the run",
                 "--workspace .:overlay; what is written to a live directory is there already");
  return {};
}

Status BringOut::check_overlay() const {
  if (workspace::has_overlay(plan_)) return {};
  const char* const option = options_.apply          ? "--apply"
                             : options_.keep.empty() ? "--diff"
                                                     : "--keep";
  return usage("no-changes-kept", fmt::format("{} needs a copy-on-write workspace", option),
               "--workspace .:overlay");
}

/// After the run it would be too late to say so. What a pattern chooses may be in a directory of
/// the caller's own.
Status BringOut::check_writable() const {
  const auto mount = std::ranges::find(plan_.mounts, plan_.working_directory, &plan::Mount::target);
  if (mount == plan_.mounts.end() || mount->layered() == nullptr) return {};
  const std::string& directory = mount->host_source()->path;
  if (::faccessat(AT_FDCWD, directory.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return {};
  Error error{.kind = ErrorKind::usage,
              .code = "not-applicable",
              .message = fmt::format("--apply can't write to '{}'", printable(directory)),
              .errno_value = errno,
              .hint = "--keep NAME keeps the changes, --out DIR copies new files"};
  return fail(std::move(error));
}

Status BringOut::prepare_store() {
  SBX_TRY(check_set_name(options_.keep));
  store_ = SBX_TRY(Store::open_or_make(state_directory_));
  if (!store_->has(options_.keep)) return {};
  return usage("name-taken",
               fmt::format("changes are kept under the name \"{}\" already", options_.keep),
               fmt::format("another name, or first: sbx changes drop {}", options_.keep));
}

Status BringOut::prepare(const Person& person) {
  if (options_.yes && !options_.apply)
    return usage("usage", "--yes without --apply has no effect",
                 "to apply the changes: --apply --yes");
  if (!options_.collect.empty() && options_.directory.empty())
    return usage("usage", "--collect without --out has no effect", "to copy the files: --out DIR");
  if (options_.diff || options_.apply || !options_.keep.empty()) SBX_TRY(check_overlay());
  if (options_.apply) SBX_TRY(check_asking(!options_.yes, person));
  if (options_.apply && options_.patterns.empty()) SBX_TRY(check_writable());
  if (!options_.keep.empty()) SBX_TRY(prepare_store());
  if (options_.directory.empty()) return {};
  SBX_TRY(check_out());
  target_ = SBX_TRY(workspace::prepare_target(options_.directory));
  return {};
}

bool BringOut::is_asked() const {
  return options_.diff || options_.apply || !options_.directory.empty() || !options_.keep.empty();
}

workspace::Copy* BringOut::copy(bool for_record) {
  for_record_ = for_record;
  const bool wanted = is_asked() || (for_record && workspace::has_overlay(plan_));
  return wanted ? &copy_ : nullptr;
}

std::vector<std::string> BringOut::policy_files() const {
  std::vector<std::string> files;
  for (const std::string& file : policy_.files) {
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(file.c_str(), nullptr),
                                                           &std::free);
    if (real) files.emplace_back(real.get());
  }
  files.insert(files.end(), policy_.ways.begin(), policy_.ways.end());
  return files;
}

Status BringOut::finish(Outcome& outcome, const std::string& run, const Telling& telling) {
  if (copy_.failure && is_asked()) return fail(*copy_.failure);
  if (copy_.empty()) return {};
  copy_.copied = telling.copied;
  workspace::ChangeSet changes = SBX_TRY(workspace::read_changes(copy_));
  workspace::note_held(copy_, changes);
  Status first;
  const auto note = [&first](Status status) {
    if (first && !status) first = std::move(status);
  };
  if (options_.diff && for_record_) done_.patch = patch_of(changes);
  if (options_.diff)
    telling.person.tell(changes_words(copy_, changes, Texts::shown, telling.paint));
  if (store_) note(keep(changes, outcome, run, telling));
  if (target_.valid()) note(collect(changes, outcome, telling));
  if (options_.apply) note(apply(changes, outcome, run, telling));
  if (!copy_.is_overlay) return first;
  if (is_asked()) note(in_place());
  for (const workspace::Left& each : changes.unread)
    outcome.degraded.push_back({.promise = Promise::changes, .why = each.path + ": " + each.why});
  outcome.changes = std::move(changes.changes);
  outcome.changes_left_out = changes.left_out;
  return first;
}

/// As `sbx changes diff --patch` makes it: protected names are left out.
Patch BringOut::patch_of(const workspace::ChangeSet& changes) const {
  workspace::Selection selection = workspace::select(copy_, changes, {}, policy_files());
  Patch patch = make_patch(copy_, selection.changes);
  patch.left.insert(patch.left.begin(), selection.left.begin(), selection.left.end());
  return patch;
}

/// What was brought out or kept is whole; it belongs to a directory that is somewhere else now.
Status BringOut::in_place() const {
  Status there = workspace::check_in_place(copy_);
  if (!there && done_.kept)
    there.error().hint =
        fmt::format("the changes are kept: put the directory back, then: sbx changes apply {}",
                    done_.kept->name);
  return there;
}

KeptFacts BringOut::facts_of(const Outcome& outcome, const std::string& run,
                             std::string name) const {
  return {.name = std::move(name),
          .made = static_cast<std::int64_t>(::time(nullptr)),
          .directory = copy_.directory,
          .run = run,
          .command = plan_.command,
          .outcome = outcome.detail,
          .success = succeeded(outcome),
          .policy_files = policy_files()};
}

Status BringOut::keep(const workspace::ChangeSet& changes, const Outcome& outcome,
                      const std::string& run, const Telling& telling) {
  if (changes.changes.empty()) {
    telling.remark("sbx: nothing was changed, so nothing is kept\n");
    return {};
  }
  if (const std::string why = incomplete_words(changes); !why.empty())
    return fail(Error{.kind = ErrorKind::host,
                      .code = "not-kept",
                      .message = "cannot keep the changes: " + why,
                      .hint = "--collect takes files by name"});
  done_.kept = SBX_TRY(store_->keep(facts_of(outcome, run, options_.keep), copy_, changes));
  const std::string& name = done_.kept->name;
  std::set<std::string> lost;
  for (const LostChange& each : done_.kept->lost) lost.insert(each.path);
  std::vector<Change> in_set = changes.changes;
  std::erase_if(in_set, [&](const Change& each) { return lost.contains(each.path); });
  if (name != options_.keep)
    telling.remark(fmt::format("sbx: the name \"{}\" was taken meanwhile\n", options_.keep));
  telling.remark(
      fmt::format("sbx: kept {}: \"sbx changes diff {}\" shows, \"sbx changes apply {}\" "
                  "applies them\n",
                  tally_words(in_set), name, name) +
      lost_words(done_.kept->lost, state_directory_));
  return {};
}

Status BringOut::collect(const workspace::ChangeSet& changes, const Outcome& outcome,
                         const Telling& telling) {
  const policy::Outputs& outputs = policy_.filesystem.outputs;
  workspace::Collecting what{.limits = {.max_bytes = outputs.max_bytes.value.count,
                                        .max_files = outputs.max_files.value,
                                        .max_depth = outputs.max_depth.value},
                             .policy_files = policy_files()};
  what.patterns = options_.collect;
  if (what.patterns.empty())
    for (const auto& pattern : outputs.collect) what.patterns.push_back(pattern.value);
  what.waiting.begins = [&] {
    telling.person.tell("sbx: waiting: another sbx copies files to " +
                        printable(options_.directory) + "\n");
  };
  done_.collected = SBX_TRY(workspace::collect(copy_, changes, target_.get(), what));
  telling.remark(collected_words(*done_.collected, what.patterns, options_.directory) +
                 uncollected_words(*done_.collected, options_.collect));
  const bool are_elsewhere = options_.apply || options_.diff || store_;
  if (succeeded(outcome) && !are_elsewhere)
    telling.remark(changed_and_lost_words(*done_.collected));
  return {};
}

Status BringOut::apply(const workspace::ChangeSet& changes, const Outcome& outcome,
                       const std::string& run, const Telling& telling) {
  const Request request{.patterns = options_.patterns,
                        .policy_files = policy_files(),
                        .asks = !options_.yes,
                        .preview = options_.diff ? Preview::none : Preview::everything,
                        .state_directory = state_directory_,
                        .silent = telling.silent};
  if (options_.yes && !succeeded(outcome)) {
    const std::string why = ending_words(outcome);
    telling.remark("sbx: not applied: " + why +
                   (done_.kept ? "\n" : "; the changes are gone (--keep NAME keeps them)\n"));
    const workspace::Selection selection =
        workspace::select(copy_, changes, request.patterns, request.policy_files);
    done_.applied.emplace(workspace::Applied{.left = selection.left});
    for (const Change& change : selection.changes)
      done_.applied->left.push_back({change.path, why});
    return {};
  }
  ApplyEnd end = SBX_TRY(apply_changes(copy_, changes, request, telling.paint, telling.person));
  const bool is_owed = end.leaves_something();
  const bool is_offered = (!end.wanted && end.was_asked) ||
                          (end.wanted && std::ranges::any_of(end.applied.left, is_protected));
  done_.applied = std::move(end.applied);
  done_.signal = end.signal;
  all_met_ = end.all_met;
  if (done_.kept || !(is_owed || is_offered)) return {};
  const Status kept = keep_rest(changes, outcome, run, telling);
  if (kept || is_owed) return kept;
  // Nobody asked for what a "no" or a rule left out: that there is no place to keep it is not a
  // failure of the run.
  telling.remark("sbx: what was not applied is gone: " + printable(kept.error().text()) + "\n");
  return {};
}

Status BringOut::keep_rest(const workspace::ChangeSet& changes, const Outcome& outcome,
                           const std::string& run, const Telling& telling) {
  const auto key = [](const Change& each) { return std::pair(each.path, each.change); };
  std::set<std::pair<std::string, ChangeKind>> over;
  for (const Change& each : done_.applied->done) over.insert(key(each));
  // The other half of these is the sandbox's own and can't be kept.
  for (const workspace::Left& each : changes.held) over.emplace(each.path, ChangeKind::deleted);
  workspace::ChangeSet rest = changes;
  std::erase_if(rest.changes, [&](const Change& each) { return over.contains(key(each)); });
  if (rest.changes.empty()) return {};
  const Store store = SBX_TRY(Store::open_or_make(state_directory_));
  done_.kept = SBX_TRY(store.keep(facts_of(outcome, run, kRest), copy_, rest));
  // No more than was asked for: the set has the other changes too, and protected names are applied
  // by name.
  std::string names;
  for (const std::string& pattern : options_.patterns) names += " " + shell_word(pattern);
  if (names.empty() && std::ranges::all_of(done_.applied->left, is_protected) &&
      !done_.applied->left.empty())
    names = " NAME";
  telling.remark(
      fmt::format("sbx: what was not applied is kept: \"sbx changes apply {0}{1}\" applies it, "
                  "\"sbx changes drop {0}\" removes it\n",
                  done_.kept->name, names) +
      (done_.applied->conflicts.empty()
           ? std::string()
           : conflict_help("sbx changes diff --patch " + done_.kept->name)) +
      lost_words(done_.kept->lost, state_directory_) + piled_up(store));
  return {};
}

BroughtOut BringOut::take() {
  done_.first_failure = first_failure(done_);
  done_.has_failures = !done_.first_failure.empty();
  done_.is_incomplete = done_.applied && (done_.applied->is_incomplete() || !all_met_);
  return std::move(done_);
}

}  // namespace sbx::changes
