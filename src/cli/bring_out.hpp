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

/// What becomes of the private workspace after the run: the list of changes, --diff, --out, --apply.
namespace sbx::cli {

class BringOut {
 public:
  BringOut(const BringOutOptions& options, const policy::Policy& policy, const plan::Plan& plan)
      : options_(options), policy_(policy), plan_(plan) {}

  /// Before the run, so that nothing runs in vain. Makes the folder of --out. Errors: usage, policy.
  [[nodiscard]] Status prepare();
  /// Where the run leaves its private workspace; null when nobody wants it.
  [[nodiscard]] workspace::Copy* copy(bool for_record);

  /// After the run: does what was asked and says it on stderr. `success`: the command exited with 0.
  /// Errors: host.
  [[nodiscard]] Status finish(Outcome& outcome, bool silent, const Paint& paint);

  [[nodiscard]] const std::string& folder() const { return options_.folder; }
  [[nodiscard]] const std::optional<workspace::Collected>& collected() const { return collected_; }
  [[nodiscard]] const std::optional<workspace::Applied>& applied() const { return applied_; }
  /// Files that sbx was asked to write and could not.
  [[nodiscard]] bool has_failures() const;

 private:
  [[nodiscard]] Status check_out() const;
  [[nodiscard]] Status check_apply() const;
  [[nodiscard]] std::vector<std::string> policy_files() const;
  Status collect(const workspace::ChangeSet& changes, bool silent);
  Status apply(const workspace::ChangeSet& changes, const Outcome& outcome, bool silent,
               const Paint& paint);
  [[nodiscard]] bool agreed(const workspace::Selection& selection, const Paint& paint) const;

  const BringOutOptions& options_;
  const policy::Policy& policy_;
  const plan::Plan& plan_;
  UniqueFd target_;
  workspace::Copy copy_;
  std::optional<workspace::Collected> collected_;
  std::optional<workspace::Applied> applied_;
};

}  // namespace sbx::cli
