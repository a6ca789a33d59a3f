#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/copied.hpp"
#include "base/person.hpp"
#include "base/tell.hpp"
#include "changes/kept.hpp"
#include "changes/patch.hpp"
#include "plan/plan.hpp"
#include "policy/policy.hpp"
#include "workspace/apply.hpp"
#include "workspace/collect.hpp"
#include "workspace/copy.hpp"

/// What becomes of the private workspace after the run: the list of changes, --diff, --out, --keep,
/// --apply.
namespace sbx::changes {

/// What becomes of the private workspace.
struct BringOutOptions {
  std::string directory;             ///< --out, empty if none
  std::vector<std::string> collect;  ///< --collect; none: the policy's patterns
  bool diff = false;
  bool apply = false;
  std::vector<std::string> patterns;  ///< of --apply; none: everything
  bool yes = false;
  std::string keep;  ///< --keep, empty if none
};

/// What was done with it.
struct BroughtOut {
  std::optional<workspace::Collected> collected;  ///< --out
  std::optional<KeptFacts> kept;                  ///< --keep, when there was something to keep
  std::optional<workspace::Applied> applied;      ///< --apply
  std::optional<Patch> patch;                     ///< --diff, where a record is written
  int signal = 0;              ///< the one that ended --apply before its end, 0 for none
  bool has_failures = false;   ///< files that sbx was asked to write and could not
  std::string first_failure;   ///< the first of them, and why
  bool is_incomplete = false;  ///< --apply left something, or a pattern matches no change
};

/// How the front end hears of it.
struct Telling {
  bool silent = false;  ///< only what was asked for: the diff, a question
  Paint paint{};
  Copied copied{};
  Person person{};

  /// What a silent command keeps to itself.
  void remark(const std::string& lines) const {
    if (!silent) person.tell(lines);
  }
};

class BringOut {
 public:
  /// `state_directory`: where --keep keeps, host::state_directory().
  BringOut(const BringOutOptions& options, const policy::Policy& policy, const plan::Plan& plan,
           std::string state_directory)
      : options_(options),
        policy_(policy),
        plan_(plan),
        state_directory_(std::move(state_directory)) {}

  /// Call it before the run, so that a mistake ends it early. Makes the directory of --out and that
  /// of --keep. Errors: usage, policy, host.
  [[nodiscard]] Status prepare(const Person& person);
  /// Where the run leaves its private workspace; null if it is not needed.
  [[nodiscard]] workspace::Copy* copy(bool for_record);

  /// Call it after the run: does what was requested and tells of it. `run`: the id of the
  /// record. Continues after a failure. Errors: host, the first.
  [[nodiscard]] Status finish(Outcome& outcome, const std::string& run, const Telling& telling);

  /// After finish().
  [[nodiscard]] BroughtOut take();

 private:
  /// An option asked for the changes, not only the record.
  [[nodiscard]] bool is_asked() const;
  [[nodiscard]] Status in_place() const;
  [[nodiscard]] Status check_out() const;
  [[nodiscard]] Status check_overlay() const;
  [[nodiscard]] Status check_writable() const;
  [[nodiscard]] Status prepare_store();
  [[nodiscard]] std::vector<std::string> policy_files() const;
  [[nodiscard]] Patch patch_of(const workspace::ChangeSet& changes) const;
  Status collect(const workspace::ChangeSet& changes, const Outcome& outcome,
                 const Telling& telling);
  Status keep(const workspace::ChangeSet& changes, const Outcome& outcome, const std::string& run,
              const Telling& telling);
  Status apply(const workspace::ChangeSet& changes, const Outcome& outcome, const std::string& run,
               const Telling& telling);
  /// What --apply did not apply is kept as a set: the private workspace goes with the run.
  Status keep_rest(const workspace::ChangeSet& changes, const Outcome& outcome,
                   const std::string& run, const Telling& telling);
  [[nodiscard]] KeptFacts facts_of(const Outcome& outcome, const std::string& run,
                                   std::string name) const;

  const BringOutOptions& options_;
  const policy::Policy& policy_;
  const plan::Plan& plan_;
  std::string state_directory_;
  workspace::OutDirectory target_;
  std::optional<Store> store_;
  workspace::Copy copy_;
  BroughtOut done_;
  bool all_met_ = true;
  bool for_record_ = false;
};

}  // namespace sbx::changes
