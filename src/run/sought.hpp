#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "host/host.hpp"
#include "plan/plan.hpp"
#include "supervise/settings.hpp"

/// --explain: the paths that the program looked for, of which those are named that exist on the host and were not
/// granted. For naming only: the memory of the program is read while the call waits, the program can change it before
/// the kernel reads it again, and nothing is decided by it.
namespace sbx::run {

class Sought {
 public:
  /// Neither is copied; both outlive this.
  Sought(const plan::Plan& plan, const host::Host& host);

  /// What the supervisor does about each call that is handed a path.
  [[nodiscard]] std::vector<supervise::Note> notes();
  /// After the run, when nobody waits for sbx: which of the paths exist on the host. Denials of kind "path".
  [[nodiscard]] std::vector<Denial> denials() const;

 private:
  /// Where a path inside would lie on the host, if it were granted.
  struct Place {
    std::string host;
    bool below_home = false;
    bool hidden = false;  ///< filesystem.deny hides it
  };
  struct Seen {
    Place place;
    std::uint64_t count = 0;
    std::string process;
    bool used = false;  ///< opened, entered or executed, not only looked at
  };

  void look(const supervise::NotedCall& call, const supervise::CallerMemory& memory);
  void note_made(const std::string& path);
  void remember(const std::string& path, const supervise::CallerMemory& memory, bool used);
  /// Empty host: nothing to say about it.
  [[nodiscard]] Place place_of(const std::string& path) const;
  [[nodiscard]] bool is_upper_folder(const std::string& path) const;
  [[nodiscard]] bool leads_further(const std::string& path) const;
  [[nodiscard]] Denial denial(const std::string& path, const Seen& seen, bool is_folder) const;

  const plan::Plan& plan_;
  const host::Host& host_;
  std::map<std::string, Seen> seen_;  ///< by path inside
  /// paths inside that the program made before it looked for them
  std::set<std::string> made_;
  std::uint64_t left_out_ = 0;  ///< calls whose path found no room
};

}  // namespace sbx::run
