#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "changes/kept_facts.hpp"
#include "workspace/changes.hpp"

/// The text that lists a kept set. One thing a line, words divided by blanks; bytes of names that
/// are not plain are written %XX. A file edited by hand is read as carefully as any other.
namespace sbx::changes {

using workspace::Noted;

/// A change, where its content lies, and what it was compared with.
struct Line {
  Change change;
  std::string content;  ///< a number; empty: none
  std::optional<Noted> before;
};
struct LayerLine {
  std::string prefix;
  ino_t inode = 0;
};
struct Manifest {
  KeptFacts facts;                    ///< all but the name
  std::vector<workspace::Left> held;  ///< ChangeSet::held
  std::vector<LayerLine> layers;
  std::vector<DirectoryLine> directories;
  workspace::Links links;
  std::vector<Line> lines;
};

[[nodiscard]] std::string write_manifest(const Manifest& manifest);

enum class Part : bool { facts, everything };
/// `name`: the set's, for messages. Errors: host "broken-set", with the number of the line: no path
/// in it leads out of the workspace, no content out of the set.
[[nodiscard]] Result<Manifest> parse_manifest(const std::string& name, std::string_view text,
                                              Part part);

}  // namespace sbx::changes
