#include "cli/session_copies.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <span>

#include "base/text.hpp"
#include "cli/answer.hpp"
#include "cli/console.hpp"
#include "cli/habits.hpp"
#include "cli/usage.hpp"
#include "run/launch.hpp"
#include "session/client.hpp"
#include "session/json.hpp"
#include "session/session_name.hpp"

namespace sbx::cli {

std::unexpected<Error> wrong_operands(const Invocation& typed, const char* needs) {
  return cli::usage("usage", fmt::format("\"sbx {}\" {}", typed.command, needs),
                    fmt::format("sbx {} --help", typed.command));
}

Status check_paths(const Invocation& typed) {
  for (std::size_t i = 1; i < typed.operands.size(); ++i)
    if (typed.operands[i].empty())
      return cli::usage("usage", fmt::format("\"sbx {}\" got an empty path", typed.command),
                        "name a file or directory; . is the session's directory");
  return {};
}

std::string names_inside(const std::string& session) {
  return fmt::format("sbx session ls {} lists what is in the session's directory",
                     printable(session));
}

Status check_form(const Invocation& typed) {
  const std::vector<std::string>& words = typed.operands;
  const std::string prefix = words.front() + ":";
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!words[i].starts_with(prefix)) continue;
    const std::string path = words[i].substr(prefix.size());
    std::string form = "sbx " + typed.command;
    for (std::size_t at = 0; at < words.size(); ++at)
      form += " " + shell_word(at == i ? path.empty() ? "." : path : words[at]);
    if (typed.command == "session get" && form.ends_with(" .") && i + 1 < words.size())
      form.resize(form.size() - 2);  // copies go there anyway
    return cli::usage("usage",
                      fmt::format("\"{}\" names the session a second time", printable(words[i])),
                      fmt::format("{}; a name that begins so is ./{}", form, words[i]));
  }
  const std::string form = copy_habit(words);
  if (form.empty() || session::check_name(words.front())) return {};
  return cli::usage("usage", fmt::format("\"sbx {}\" takes the session first", typed.command),
                    form);
}

Result<std::unique_ptr<OwnCall>> OwnCall::begin(const host::Host& host, const std::string& session,
                                                std::vector<std::string> words,
                                                const std::string& title) {
  const protocol::FilesRequest request{
      .id = run::make_run_id(), .title = title, .words = std::move(words)};
  std::unique_ptr<OwnCall> call(new OwnCall(SBX_TRY(session::Client::connect(host, session)),
                                            request, SBX_TRY(EventLoop::make())));
  SBX_TRY(call->begin());
  return call;
}

Status OwnCall::begin() {
  sys::Pipe in = SBX_TRY(sys::make_pipe());
  sys::Pipe out = SBX_TRY(sys::make_pipe());
  const int fds[] = {in.read.get(), out.write.get(), STDERR_FILENO};
  SBX_TRY(files_.attach(loop_, {.ended = [this](auto ended) { ended_.emplace(std::move(ended)); }},
                        fds));
  while (!files_.has_begun() && !ended_) SBX_TRY(loop_.run_once());
  if (!files_.has_begun()) return fail(ended_->error());
  to_ = std::move(in.write);
  from_ = std::move(out.read);
  return {};
}

Result<int> OwnCall::end() {
  to_.reset();
  from_.reset();
  const protocol::CallEnded ended = SBX_TRY(client::run_until(loop_, ended_));
  console().tell(ended.said.value_or(""));
  return ended.status;
}

Error OwnCall::explained(Error error) {
  if (error.code == "broken-transfer") (void)end();
  return error;
}

transfer::Passed shown_by(Progress& progress) {
  return [&progress](std::uint64_t bytes) { progress.tick(describe(Bytes{bytes}) + " copied"); };
}

void tell_left(const std::vector<workspace::Left>& left, std::uint64_t more,
               const std::string& help) {
  constexpr std::size_t kShown = 20;
  const std::size_t shown = std::min(left.size(), kShown);
  for (const workspace::Left& each : std::span(left).first(shown))
    console().tell("sbx: left out: " + printable(each.path) + ": " + printable(each.why) + "\n");
  more += left.size() - shown;
  if (more > 0) console().tell(fmt::format("sbx: left out: {} more; --json lists them\n", more));
  if (!help.empty() && std::ranges::any_of(left, &workspace::Left::failed))
    console().tell("  help: " + help + "\n");
}

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

std::vector<LeftFile> left_files(const std::vector<workspace::Left>& left) {
  std::vector<LeftFile> files;
  files.reserve(left.size());
  for (const workspace::Left& each : left) {
    LeftFile& file = files.emplace_back();
    file.left.path = each.path;
    file.left.why = each.why;
    if (each.obstacle == Obstacle::none) continue;
    file.kind.emplace(each.obstacle);
    file.side.emplace(each.side);
  }
  return files;
}

int status_of_extent(const Extent& done) {
  if (done.all) return kDone;
  return done.any || !done.failed ? kFindings : exit_status::kCouldNot;
}

}  // namespace sbx::cli
