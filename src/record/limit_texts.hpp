#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Texts about a limit beyond those in the record: for messages after a run and for `sbx why`.
namespace sbx::record {

struct LimitText {
  std::string_view name;
  std::string_view action;   ///< what the program did when it reached the limit
  std::string_view refusal;  ///< how the kernel answered; empty: the limit ends the run
  std::string_view option;   ///< the option of run, or the key for --set
  std::string_view risk;     ///< of raising it
};

/// Null if there is none of that name.
[[nodiscard]] const LimitText* find_limit(std::string_view name);
[[nodiscard]] bool is_size(std::string_view limit);
/// For people: "20", "16 MiB", "2 s".
[[nodiscard]] std::string amount(std::string_view limit, std::uint64_t value);
/// In policy syntax: "20", "\"16M\"", "\"2s\"".
[[nodiscard]] std::string toml_value(std::string_view limit, std::uint64_t value);
/// The option that allows twice as much: "--memory 120M", "--set 'limits.file_size=\"2M\"'".
[[nodiscard]] std::string twice(const LimitText& limit, std::uint64_t value);
/// What gives twice as much. `given_by`: the option that set the limit. A line of a policy changes
/// nothing there, so the same option is named: "--memory 120M". Empty where none did: the option
/// and the policy line, "--memory 120M, or limits.memory = \"120M\" in the policy". `most`: what a
/// call can have, its session's; 0 where nothing bounds it.
[[nodiscard]] std::string cure_of(const LimitText& limit, std::uint64_t value,
                                  std::string_view given_by = {}, std::uint64_t most = 0);
/// The option in a record's rule, as `limits.memory = "60M" (--memory)` names it; empty without
/// one.
[[nodiscard]] std::string_view option_in_rule(std::string_view rule);

}  // namespace sbx::record
