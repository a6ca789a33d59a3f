#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/invocation.hpp"
#include "cli/words.hpp"
#include "plan/plan.hpp"
#include "policy/policy.hpp"
#include "workspace/apply.hpp"
#include "workspace/collect.hpp"
#include "workspace/copy.hpp"
#include "workspace/kept.hpp"

/// What becomes of the private workspace after the run: the list of changes, --diff, --out, --keep,
/// --apply.
namespace sbx::cli {

class BringOut {
 public:
  /// `state_folder`: where --keep keeps, host::state_folder().
  BringOut(const BringOutOptions& options, const policy::Policy& policy, const plan::Plan& plan,
           std::string state_folder)
      : options_(options), policy_(policy), plan_(plan), state_folder_(std::move(state_folder)) {}

  /// Before the run, so that nothing runs in vain. Makes the folder of --out and that of --keep.
  /// Errors: usage, policy, host.
  [[nodiscard]] Status prepare();
  /// Where the run leaves its private workspace; null when nobody wants it.
  [[nodiscard]] workspace::Copy* copy(bool for_record);

  /// After the run: does what was asked and says it on stderr. `run`: the id of the record. What can
  /// still be done is done after a failure. Errors: host, the first.
  [[nodiscard]] Status finish(Outcome& outcome, const std::string& run, bool silent,
                              const Paint& paint);

  [[nodiscard]] const std::string& folder() const { return options_.folder; }
  [[nodiscard]] const std::optional<workspace::Collected>& collected() const { return collected_; }
  [[nodiscard]] const std::optional<workspace::Applied>& applied() const { return applied_; }
  [[nodiscard]] const std::optional<workspace::KeptFacts>& kept() const { return kept_; }
  /// The signal that ended --apply before its end, 0 for none.
  [[nodiscard]] int signal() const { return signal_; }
  /// Files that sbx was asked to write and could not.
  [[nodiscard]] bool has_failures() const;
  /// --apply met a conflict, or a pattern that matches no change.
  [[nodiscard]] bool is_incomplete() const;

 private:
  /// An option asked for the changes, not only the record.
  [[nodiscard]] bool is_asked() const;
  [[nodiscard]] Status in_place() const;
  [[nodiscard]] Status check_out() const;
  [[nodiscard]] Status check_overlay() const;
  [[nodiscard]] Status prepare_store();
  [[nodiscard]] std::vector<std::string> policy_files() const;
  Status collect(const workspace::ChangeSet& changes, bool silent);
  Status keep(const workspace::ChangeSet& changes, const Outcome& outcome, const std::string& run,
              bool silent);
  Status apply(const workspace::ChangeSet& changes, const Outcome& outcome, bool silent,
               const Paint& paint);

  const BringOutOptions& options_;
  const policy::Policy& policy_;
  const plan::Plan& plan_;
  std::string state_folder_;
  UniqueFd target_;
  std::optional<workspace::Store> store_;
  workspace::Copy copy_;
  std::optional<workspace::Collected> collected_;
  std::optional<workspace::KeptFacts> kept_;
  std::optional<workspace::Applied> applied_;
  int signal_ = 0;
  bool all_met_ = true;
};

}  // namespace sbx::cli
