#include "changes/applying.hpp"

#include <fmt/format.h>

#include "base/signals.hpp"
#include "base/text.hpp"
#include "changes/hazards.hpp"
#include "changes/words.hpp"

namespace sbx::changes {
namespace {

/// Signals that would end the process are noted instead; one that comes after all is done is too
/// late to matter.
class HeldSignals {
 public:
  HeldSignals() = default;
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() { held_.drop(); }

  [[nodiscard]] int fd() const { return held_.fd(); }
  /// The first that came, 0 for none.
  int arrived() {
    while (const int signal = held_.next())
      if (first_ == 0) first_ = signal;
    return first_;
  }

 private:
  signals::Held held_;
  int first_ = 0;
};

std::string unmet_words(const std::vector<std::string>& patterns,
                        const std::vector<Change>& changes) {
  std::vector<std::string_view> names;
  for (const Change& each : changes) names.push_back(each.path);
  std::string text;
  for (const std::string& each : patterns) {
    const std::string meant = meant_pattern(each, names);
    text += "sbx: no changed file matches '" + printable(each) + "'" +
            (meant.empty() ? "" : "; did you mean " + shell_word(meant) + "?") + "\n";
  }
  return text;
}

bool agreed(const workspace::Copy& copy, const workspace::Selection& selection,
            const Request& request, const Paint& paint, const Person& person,
            const HeldSignals& signals) {
  std::string text;
  if (request.preview != Preview::none)
    text = changes_words(copy, {.changes = selection.changes},
                         request.preview == Preview::everything ? Texts::shown : Texts::left_out,
                         paint, request.rest);
  text += conflict_words(workspace::conflicts_now(copy, selection.changes, selection.links));
  text += left_words(selection.left);
  text += hazard_words(hazards_of(copy, selection.changes));
  text += fmt::format("sbx: apply {} to {}? [y/N] ", tally_words(selection.changes),
                      printable(copy.directory));
  return person.answers && person.answers(text, signals.fd());
}

/// What was not seen may belong to what was: nothing of it is brought out.
void leave_incomplete(const workspace::Selection& selection, const workspace::ChangeSet& changes,
                      const Person& person, workspace::Applied& applied) {
  const std::string why = "the list of changes is not complete";
  person.tell("sbx: not applied: " + incomplete_words(changes) + "\n");
  applied.left = selection.left;
  for (const workspace::Left& each : changes.unread)
    applied.left.push_back({each.path, each.why, true});
  for (const Change& change : selection.changes) applied.left.push_back({change.path, why, true});
}

void leave_all(const workspace::Selection& selection, const std::string& why, const Person& person,
               workspace::Applied& applied) {
  person.tell("sbx: not applied: " + why + "\n");
  applied.left = selection.left;
  for (const Change& change : selection.changes) applied.left.push_back({change.path, why});
}

}  // namespace

Status check_asking(bool asks, const Person& person) {
  if (!asks || person.answers) return {};
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "nobody-to-ask",
                    .message = "cannot ask for confirmation: no terminal",
                    .hint = "--yes applies without asking"});
}

Result<ApplyEnd> apply_changes(const workspace::Copy& copy, const workspace::ChangeSet& changes,
                               const Request& request, const Paint& paint, const Person& person) {
  const Person hearer = request.silent ? Person{} : person;
  ApplyEnd end;
  const workspace::Selection selection =
      workspace::select(copy, changes, request.patterns, request.policy_files);
  if (changes.left_out > 0 || !changes.unread.empty()) {
    leave_incomplete(selection, changes, hearer, end.applied);
    end.wanted = false;
    return end;
  }
  const std::vector<std::string> unmet = workspace::without_meaning(changes, request.patterns);
  end.all_met = unmet.empty();
  const bool is_empty = selection.changes.empty();
  hearer.tell((is_empty ? "sbx: nothing to apply\n" : "") +
              (changes.changes.empty() ? std::string() : unmet_words(unmet, changes.changes)) +
              (is_empty ? left_words(selection.left) : std::string()));
  if (is_empty) {
    end.applied.left = selection.left;
    return end;
  }
  SBX_TRY(workspace::check_in_place(copy));  // before the user is asked
  HeldSignals signals;
  end.was_asked = request.asks;
  if (request.asks && !agreed(copy, selection, request, paint, person, signals)) {
    end.signal = signals.arrived();
    leave_all(selection, end.signal == 0 ? "the answer was no" : "interrupted", hearer,
              end.applied);
    end.wanted = false;
    return end;
  }
  const auto waits = [&] {
    person.tell("sbx: waiting: another sbx brings files out to " + printable(copy.directory) +
                "\n");
  };
  end.applied = SBX_TRY(workspace::apply(copy, selection,
                                         {.waits = waits,
                                          .stop = [&signals] { return signals.arrived() != 0; },
                                          .state_directory = request.state_directory}));
  end.signal = end.applied.stopped ? signals.arrived() : 0;
  end.applied.hazards = hazards_of(copy, end.applied.done);
  hearer.tell(applied_words(end.applied, copy.directory) +
              (request.asks ? std::string() : hazard_words(end.applied.hazards)));
  return end;
}

}  // namespace sbx::changes
