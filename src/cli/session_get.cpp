#include "cli/session_get.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "base/text.hpp"
#include "cli/answer.hpp"
#include "cli/console.hpp"
#include "cli/session_copies.hpp"
#include "cli/usage.hpp"
#include "protocol/requests.hpp"
#include "session/client.hpp"
#include "transfer/host.hpp"

namespace sbx::cli {
namespace {

/// The command for a destination that is the last operand, as cp(1) has it.
std::string form_of_target(const Invocation& typed) {
  const std::vector<std::string>& words = typed.operands;
  std::string form = "sbx session get";
  for (std::size_t i = 0; i + 1 < words.size(); ++i) form += " " + shell_word(words[i]);
  struct stat facts{};
  const bool is_directory = ::stat(words.back().c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
  const bool is_file = words.size() == 3 && !words.back().ends_with('/') && !is_directory;
  return form + (is_file ? " --as " : " --out ") + shell_word(words.back());
}

/// Names in the sandbox were wrong, or there is something amiss with the place of the copies.
std::string help_of_get(const Invocation& typed, const std::vector<workspace::Left>& left) {
  const bool is_target = typed.operands.size() > 2 && typed.bring_out.directory.empty() &&
                         left.size() == 1 && left.front().path == typed.operands.back();
  if (is_target) return "if that is the target: " + form_of_target(typed);
  const bool is_inside = std::ranges::any_of(
      left, [](const workspace::Left& each) { return each.failed && each.side == Side::sandbox; });
  return (is_inside ? names_inside(typed.operands.front()) + "; " : "") +
         "--out DIR says where copies go";
}

bool is_on_host(const std::string& path) {
  struct stat facts{};
  return ::lstat(path.c_str(), &facts) == 0;
}

/// `get NAME a b`: who means that as cp(1) does has no file replaced by a misreading, and does not
/// get the sandbox's /tmp for a target /tmp.
Status check_several(const Invocation& typed) {
  if (typed.operands.size() < 3 || !typed.bring_out.directory.empty()) return {};
  const auto refuse = [&](const std::string& why) {
    return cli::usage(
        "usage", "each of several paths is copied to this directory, " + why,
        fmt::format("if the last one is the target: {}; --out . copies all of them here and "
                    "replaces what has their names",
                    form_of_target(typed)));
  };
  for (std::size_t i = 1; i < typed.operands.size(); ++i) {
    std::string_view name = typed.operands[i];
    while (name.ends_with('/')) name.remove_suffix(1);
    name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
    if (name.empty() || is_on_host(std::string(name)))
      return refuse(fmt::format("which has \"{}\" already",
                                printable(name.empty() ? typed.operands[i] : name)));
  }
  if (is_on_host(typed.operands.back()))
    return refuse(fmt::format("and the host has \"{}\" too", printable(typed.operands.back())));
  return {};
}

/// The files that say what the session may do and the links that lead to them, where they lie and
/// where a file lies now.
std::vector<std::string> policy_files_of(const host::Host& host,
                                         const protocol::SessionFacts& facts) {
  std::vector<std::string> files = facts.policy_files;
  for (const std::string& each : facts.policy_files)
    if (auto real = host.files->canonical(each); real && *real != each)
      files.push_back(std::move(*real));
  return files;
}

/// Nobody replaces the files that say what the session may do.
Status check_no_policy_file(const host::Host& host, const protocol::SessionFacts& facts,
                            const std::string& directory, const std::string& name) {
  const std::string place = host.files->canonical(directory).value_or(directory);
  const std::string target = (place == "/" ? "" : place) + "/" + name;
  for (const std::string& each : policy_files_of(host, facts))
    if (each == target)
      return fail(Error{.kind = ErrorKind::host,
                        .code = "cannot-put",
                        .message = "'" + printable(target) + "' is a policy file of the session",
                        .hint = "name another file",
                        .obstacle = Obstacle::not_permitted});
  return {};
}

/// `get NAME PATH --as FILE|-`.
Result<int> get_one(const Invocation& typed, const host::Host& host) {
  const std::string& as = typed.file.as;
  const bool to_output = as == "-";
  if (typed.operands.size() != 2) return wrong_operands(typed, "with --as takes one path");
  if (!typed.bring_out.directory.empty())
    return cli::usage("usage", "--as and --out exclude each other", "--as names the file itself");
  if (to_output && typed.output.json)
    return cli::usage("usage", "--as - and --json exclude each other",
                      "both write to standard output");
  session::Client asking = SBX_TRY(session::Client::connect(host, typed.operands.front()));
  const protocol::SessionFacts facts = SBX_TRY(asking.ask(protocol::InfoRequest{}));
  const auto slash = as.rfind('/');
  const std::string directory = slash == std::string::npos ? "."
                                : slash == 0               ? "/"
                                                           : as.substr(0, slash);
  const std::string name = as.substr(slash == std::string::npos ? 0 : slash + 1);
  if (name.empty() || name == "." || name == "..")
    return cli::usage("bad-value", fmt::format("--as: '{}' does not name a file", printable(as)),
                      "--out DIR copies to a directory");
  // A new file would take the place of /dev/stdout itself, where the caller is root.
  if (as.starts_with("/dev/") || as.starts_with("/proc/"))
    return cli::usage("bad-value",
                      fmt::format("--as: '{}' is of a device or a descriptor", printable(as)),
                      "--as - writes to standard output");
  workspace::OutDirectory target;
  if (!to_output) target = SBX_TRY(workspace::prepare_target(directory));
  if (!to_output) SBX_TRY(check_no_policy_file(host, facts, directory, name));
  const std::string& path = typed.operands[1];
  const auto call = SBX_TRY(OwnCall::begin(
      host, typed.operands.front(),
      transfer::read_arguments(path, {.offset = typed.file.offset, .most = typed.file.limit}),
      "get"));
  call->close_to();
  Progress progress(STDERR_FILENO, typed.output.quiet || typed.output.json || to_output);
  const transfer::OneFile what{.path = path,
                               .shown = to_output ? "standard output" : as,
                               .max_bytes = facts.outputs.max_bytes,
                               .passed = shown_by(progress)};
  if (to_output) {
    const auto got = transfer::receive_stream(call->from(), STDOUT_FILENO, what);
    if (!got) return fail(call->explained(got.error()));
    return SBX_TRY(call->end());
  }
  const auto got = transfer::receive_file(call->from(), target.get(), name, what);
  progress.clear();
  if (!got) return fail(call->explained(got.error()));
  (void)SBX_TRY(call->end());
  const int told = tell_done(typed, GetDocument{.files = {*got}}, {}, 0, {});
  if (told == kDone && !typed.output.quiet && !typed.output.json) tell_brought({*got});
  return told;
}

}  // namespace

Result<int> get_files(const Invocation& typed, const host::Host& host) {
  SBX_TRY(check_paths(typed));
  SBX_TRY(check_form(typed));
  if (!typed.file.as.empty()) return get_one(typed, host);
  if (typed.file.offset > 0 || typed.file.limit > 0)
    return cli::usage("usage", "--offset and --limit without --as have no effect",
                      "--as FILE, or --as - for standard output");
  const std::vector<std::string> paths(typed.operands.begin() + 1, typed.operands.end());
  if (paths.empty()) return wrong_operands(typed, "needs a path to copy");
  // As the target of docker cp. It names the session's whole directory, whose files would replace
  // the caller's.
  if (paths.size() > 1 && (paths.back() == "." || paths.back() == "./"))
    return cli::usage("usage",
                      "the last path, \".\", is the session's whole directory, not a target",
                      "leave it out to copy into the working directory; --out DIR names another");
  SBX_TRY(check_several(typed));
  const std::string directory = typed.bring_out.directory.empty() ? "." : typed.bring_out.directory;
  session::Client asking = SBX_TRY(session::Client::connect(host, typed.operands.front()));
  const protocol::SessionFacts facts = SBX_TRY(asking.ask(protocol::InfoRequest{}));
  const workspace::OutLimits limits{.max_bytes = facts.outputs.max_bytes,
                                    .max_files = facts.outputs.max_files,
                                    .max_depth = facts.outputs.max_depth};
  const workspace::OutDirectory target = SBX_TRY(workspace::prepare_target(directory));
  const std::string place = host.files->canonical(directory).value_or(directory);
  std::vector<std::string> words = SBX_TRY(transfer::get_arguments(paths, limits, place));
  const auto call = SBX_TRY(OwnCall::begin(host, typed.operands.front(), std::move(words), "get"));
  call->close_to();
  Progress progress(STDERR_FILENO, typed.output.quiet || typed.output.json);
  auto got = transfer::receive_files(call->from(), target.get(),
                                     {.paths = paths,
                                      .limits = limits,
                                      .place = place,
                                      .policy_files = policy_files_of(host, facts),
                                      .passed = shown_by(progress)});
  progress.clear();
  if (!got) return fail(call->explained(std::move(got).error()));
  const int status = SBX_TRY(call->end());
  const int told = tell_done(typed, GetDocument{.files = got->brought}, got->left, got->more_left,
                             help_of_get(typed, got->left));
  if (told != kDone) return told;
  if (!typed.output.quiet && !typed.output.json) tell_brought(got->brought);
  if (got->broken) {  // the answer is printed
    console().complain(*got->broken, typed.output.color);
    return exit_status_of(*got->broken);
  }
  return status_of_extent({.all = status == kDone && got->left.empty() && got->more_left == 0,
                           .any = !got->brought.empty(),
                           .failed = got->has_failures || status != kDone});
}

}  // namespace sbx::cli
