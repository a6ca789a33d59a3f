#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The words of records and of exit statuses, for `sbx policy explain`.
namespace sbx::record {

enum class TermKind : std::uint8_t { status, record_key, exit_status };

/// Text is held in place, not pointed to: no relocations at start.
struct Term {
  char name[16];  ///< "over-budget", "denials", "137"
  TermKind kind;
  char meaning[216];  ///< sentences
};

/// Null: none of that name. A number from 129 to 192 that no other term has is that of a signal.
[[nodiscard]] const Term* find_term(std::string_view name);
[[nodiscard]] std::vector<std::string_view> term_names();
/// What stands for `sbx policy explain NAME`; empty: there is no such term.
[[nodiscard]] std::string term_text(const std::string& name);

}  // namespace sbx::record
