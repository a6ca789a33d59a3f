#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <sbx/outcome.hpp>

#include "host/host.hpp"
#include "plan/plan.hpp"

/// What a run left in a live grant that is dangerous for programs of the host.
namespace sbx::plan {

/// Maximum number listed.
inline constexpr std::size_t kMostHazards = 1000;

/// True for a name with control characters, or with characters that reorder the text around them.
[[nodiscard]] bool is_misleading(std::string_view name);

/// True if a link at `path` with this text leads out of `directory`, judging by the text alone.
[[nodiscard]] bool leads_out(std::string_view path, std::string_view text,
                             std::string_view directory);

/// Collects the hazards of one live grant.
class Hazards {
 public:
  /// `began`: nanoseconds of the real-time clock. Every later change counts, whoever made it.
  Hazards(const LiveDirectory& directory, const host::Files& files, std::int64_t began,
          Outcome& outcome)
      : directory_(directory), files_(files), began_(began), outcome_(outcome) {}

  void look(const std::string& path, const host::FileFacts& facts);
  /// Records a directory that the caller can't list.
  void note_closed(const std::string& path);

 private:
  void add(const std::string& path, std::string why);
  [[nodiscard]] std::string danger_of(const std::string& path, const host::FileFacts& facts);
  [[nodiscard]] std::string danger_of_file(const host::FileFacts& facts);
  [[nodiscard]] bool link_leads_out(const std::string& path) const;

  const LiveDirectory& directory_;
  const host::Files& files_;
  std::int64_t began_;
  Outcome& outcome_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, bool> linked_;  ///< by device and inode
};

}  // namespace sbx::plan
