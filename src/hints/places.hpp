#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/host.hpp"
#include "plan/files/deny.hpp"
#include "plan/plan.hpp"
#include "policy/policy.hpp"

/// What of the host a hint may speak of. A hostile program chooses its last words, so a hint must
/// not tell it, or whoever reads for it, what is there.
namespace sbx::hints {

/// Who reads the hints. What is not a terminal may be read by a model for the program: it learns
/// nothing about what is not below the working directory.
enum class Reader : std::uint8_t { person, unknown };

/// In /etc, /root, /run and the like: no hint proposes to show it. Root's own home is a home as
/// any other.
[[nodiscard]] bool is_private(const std::string& path, const host::Host& host);

class Places {
 public:
  /// `host` has the files of local_view(); `typed`: the names of the command line. Everything is
  /// borrowed.
  Places(const policy::Policy& policy, const plan::Plan& plan, const host::Host& host,
         const std::vector<std::string>& typed, Reader reader);

  /// The path inside that a name means. Where the sandbox has no root of its own, one in the
  /// private directory stands for that at which other sandboxes show it.
  [[nodiscard]] std::string inside(std::string_view name) const;
  /// The path on the host that a name means: of a name in the sandbox's home, that in the caller's.
  [[nodiscard]] std::string outside(std::string_view name) const;

  /// The path on the host that would have to be shown: it is a regular file or a directory there,
  /// is not in the sandbox, and may be spoken of. Empty otherwise. A file with several names may be
  /// a denied one by another of them, so it is not told.
  [[nodiscard]] std::string not_granted(std::string_view name) const;

  /// How much the first write to a file that a name means would copy to the private disk; 0:
  /// nothing is copied, or the name is denied.
  [[nodiscard]] std::uint64_t copied_when_written(std::string_view name) const;

  /// The sandbox shows something of the host, or of sbx, at a path inside or above it.
  [[nodiscard]] bool is_shown(const std::string& path_inside) const;
  /// A grant shows what a name means, and programs can read it: the host's file is readable by all,
  /// or is not there. A refusal with EACCES was one of writing then.
  [[nodiscard]] bool may_be_read(std::string_view name) const;

  /// Why and how a path inside is read-only. Empty if it is not, or is denied. Looks at the plan
  /// alone.
  struct ReadOnly {
    bool is_workspace = false;
    std::string grant;  ///< what --write would name; empty: the system, or it may not be told
    std::string target;
    std::string granted_by;  ///< "--read", "p.toml"; empty: the system, or nothing shows it
    bool is_file = false;    ///< the grant, or a mount in a directory that is granted
    bool is_mount = false;   ///< a directory that can be written to, and is mounted there itself
  };
  [[nodiscard]] std::optional<ReadOnly> read_only(const std::string& path_inside) const;

  /// What a path leads to; nothing if it can't be said.
  struct Seen {
    std::string path;  ///< without links
    host::FileType type{};
    bool may_be_denied = false;  ///< a file that has other names
  };
  [[nodiscard]] std::optional<Seen> look(const std::string& path) const;
  /// Under a name of the home that begins with a dot: settings, and often secrets.
  [[nodiscard]] bool is_dotted_in_home(const std::string& path) const;

 private:
  [[nodiscard]] std::string in_view(const std::string& path) const;
  [[nodiscard]] std::string grant_of(const plan::Mount& mount) const;
  [[nodiscard]] bool is_never_told(const std::string& path) const;
  [[nodiscard]] bool may_be_told(const std::string& path) const;
  [[nodiscard]] bool is_typed(const std::string& path) const;

  const policy::Filesystem& files_;
  const plan::Plan& plan_;
  const host::Host& host_;
  const std::vector<std::string>& typed_;
  Reader reader_;
  std::string directory_inside_;  ///< the working directory
  std::string home_inside_;
  plan::DenyRules hidden_;
  std::vector<std::string> homes_;  ///< the caller's, as named and without links
};

}  // namespace sbx::hints
