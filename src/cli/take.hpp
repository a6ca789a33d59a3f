#pragma once

#include <string_view>

#include "base/result.hpp"
#include "cli/invocation.hpp"

/// The action of each option of `run`: checks the form of the value and stores it. Its meaning is
/// left to the policy's own parsers.
namespace sbx::cli {

/// Errors: usage, "bad-value" and similar, with the option and the expected form.
using Take = Status(Invocation& typed, std::string_view value);

/// Takes a switch: sets a member of Invocation, or a member of that member.
template <auto... Members>
Status sets(Invocation& typed, std::string_view) {
  (typed.*....*Members) = true;
  return {};
}

/// Refuses a path that begins with "~": a shell puts the home in its place where it begins a word,
/// and not behind "=" or in quotes.
[[nodiscard]] Status check_home(std::string_view value, const char* option);

Take take_session;
Take take_policy;
Take take_set;
Take take_timeout;
Take take_cpu_time;
Take take_memory;
Take take_disk;
Take take_output;
Take take_cpus;
Take take_processes;
Take take_read;
Take take_write;
Take take_in;
Take take_venv;
Take take_workspace;
Take take_net;
Take take_allow_host;
Take take_env;
Take take_env_file;
Take take_env_fd;
Take take_stdin;
Take take_cwd;
Take take_lang;
Take take_code;
Take take_cells;
Take take_parameter;
Take take_report;
Take take_report_fd;
Take take_events_fd;
Take take_require;
Take take_isolation;
Take take_color;
Take take_out;
Take take_collect;
Take take_apply;
Take take_keep;

}  // namespace sbx::cli
