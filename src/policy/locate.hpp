#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/context.hpp"
#include "policy/packed.hpp"

namespace sbx::policy {

/// A policy's text and where it was found.
struct PolicyText {
  std::string content;                    ///< of a file
  const PackedPolicy* builtin = nullptr;  ///< of a built-in
  std::string name;                       ///< its name in origins: as typed, "default.toml"
  std::string stem;                       ///< the name of a policy that has none
  std::string identity;                   ///< canonical path, or the name of a built-in
  std::string directory;  ///< what its relative paths start from; empty for a built-in
  Layer layer = Layer::file;
  bool by_name = false;            ///< found by its name, not by its path
  std::uint32_t owner = 0;         ///< uid of a file
  bool self_contained = false;     ///< given as text: only built-ins can be its parents
  std::vector<std::string> links;  ///< links_on_the_way() to a file
  bool typed = false;  ///< the caller named this very file: no link, no `extends` led to it
  std::string note;    ///< worth a line on stderr

  [[nodiscard]] std::string_view text() const {
    return builtin != nullptr ? builtin->toml : content;
  }
};

/// Whether a file may be a policy: its resolved name ends in ".toml".
[[nodiscard]] bool has_policy_name(const PolicyText& text);
/// Whether lines and words of the text may be shown: of a file that the caller did not name
/// himself, only if it says of itself that it is a policy. One in a pull request may be a link to a
/// file with secrets, or extend one.
[[nodiscard]] bool may_be_quoted(const PolicyText& text);

/// Where a NAME or FILE is looked for.
struct LookIn {
  std::string directory;          ///< relative paths start here; empty: only built-ins are known
  std::string display_directory;  ///< put before relative paths in messages; empty for the working
                                  ///< directory
};

/// Finds and reads one policy. Errors: policy ("unknown-policy", "no-such-file",
/// "not-a-regular-file", "policy-too-large", "unreadable-policy", "shadows-builtin").
[[nodiscard]] Result<PolicyText> locate(const std::string& operand, const LookIn& where,
                                        const LoadContext& context);

/// Where each symbolic link lies that leads to what an absolute path names: its directory is
/// canonical. Empty for a path without links.
[[nodiscard]] std::vector<std::string> links_on_the_way(std::string_view path);

/// The policies compiled in, `default` first.
struct Builtin {
  std::string_view name;
  std::string_view toml;
};
[[nodiscard]] std::vector<Builtin> builtins();

}  // namespace sbx::policy
