#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plan/files/deny.hpp"
#include "plan/files/grants.hpp"
#include "plan/files/steps.hpp"
#include "plan/files/survey.hpp"

/// Hides and seals names within granted directories.
namespace sbx::plan {

/// The lists that a guard adds to.
struct Guarded {
  std::vector<Mount>& steps;
  std::vector<LiveDirectory>& live;
  std::vector<Degraded>& degraded;
  std::vector<std::string>& explanations;
  std::vector<std::string>& state_directories;
  std::vector<PlannedPlaceholder>& placeholders;
};

class Guard {
 public:
  Guard(const policy::Policy& policy, const host::Host& host, const View& view,
        const DenyRules& denials, const std::vector<Grant>& grants, Guarded guarded)
      : policy_(policy),
        host_(host),
        view_(view),
        denials_(denials),
        grants_(grants),
        guarded_(guarded) {}

  /// Surveys every directory, then hides and seals. Errors: policy, host.
  Status run(std::vector<Shown>& shown);
  /// Makes a path of a live grant, or of a writable view, read-only.
  void seal(const std::string& inside, const Origin& origin);

 private:
  Status find_other_names(std::vector<Shown>& shown);
  void find_names_of_settings(std::vector<Shown>& shown);
  Status check_files() const;
  void follow_links(std::vector<Shown>& shown) const;
  void add_literals(Shown& shown) const;
  void add_plain_names(Shown& shown) const;
  void note_state(const Shown& shown, const DenyRule& rule) const;
  void seal_way_to_state();
  void copy_instead(const Shown& shown);
  void hide_all(Shown& shown);
  void hide(const Shown& shown, const Hidden& name);
  struct Settings {
    std::string name;                      ///< below the source
    std::optional<std::string> content{};  ///< what is shown; none: it is hidden
  };
  [[nodiscard]] std::optional<Settings> settings_of(const Shown& shown,
                                                    const std::string& path) const;
  void clean_settings(const Shown& shown, const std::string& path);
  void keep_linked_files(const std::vector<Shown>& shown);
  [[nodiscard]] bool shows_hosts_file(const Shown& shown, const std::string& name) const;
  void seal_names(Shown& shown);
  void add_placeholders(Shown& shown);
  void note_live(const Shown& shown);
  void tell(const Shown& shown);
  void add_veil(const Shown& shown, Veil veil);
  [[nodiscard]] bool is_mounted(const std::string& target);
  void protect(const std::string& inside, mount::Payload protection, const Origin& origin);
  [[nodiscard]] std::string inside_path(const Shown& shown, const std::string& path) const;
  [[nodiscard]] bool is_covered(const Shown& shown, const std::string& inside) const;
  [[nodiscard]] bool is_granted_socket(const std::string& source) const;

  const policy::Policy& policy_;
  const host::Host& host_;
  const View& view_;
  const DenyRules& denials_;
  const std::vector<Grant>& grants_;
  Guarded guarded_;
  std::vector<FileId> hidden_files_;
  std::set<std::pair<std::size_t, std::string>> veil_directories_;  ///< that have a veil, by step
  std::set<std::string> mounted_;  ///< targets of the first known_steps_ steps
  std::size_t known_steps_ = 0;
};

/// Adds masks for what literal rules hide within the binds of the system and of interpreters.
void hide_in_binds(const DenyRules& denials, const host::Host& host, std::size_t count,
                   std::vector<Mount>& steps, std::vector<Degraded>& degraded);

}  // namespace sbx::plan
