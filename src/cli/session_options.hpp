#pragma once

#include <span>

#include "cli/options.hpp"

/// The options of the commands of sessions. The rows are made on demand.
namespace sbx::cli {

/// The values of --stdin, of a call in a session.
inline constexpr const char* kStdinOfCall = "inherit|null|open|FILE";

[[nodiscard]] std::span<const OptionRow> start_options();
[[nodiscard]] std::span<const OptionRow> exec_options();
[[nodiscard]] std::span<const OptionRow> eval_options();
[[nodiscard]] std::span<const OptionRow> context_options();
[[nodiscard]] std::span<const OptionRow> logs_options();
[[nodiscard]] std::span<const OptionRow> send_options();
[[nodiscard]] std::span<const OptionRow> wait_options();
[[nodiscard]] std::span<const OptionRow> put_options();
[[nodiscard]] std::span<const OptionRow> get_options();
[[nodiscard]] std::span<const OptionRow> ls_options();
[[nodiscard]] std::span<const OptionRow> rm_options();
[[nodiscard]] std::span<const OptionRow> session_stop_options();

}  // namespace sbx::cli
