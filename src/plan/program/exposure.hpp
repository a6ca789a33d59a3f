#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/files/steps.hpp"
#include "plan/program/lookup.hpp"

/// Shows programs that neither the system directories nor a grant show, with no more than they need
/// to work.
namespace sbx::plan {

class Exposure {
 public:
  Exposure(const host::Host& host, const Lookup& lookup, View& view, std::vector<Mount>& steps,
           std::vector<std::string>& explanations);

  /// One file, alone, read-only at its own path. Returns its path inside.
  Result<std::string> show_file(const std::string& real);
  /// The directories of the prefix that an interpreter reads. Returns the prefix, empty if it is
  /// already visible.
  Result<std::string> show_interpreter(const std::string& real);
  /// The parts of a virtual environment that its programs read, and its interpreter.
  Status show_environment(const std::string& directory, const std::string& python);
  /// The links between `path` and its file, unless they are already visible.
  Status show_links(const std::string& path);

 private:
  Status show_part(const std::string& path);
  Status show_parts(const std::string& prefix);
  Status show_own_parts(const std::string& prefix, const std::string& real);
  void add(const std::string& source, const host::FileFacts& facts);
  [[nodiscard]] bool is_private_prefix(const std::string& prefix) const;

  const host::Host& host_;
  const Lookup& lookup_;
  View& view_;
  std::vector<Mount>& steps_;
  std::vector<std::string>& explanations_;
  std::string home_;  ///< canonical
};

/// The directory of the virtual environment that a python at `path` belongs to; empty if there is
/// none. `path` keeps its links: python finds the environment by it.
[[nodiscard]] std::string environment_of(const host::Files& files, const std::string& path);

}  // namespace sbx::plan
