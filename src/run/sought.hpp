#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "host/host.hpp"
#include "plan/plan.hpp"
#include "supervise/settings.hpp"

/// --explain: of the paths that the program looked for, reports those that exist on the host and
/// were not granted. Only for reports: sbx reads the program's memory while the call waits, the
/// program can change it before the kernel reads it again, and nothing is decided by it.
namespace sbx::run {

class Sought {
 public:
  /// Borrows both; they must outlive this object.
  Sought(const plan::Plan& plan, const host::Host& host);

  /// The supervisor's action for each call that takes a path.
  [[nodiscard]] std::vector<supervise::Note> notes();
  /// After the run, when no program waits for sbx: the paths that exist on the host. Denials of
  /// kind "path".
  [[nodiscard]] std::vector<Denial> denials() const;

 private:
  /// The host path for a path inside, if it were granted.
  struct HostPath {
    std::string host;
    bool below_home = false;
    bool hidden = false;  ///< filesystem.deny hides it
  };
  struct Seen {
    HostPath place;
    std::uint64_t count = 0;
    std::string process;
    bool used = false;  ///< opened, entered or executed, not only examined
  };

  void look(const supervise::NotedCall& call, const supervise::CallerMemory& memory);
  void note_made(const std::string& path);
  void remember(const std::string& path, const supervise::CallerMemory& memory, bool used);
  /// With an empty host path if there is nothing to report.
  [[nodiscard]] HostPath place_of(const std::string& path) const;
  [[nodiscard]] bool is_upper_directory(const std::string& path) const;
  [[nodiscard]] bool leads_further(const std::string& path) const;
  [[nodiscard]] Denial denial(const std::string& path, const Seen& seen, bool is_directory) const;

  const plan::Plan& plan_;
  const host::Host& host_;
  std::map<std::string, Seen> seen_;  ///< by path inside
  /// Paths inside that the program created before it looked for them.
  std::set<std::string> made_;
  std::uint64_t left_out_ = 0;  ///< calls whose path exceeded the limit
};

}  // namespace sbx::run
