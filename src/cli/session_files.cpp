#include "cli/session_files.hpp"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <memory>
#include <optional>
#include <span>

#include "base/event_loop.hpp"
#include "base/progress.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "changes/json.hpp"
#include "cli/answer.hpp"
#include "cli/console.hpp"
#include "cli/usage.hpp"
#include "client/task.hpp"
#include "protocol/requests.hpp"
#include "record/words.hpp"
#include "run/launch.hpp"
#include "session/client.hpp"
#include "session/json.hpp"
#include "transfer/host.hpp"

namespace sbx::cli {
namespace {

std::unexpected<Error> wrong_operands(const Invocation& typed, const char* needs) {
  return cli::usage("usage", fmt::format("\"sbx {}\" {}", typed.command, needs),
                    fmt::format("sbx {} --help", typed.command));
}

/// An empty path is often a variable that is not set, and means nothing to the kernel.
Status check_paths(const Invocation& typed) {
  for (std::size_t i = 1; i < typed.operands.size(); ++i)
    if (typed.operands[i].empty())
      return cli::usage("usage", fmt::format("\"sbx {}\" got an empty path", typed.command),
                        "name a file or directory; . is the session's directory");
  return {};
}

/// A call that runs sbx's own code inside, with pipes between it and this process.
class OwnCall {
 public:
  static Result<std::unique_ptr<OwnCall>> begin(const host::Host& host, const std::string& session,
                                                std::vector<std::string> words,
                                                const std::string& title) {
    const protocol::FilesRequest request{
        .id = run::make_run_id(), .title = title, .words = std::move(words)};
    std::unique_ptr<OwnCall> call(new OwnCall(SBX_TRY(session::Client::connect(host, session)),
                                              request, SBX_TRY(EventLoop::make())));
    SBX_TRY(call->begin());
    return call;
  }

  [[nodiscard]] int to() const { return to_.get(); }
  [[nodiscard]] int from() const { return from_.get(); }
  void close_to() { to_.reset(); }
  /// The exit status. Errors: those of the call->
  [[nodiscard]] Result<int> end() {
    to_.reset();
    from_.reset();
    return SBX_TRY(client::run_until(loop_, ended_)).status;
  }

 private:
  OwnCall(session::Client connection, const protocol::FilesRequest& request, EventLoop loop)
      : loop_(std::move(loop)), files_(std::move(connection), request) {}

  Status begin() {
    sys::Pipe in = SBX_TRY(sys::make_pipe());
    sys::Pipe out = SBX_TRY(sys::make_pipe());
    const int fds[] = {in.read.get(), out.write.get(), STDERR_FILENO};
    SBX_TRY(files_.attach(
        loop_, {.ended = [this](auto ended) { ended_.emplace(std::move(ended)); }}, fds));
    while (!files_.has_begun() && !ended_) SBX_TRY(loop_.run_once());
    if (!files_.has_begun()) return fail(ended_->error());
    to_ = std::move(in.write);
    from_ = std::move(out.read);
    return {};
  }

