#include "cli/session_files.hpp"

#include <fmt/format.h>
#include <time.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "cli/answer.hpp"
#include "cli/console.hpp"
#include "cli/session_copies.hpp"
#include "cli/session_documents.hpp"
#include "cli/usage.hpp"
#include "session/client.hpp"
#include "session/json.hpp"
#include "transfer/host.hpp"

namespace sbx::cli {

Result<client::DirectoryListing> list_directory(const host::Host& host, const std::string& session,
                                                const std::string& path, std::uint64_t depth) {
  return client::Listing(SBX_TRY(session::Client::connect(host, session)), path, depth).run();
}

namespace {

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

NameFacts facts_of(const transfer::Listed& each) {
  NameFacts facts{.type = each.type,
                  .bytes = each.bytes,
                  .mode = fmt::format("{:04o}", each.mode & 07777U),
                  .owner = each.owner,
                  .group = each.group,
                  .modified = each.modified.tv_sec};
  if (!each.leads_to.empty()) facts.target = each.leads_to;
  return facts;
}

std::string entry_line(const transfer::Listed& each) {
  return fmt::format("{} {:>10}  {}  {}{}\n", mode_text(each.type, each.mode), each.bytes,
                     minute_text(each.modified.tv_sec), printable(each.name),
                     each.leads_to.empty() ? "" : " -> " + printable(each.leads_to));
}

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
  if (!is_told)
    return typed.output.json ? print(dump(session::headed(PathDocument{.path = path}))) : kDone;
  const transfer::Listed entry{.name = path,
                               .type = answer->type,
                               .mode = answer->mode,
                               .bytes = answer->size,
                               .modified = answer->modified,
                               .leads_to = answer->text,
                               .owner = answer->owner,
                               .group = answer->group};
  if (!typed.output.json) return print_fitted(entry_line(entry));
  return print(dump(session::headed(StatDocument{.path = path, .facts = facts_of(entry)})));
}

Result<int> list_files(const Invocation& typed, const host::Host& host) {
  SBX_TRY(check_paths(typed));
  if (typed.operands.size() > 2) return wrong_operands(typed, "lists one directory");
  const std::string path = typed.operands.size() > 1 ? typed.operands[1] : ".";
  const auto [listing, status, said] =
      SBX_TRY(list_directory(host, typed.operands.front(), path, typed.file.depth));
  console().tell(said);
  const Extent done{
      .all = status == kDone, .any = !listing.entries.empty(), .failed = status != kDone};
  if (typed.output.json) {
    ListingDocument document{
        .path = path, .left = left_files(listing.left), .is_cut = listing.is_cut};
    for (const transfer::Listed& each : listing.entries)
      document.entries.push_back({.name = each.name, .facts = facts_of(each)});
    return print(dump(session::headed(document))) != kDone ? exit_status::kCouldNot
                                                           : status_of_extent(done);
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
