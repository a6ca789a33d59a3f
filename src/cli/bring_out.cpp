#include "cli/bring_out.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "base/sys.hpp"
#include "cli/changes_words.hpp"
#include "cli/text.hpp"

namespace sbx::cli {
namespace {

void write_stderr(const std::string& text) {
  (void)sys::write_all(STDERR_FILENO, text);  // a closed or full stderr can't be told anywhere
}

std::unexpected<Error> usage(std::string code, std::string message, std::string hint) {
  return fail(Error{.kind = ErrorKind::usage,
                    .code = std::move(code),
                    .message = std::move(message),
                    .hint = std::move(hint)});
}

bool succeeded(const Outcome& outcome) {
  const auto* exited = std::get_if<Exited>(&outcome.verdict);
  return exited != nullptr && exited->code == 0;
}

/// One line from the terminal: yes, or anything else.
bool answered_yes() {
  std::string line;
  char byte = 0;
  while (line.size() < 100) {
    const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || byte == '\n') break;
    line += byte;
  }
  return line == "y" || line == "Y" || line == "yes";
}

}  // namespace

Status BringOut::check_out() const {
  if (!workspace::has_copy(plan_))
    return usage("nothing-to-bring-out", "--out needs a workspace that is private to the run",
                 "--workspace .:overlay; what is written to a live folder is there already");
  if (policy_.filesystem.outputs.collect.empty())
    return fail(
        Error{.kind = ErrorKind::policy,
              .code = "nothing-to-collect",
              .message = fmt::format("the policy \"{}\" lets nothing be brought out by --out",
                                     policy_.name.value),
              .hint = R"(name patterns: --set 'filesystem.outputs.collect=["*.png", "out/**"]')"});
  return {};
}

Status BringOut::check_apply() const {
  if (!workspace::has_overlay(plan_))
    return usage(
        "no-changes-kept",
        fmt::format("{} needs a copy-on-write workspace", options_.apply ? "--apply" : "--diff"),
        "--workspace .:overlay");
  if (options_.apply && !options_.yes &&
      (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1))
    return usage("nobody-to-ask", "--apply asks before it writes, and there is no terminal",
                 "--yes applies without asking what a command that exited with 0 did");
  return {};
}

Status BringOut::prepare() {
  if (options_.diff || options_.apply) SBX_TRY(check_apply());
  if (options_.folder.empty()) return {};
  SBX_TRY(check_out());
  target_ = SBX_TRY(workspace::prepare_target(options_.folder));
  return {};
}

workspace::Copy* BringOut::copy(bool for_record) {
  const bool wanted = options_.diff || options_.apply || !options_.folder.empty() ||
                      (for_record && workspace::has_overlay(plan_));
  return wanted ? &copy_ : nullptr;
}

std::vector<std::string> BringOut::policy_files() const {
  std::vector<std::string> files;
  for (const std::string& file : policy_.files) {
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(file.c_str(), nullptr),
                                                           &std::free);
    if (real) files.emplace_back(real.get());
  }
  return files;
}

Status BringOut::finish(Outcome& outcome, bool silent, const Paint& paint) {
  if (copy_.empty()) return {};
  workspace::ChangeSet changes = SBX_TRY(workspace::read_changes(copy_));
  if (options_.diff) write_stderr(changes_words(copy_, changes, Texts::shown, paint));
  if (target_.valid()) SBX_TRY(collect(changes, silent));
  if (options_.apply) SBX_TRY(apply(changes, outcome, silent, paint));
  if (!copy_.is_overlay) return {};
  for (const workspace::Left& each : changes.unread)
    outcome.degraded.push_back({"changes", each.path + ": " + each.why, ""});
  outcome.changes = std::move(changes.changes);
  outcome.changes_left_out = changes.left_out;
  return {};
}

Status BringOut::collect(const workspace::ChangeSet& changes, bool silent) {
  const policy::Outputs& outputs = policy_.filesystem.outputs;
  workspace::Collecting what{.max_bytes = outputs.max_bytes.value.count,
                             .max_files = outputs.max_files.value,
                             .max_depth = outputs.max_depth.value,
                             .policy_files = policy_files()};
  for (const auto& pattern : outputs.collect) what.patterns.push_back(pattern.value);
  collected_ = SBX_TRY(workspace::collect(copy_, changes, target_.get(), what));
  if (!silent) write_stderr(collected_words(*collected_, options_.folder));
  return {};
}

Status BringOut::apply(const workspace::ChangeSet& changes, const Outcome& outcome, bool silent,
                       const Paint& paint) {
  applied_.emplace();
  const workspace::Selection selection =
      workspace::select(copy_, changes, options_.patterns, policy_files());
  const auto not_applied = [&](const std::string& why) {
    if (!silent) write_stderr("sbx: nothing was applied: " + why + "\n");
    applied_->left = selection.left;
    for (const Change& change : selection.changes) applied_->left.push_back({change.path, why});
    return Status{};
  };
  if (changes.left_out > 0 || !changes.unread.empty())
    return not_applied("the list of changes is not complete");
  if (selection.changes.empty()) {
    if (!silent) write_stderr("sbx: there is nothing to apply\n" + left_words(selection.left));
    applied_->left = selection.left;
    return {};
  }
  if (options_.yes && !succeeded(outcome)) return not_applied("the command did not exit with 0");
  if (!options_.yes && !agreed(selection, paint)) return not_applied("the answer was no");
  applied_ = SBX_TRY(workspace::apply(copy_, selection));
  if (!silent) write_stderr(applied_words(*applied_, copy_.folder));
  return {};
}

bool BringOut::agreed(const workspace::Selection& selection, const Paint& paint) const {
  std::string text;
  if (!options_.diff)
    text = changes_words(copy_, {.changes = selection.changes}, Texts::shown, paint);
  text += left_words(selection.left);
  text += fmt::format("sbx: apply {} to {}? [y/N] ", tally_words(selection.changes),
                      printable(copy_.folder));
  write_stderr(text);
  return answered_yes();
}

bool BringOut::has_failures() const {
  const auto any = [](const std::vector<workspace::Left>& left) {
    return std::ranges::any_of(left, &workspace::Left::failed);
  };
  return (collected_ && any(collected_->left)) || (applied_ && any(applied_->left));
}

}  // namespace sbx::cli
