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
/// The option and the policy line: "--memory 120M, or limits.memory = \"120M\" in the policy".
[[nodiscard]] std::string cure_of(const LimitText& limit, std::uint64_t value);

}  // namespace sbx::record
