#include "cli/session_put.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "base/text.hpp"
#include "cli/answer.hpp"
#include "cli/console.hpp"
#include "cli/session_copies.hpp"
#include "cli/usage.hpp"
#include "protocol/requests.hpp"
#include "record/limit_texts.hpp"
#include "session/client.hpp"
#include "transfer/host.hpp"

namespace sbx::cli {
namespace {

constexpr const char* kOfHost = "put takes files of this machine; a path begins in this directory";

std::string names_of_host(const std::string& session, const std::vector<std::string>& sources) {
  if (std::ranges::find(sources, "-") == sources.end()) return kOfHost;
  return fmt::format("- is standard input, alone: ... | sbx session put {} - TARGET",
                     printable(session));
}

/// The limit that may have been met where the session has no room; a directory of the host may be
/// full too.
std::string more_room(const host::Host& host, const std::string& session) {
  auto asking = session::Client::connect(host, session);
  if (!asking) return names_inside(session);
  const auto facts = asking->ask_soon(protocol::InfoRequest{});
  if (!facts) return names_inside(session);
  const std::uint64_t bytes = facts->limits.disk_bytes;
  return fmt::format(
      "perhaps limits.disk = {} or limits.disk_files = {} was met: sbx session start NAME {} "
      "starts one with more",
      record::toml_value("disk", bytes), facts->limits.disk_files,
      record::twice(*record::find_limit("disk"), bytes));
}

bool has_no_room(const workspace::Left& left) {
  return left.side == Side::sandbox && left.obstacle == Obstacle::no_space;
}

/// A name of this machine was wrong, or a place in the sandbox.
std::string help_of_put(const host::Host& host, const std::string& session,
                        const std::vector<std::string>& sources,
                        const std::vector<workspace::Left>& left) {
  const bool is_of_host = std::ranges::any_of(
      left, [](const workspace::Left& each) { return each.failed && each.side == Side::host; });
  if (!is_of_host && std::ranges::any_of(left, has_no_room)) return more_room(host, session);
  return is_of_host ? names_of_host(session, sources) : names_inside(session);
}

/// Why the sandbox did not write what was sent.
Error not_written(const host::Host& host, const workspace::Left& left, const std::string& session) {
  return {.kind = ErrorKind::host,
          .code = "cannot-write",
          .message = "'" + printable(left.path) + "' in the session: " + left.why,
          .hint = has_no_room(left) ? more_room(host, session) : names_inside(session),
          .obstacle = left.obstacle,
          .side = left.side};
}

Error unread_input(Error error) {
  error.hint = error.errno_value == EISDIR
                   ? "it is a directory: sbx session put NAME DIR copies one"
                   : "give it a file or a pipe: sbx session put NAME - TARGET <FILE";
  return error;
}

/// `put NAME - TARGET`.
Result<int> put_stream(const Invocation& typed, const host::Host& host) {
  if (typed.operands.size() != 3)
    return cli::usage("usage", "standard input becomes one file, whose name must be given",
                      "sbx session put NAME - TARGET");
  const auto call =
      SBX_TRY(OwnCall::begin(host, typed.operands.front(), {"write", typed.operands[2]}, "put"));
  Progress progress(STDERR_FILENO, typed.output.quiet || typed.output.json);
  const Status sent = transfer::send_stream(call->to(), STDIN_FILENO, shown_by(progress));
  progress.clear();
  call->close_to();
  const auto report = transfer::read_report(call->from());
  const int status = SBX_TRY(call->end());
  // The stream was cut, and the sandbox says so too: the cause is here.
  if (!sent && sent.error().code == "cannot-read") return fail(unread_input(sent.error()));
  if (report && !report->left.empty())
    return fail(not_written(host, report->left.front(), typed.operands.front()));
  if (!sent) return fail(sent.error());
  if (!report) return fail(report.error());
  if (status != kDone || report->written.size() != 1)
    return fail(Error{.kind = ErrorKind::host,
                      .code = "cannot-write",
                      .message = "the session did not write the file",
                      .side = Side::sandbox});
  const int told = tell_done(
      typed,
      PutDocument{
          .files = report->written.size(), .bytes = report->bytes, .written = report->written},
      {}, 0, kOfHost);
  if (told == kDone && !typed.output.quiet && !typed.output.json) tell_brought(report->written);
  return told;
}

}  // namespace

Result<int> put_files(const Invocation& typed, const host::Host& host) {
  SBX_TRY(check_paths(typed));
  SBX_TRY(check_form(typed));
  if (typed.operands.size() > 1 && typed.operands[1] == "-") return put_stream(typed, host);
  std::vector<std::string> sources(typed.operands.begin() + 1, typed.operands.end());
  if (sources.empty()) return wrong_operands(typed, "needs a file to copy");
  std::string target;
  if (sources.size() > 1) {
    target = std::move(sources.back());
    sources.pop_back();
  }
  std::vector<std::string> words = SBX_TRY(transfer::put_arguments(sources, target));
  const auto call = SBX_TRY(OwnCall::begin(host, typed.operands.front(), std::move(words), "put"));
  Progress progress(STDERR_FILENO, typed.output.quiet || typed.output.json);
  const transfer::Sent sent = transfer::send_files(call->to(), sources, shown_by(progress));
  progress.clear();
  call->close_to();
  const auto report = transfer::read_report(call->from());
  const int status = SBX_TRY(call->end());
  if (!report) {
    tell_left(sent.left, sent.more_left);
    return fail(report.error());
  }
  std::vector<workspace::Left> left = sent.left;
  left.insert(left.end(), report->left.begin(), report->left.end());
  const int told = tell_done(
      typed,
      PutDocument{.files = report->files, .bytes = report->bytes, .written = report->written}, left,
      sent.more_left + report->more_left, help_of_put(host, typed.operands.front(), sources, left));
  const bool all = left.empty() && sent.is_whole && status == kDone;
  if (told != kDone) return told;
  if (!typed.output.quiet && !typed.output.json)
    tell_brought(report->written, std::max<std::uint64_t>(report->files, report->written.size()),
                 report->bytes);
  return status_of_extent({.all = all,
                           .any = report->files > 0 || report->bytes > 0,
                           .failed = sent.has_failures || status != kDone});
}

}  // namespace sbx::cli