  EventLoop loop_;
  std::optional<Result<protocol::CallEnded>> ended_;
  client::Files files_;
  UniqueFd to_;
  UniqueFd from_;
};

void tell_left(const std::vector<workspace::Left>& left, std::uint64_t more) {
  constexpr std::size_t kShown = 20;
  const std::size_t shown = std::min(left.size(), kShown);
  for (const workspace::Left& each : std::span(left).first(shown))
    console().tell("sbx: left out: " + printable(each.path) + ": " + printable(each.why) + "\n");
  more += left.size() - shown;
  if (more > 0) console().tell(fmt::format("sbx: left out: {} more; --json lists them\n", more));
}

/// The first files by name, those that replaced another before all; of more only their number and
/// size. `files`, `bytes`: of all of them.
void tell_brought(std::vector<transfer::Brought> brought, std::uint64_t files,
                  std::uint64_t bytes) {
  constexpr std::size_t kShown = 20;
  std::ranges::stable_partition(brought, &transfer::Brought::replaced);
  const std::size_t shown = std::min(brought.size(), kShown);
  for (const transfer::Brought& each : std::span(brought).first(shown)) {
    bytes -= std::min(bytes, each.bytes);
    console().tell(fmt::format("sbx: {} ({}{})\n", printable(each.path),
                               describe(Bytes{each.bytes}),
                               each.replaced ? ", replaced another" : ""));
  }
  if (files <= shown) return;
  const auto replaced =
      std::ranges::count_if(std::span(brought).subspan(shown), &transfer::Brought::replaced);
  console().tell(fmt::format(
      "sbx: and {} more files ({}{}); --json lists them\n", files - shown, describe(Bytes{bytes}),
      replaced > 0 ? fmt::format(", {} of them replaced another", replaced) : std::string()));
}

/// Of files and links: a directory that was there stays.
void tell_brought(const std::vector<transfer::Brought>& brought) {
  std::vector<transfer::Brought> files;
  std::ranges::copy_if(brought, std::back_inserter(files), [](const transfer::Brought& each) {
    return each.type != FileType::directory;
  });
  std::uint64_t bytes = 0;
  for (const transfer::Brought& each : files) bytes += each.bytes;
  const std::size_t count = files.size();
  tell_brought(std::move(files), count, bytes);
}

transfer::Passed shown_by(Progress& progress) {
  return [&progress](std::uint64_t bytes) { progress.tick(describe(Bytes{bytes}) + " copied"); };
}

/// How much of what was asked for a command did.
struct Extent {
  bool all = false;
  bool any = false;
  bool failed = false;  ///< else what is missing is of a kind that is never copied
};
int status_of_extent(const Extent& done) {
  if (done.all) return kDone;
  return done.any || !done.failed ? kFindings : exit_status::kCouldNot;
}

constexpr const char* kOfHost = "put takes files of this machine; a path begins in this directory";

std::string names_inside(const std::string& session) {
  return fmt::format("sbx session ls {} lists what is in the session's directory",
                     printable(session));
}

/// Names in the sandbox were wrong, or there is something amiss with the place of the copies.
std::string help_of_get(const std::string& session, const std::vector<workspace::Left>& left) {
  const bool is_inside = std::ranges::any_of(
      left, [](const workspace::Left& each) { return each.failed && each.side == Side::sandbox; });
  return (is_inside ? names_inside(session) + "; " : "") + "--out DIR says where copies go";
}

std::string names_of_host(const std::string& session, const std::vector<std::string>& sources) {
  if (std::ranges::find(sources, "-") == sources.end()) return kOfHost;
  return fmt::format("- is standard input, alone: ... | sbx session put {} - TARGET",
                     printable(session));
}

/// A name of this machine was wrong, or a place in the sandbox.
std::string help_of_put(const std::string& session, const std::vector<std::string>& sources,
                        const std::vector<workspace::Left>& left) {
  const bool is_of_host = std::ranges::any_of(
      left, [](const workspace::Left& each) { return each.failed && each.side == Side::host; });
  return is_of_host ? names_of_host(session, sources) : names_inside(session);
}

/// What a command did, as JSON or, what it left out, as messages. `help` says where the names are
/// that could have been meant.
int tell_done(const Invocation& typed, const Json& done, const std::vector<workspace::Left>& left,
              std::uint64_t more, const std::string& help) {
  if (!typed.output.json) {
    tell_left(left, more);
    if (std::ranges::any_of(left, &workspace::Left::failed))
      console().tell("  help: " + help + "\n");
    return kDone;
  }
  Json json = session::headed(done);
  json["left"] = changes::left_json(left);
  json["left_out"] = more;
  return print(dump(json));
}

Json files_json(const std::vector<transfer::Brought>& files) {
  Json list = Json::array();
  for (const transfer::Brought& each : files) {
    Json json;
    put_name(json, "path", each.path);
    json["type"] = changes::type_name(each.type);
    json["bytes"] = each.bytes;
    json["replaced"] = each.replaced;
    list.push_back(std::move(json));
  }
  return list;
}

/// As ls(1) shows it. A listing does not tell the two kinds of devices apart.
char type_letter(FileType type) {
  switch (type) {
    case FileType::file:
      return '-';
    case FileType::directory:
      return 'd';
    case FileType::link:
      return 'l';
    case FileType::fifo:
      return 'p';
    case FileType::socket:
      return 's';
    case FileType::device:
      return 'c';
  }
  return '-';
}

std::string mode_text(FileType type, mode_t mode) {
  std::string text(1, type_letter(type));
  constexpr std::string_view kLetters = "rwxrwxrwx";
  for (std::size_t i = 0; i < kLetters.size(); ++i)
    text += (mode >> (8 - i) & 1U) != 0 ? kLetters[i] : '-';
  return text;
}

}  // namespace

namespace {

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

Json written_json(const std::vector<transfer::Brought>& written, std::uint64_t bytes) {
  return {{"files", written.size()}, {"bytes", bytes}, {"written", files_json(written)}};
}

/// Why the sandbox did not write what was sent.
Error not_written(const workspace::Left& left, const std::string& session) {
  return {.kind = ErrorKind::host,
          .code = "cannot-write",
          .message = "'" + printable(left.path) + "' in the session: " + left.why,
          .hint = names_inside(session),
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
    return fail(not_written(report->left.front(), typed.operands.front()));
  if (!sent) return fail(sent.error());
  if (!report) return fail(report.error());
  if (status != kDone || report->written.size() != 1)
    return fail(Error{.kind = ErrorKind::host,
                      .code = "cannot-write",
                      .message = "the session did not write the file",
                      .side = Side::sandbox});
  const int told = tell_done(typed, written_json(report->written, report->bytes), {}, 0, kOfHost);
  if (told == kDone && !typed.output.quiet && !typed.output.json) tell_brought(report->written);
  return told;
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
    SBX_TRY(transfer::receive_stream(call->from(), STDOUT_FILENO, what));
    return SBX_TRY(call->end());
  }
  const auto got = transfer::receive_file(call->from(), target.get(), name, what);
  progress.clear();
  if (!got) return fail(got.error());
  (void)SBX_TRY(call->end());
  const int told = tell_done(typed, {{"files", files_json({*got})}}, {}, 0, kOfHost);
  if (told == kDone && !typed.output.quiet && !typed.output.json) tell_brought({*got});
  return told;
}

}  // namespace

Result<int> put_files(const Invocation& typed, const host::Host& host) {
  SBX_TRY(check_paths(typed));
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
  const int told = tell_done(typed,
                             {{"files", report->files},
                              {"bytes", report->bytes},
                              {"written", files_json(report->written)}},
                             left, sent.more_left + report->more_left,
                             help_of_put(typed.operands.front(), sources, left));
  const bool all = left.empty() && sent.is_whole && status == kDone;
  if (told != kDone) return told;
  if (!typed.output.quiet && !typed.output.json)
    tell_brought(report->written, std::max<std::uint64_t>(report->files, report->written.size()),
                 report->bytes);
  return status_of_extent({.all = all,
                           .any = report->files > 0 || report->bytes > 0,
                           .failed = sent.has_failures || status != kDone});
}

Result<int> get_files(const Invocation& typed, const host::Host& host) {
  SBX_TRY(check_paths(typed));
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
  if (!got) return fail(std::move(got).error());
  const int status = SBX_TRY(call->end());
  const int told = tell_done(typed, {{"files", files_json(got->brought)}}, got->left,
                             got->more_left, help_of_get(typed.operands.front(), got->left));
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

Result<client::DirectoryListing> list_directory(const host::Host& host, const std::string& session,
                                                const std::string& path, std::uint64_t depth) {
  return client::Listing(SBX_TRY(session::Client::connect(host, session)), path, depth).run();
}

namespace {

Json entry_json(const transfer::Listed& each) {
  Json entry;
  put_name(entry, "name", each.name);
  entry["type"] = changes::type_name(each.type);
  entry["bytes"] = each.bytes;
  entry["mode"] = fmt::format("{:04o}", each.mode & 07777U);
  entry["owner"] = each.owner;
  entry["group"] = each.group;
  entry["modified"] = each.modified.tv_sec;
  if (!each.leads_to.empty()) put_name(entry, "target", each.leads_to);
  return entry;
}

std::string entry_line(const transfer::Listed& each) {
  return fmt::format("{} {:>10}  {}  {}{}\n", mode_text(each.type, each.mode), each.bytes,
                     minute_text(each.modified.tv_sec), printable(each.name),
                     each.leads_to.empty() ? "" : " -> " + printable(each.leads_to));
}

}  // namespace

namespace {

/// What to type instead; empty: the kernel's answer says enough.
std::string cure_of_change(const std::string& verb, const std::vector<std::string>& operands,
                           int errno_value) {
  const std::string session = shell_word(operands.front());
  const std::string path = shell_word(operands[1]);
  const std::string& target = operands.back();
  if (verb == "rm" && errno_value == EISDIR)
    return fmt::format("a directory, with all that is in it: sbx session rm -r {} {}", session,
                       path);
  if (verb == "mkdir" && errno_value == EEXIST) return "name a directory that is not there yet";
  if (verb == "rm" && errno_value == EINVAL)
    return "name a file or directory by its own name: '.', '..' and '/' stay";
  if (verb != "mv") return {};
  switch (errno_value) {
    case ENOENT:
      return fmt::format(
          "the path, or the directory of the target, is not there: sbx session stat {} {} tells "
          "which",
          session, path);
    case EINVAL:
      return "a directory can't be moved into itself: name a target outside of it";
    case EXDEV:
      return fmt::format(
          "the target is on another file system, so copy: sbx session exec {} -- mv "
          "{} {}",
          session, path, shell_word(target));
    case EISDIR:
    case ENOTEMPTY:
    case EEXIST:
      return fmt::format("the target is a directory: name the place in it, {}",
                         shell_word(target + (target.ends_with('/') ? "" : "/") +
                                    operands[1].substr(operands[1].rfind('/') + 1)));
    case ENOTDIR:
      return "a directory takes the place of no file: name a target that is not there, in a "
             "directory";
    default:
      return {};
  }
}

}  // namespace

Result<int> change_files(const Invocation& typed, const host::Host& host) {
  const std::string verb = typed.command.substr(typed.command.rfind(' ') + 1);
  const std::size_t needs = verb == "mv" ? 3 : 2;
  if (verb == "rm" && typed.operands.size() == 1)
    return cli::usage(
        "usage", "\"sbx session rm\" needs one path",
        fmt::format("to end the session: sbx session stop {}", shell_word(typed.operands.front())));
  if (typed.operands.size() != needs)
    return wrong_operands(typed, verb == "mv" ? "needs a path and a target" : "needs one path");
  SBX_TRY(check_paths(typed));
  const std::string& path = typed.operands[1];
  std::vector<std::string> words{verb == "rm" && typed.file.recursive ? "rm-r" : verb};
  words.insert(words.end(), typed.operands.begin() + 1, typed.operands.end());
  const auto call = SBX_TRY(OwnCall::begin(host, typed.operands.front(), std::move(words), verb));
  call->close_to();
  const auto answer = transfer::read_answer(call->from(), path, [&](int errno_value) {
    return cure_of_change(verb, typed.operands, errno_value);
  });
  const int status = SBX_TRY(call->end());
  if (!answer) return fail(answer.error());
  const bool is_told = answer->kind == transfer::FrameKind::listed;
  if (status != kDone || is_told != (verb == "stat"))
    return fail(Error{.kind = ErrorKind::host,
                      .code = "broken-transfer",
                      .message = "the session gave no answer"});
  Json json = session::headed(Json::object());
  put_name(json, "path", path);
  if (!is_told) return typed.output.json ? print(dump(json)) : kDone;
  const transfer::Listed entry{.name = path,
                               .type = answer->type,
                               .mode = answer->mode,
                               .bytes = answer->size,
                               .modified = answer->modified,
                               .leads_to = answer->text,
                               .owner = answer->owner,
                               .group = answer->group};
  if (!typed.output.json) return print_fitted(entry_line(entry));
  Json facts = entry_json(entry);
  facts.erase("name");
  facts.erase("name_b64");
  json.update(facts);
  return print(dump(json));
}

Result<int> list_files(const Invocation& typed, const host::Host& host) {
  SBX_TRY(check_paths(typed));
  if (typed.operands.size() > 2) return wrong_operands(typed, "lists one directory");
  const std::string path = typed.operands.size() > 1 ? typed.operands[1] : ".";
  const auto [listing, status] =
      SBX_TRY(list_directory(host, typed.operands.front(), path, typed.file.depth));
  const Extent done{
      .all = status == kDone, .any = !listing.entries.empty(), .failed = status != kDone};
  if (typed.output.json) {
    Json json = session::headed(Json::object());
    put_name(json, "path", path);
    json["entries"] = Json::array();
    for (const transfer::Listed& each : listing.entries)
      json["entries"].push_back(entry_json(each));
    json["left"] = changes::left_json(listing.left);
    json["is_cut"] = listing.is_cut;
    return print(dump(json)) != kDone ? exit_status::kCouldNot : status_of_extent(done);
  } else {
    std::string text;
    for (const transfer::Listed& each : listing.entries) text += entry_line(each);
    if (print_fitted(text) != kDone) return exit_status::kCouldNot;
  }
  tell_left(listing.left, 0);
  if (!listing.left.empty() && path != ".")
    console().tell("  help: " + names_inside(typed.operands.front()) + "\n");
  if (listing.is_cut)
    console().tell(
        fmt::format("sbx: only the first {} names are listed\n", listing.entries.size()));
  return status_of_extent(done);
}

}  // namespace sbx::cli
