#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The terms used in records and exit statuses, for `sbx policy explain`.
namespace sbx::record {

enum class TermKind : std::uint8_t {
  status,
  record_key,
  exit_status,
  workspace_mode,
  promise,  ///< a name in `degraded`; keys of the policy have their own text
  form,     ///< of isolation
};

/// Text is stored in place: pointers would need relocations at start.
struct Term {
  char name[16];  ///< "over-budget", "denials", "137"
  TermKind kind;
  char meaning[216];  ///< sentences
};

/// Null if unknown. A number from 129 to 192 without a term of its own is explained as a signal.
[[nodiscard]] const Term* find_term(std::string_view name);
[[nodiscard]] std::vector<std::string_view> term_names();
/// The answer to `sbx policy explain NAME`; empty if there is no such term.
[[nodiscard]] std::string term_text(const std::string& name);

}  // namespace sbx::record
