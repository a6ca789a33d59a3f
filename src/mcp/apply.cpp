#include "mcp/apply.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/json_read.hpp"
#include "base/sys.hpp"
#include "changes/apply_files.hpp"
#include "mcp/rendering.hpp"
#include "plan/files/pattern.hpp"
#include "session/snapshot.hpp"

namespace sbx::mcp {
namespace {

std::string not_applied(const Error& error) {
  constexpr std::size_t kMost = 5000;  // a path of 4096 bytes has its reason behind it
  return "nothing was applied: " + visible_line(error.text(), kMost) +
         ": changes lists the names; what may not be applied here, ask the user to apply";
}

Result<Json> apply_all(const protocol::SnapshotAnswer& made, const std::vector<std::string>& paths,
                       const std::string& state_directory) {
  const session::Snapshot snapshot = SBX_TRY(session::Snapshot::of(made));
  const changes::Kept kept = SBX_TRY(snapshot.load());
  const workspace::Applied applied = SBX_TRY(changes::apply_files(kept, paths, state_directory));
  snapshot.note_as_applied(kept, applied);
  std::string names;
  for (const Change& each : applied.done) names += "  " + visible_line(each.path) + "\n";
  if (!applied.has_failures() && !applied.is_incomplete())
    return result_of_text(
        fmt::format("ok · {} applied to the user's directory\n{}", applied.done.size(), names));
  for (const auto* const list : {&applied.conflicts, &applied.left})
    for (const workspace::Left& each : *list)
      names +=
          fmt::format("  not applied: {}: {}\n", visible_line(each.path), visible_line(each.why));
  return result_of_mistake(fmt::format(
      "only {} applied, because something changed meanwhile: call changes for the rest\n{}",
      applied.done.size(), names));
}

}  // namespace

std::string name_of_change(std::string path, const std::string& directory) {
  if (path.starts_with(directory + "/")) path.erase(0, directory.size() + 1);
  if (path.starts_with('/')) return path;
  return fmt::format("{}", fmt::join(plan::parts_of(path), "/"));
}

Application::~Application() {
  if (loop_ != nullptr && from_.valid()) loop_->forget(from_.get());
}

Status Application::attach(EventLoop& loop, Ended ended) {
  for (std::string& each : paths_) each = name_of_change(std::move(each), directory_);
  ended_ = std::move(ended);
  loop_ = &loop;
  return task_.attach(
      loop, {.ended = [this](const Result<protocol::SnapshotAnswer>& made) {
        if (!made) return ended_(result_of_mistake(not_applied(made.error())));
        if (!made->snapshot)
          return ended_(result_of_mistake("nothing was applied: nothing has been changed"));
        if (const Status begun = apply(*made); !begun)
          ended_(result_of_mistake(not_applied(begun.error())));
      }});
}

Status Application::apply(const protocol::SnapshotAnswer& made) {
  sys::Pipe pipe = SBX_TRY(sys::make_pipe());
  SBX_TRY(loop_->watch(pipe.read.get(), EPOLLIN, [this](std::uint32_t) { read(); }));
  from_ = std::move(pipe.read);
  child_ = SBX_TRY(process::fork([&] {
    process::keep_only({pipe.write.get()});
    auto done = apply_all(made, paths_, state_directory_);
    const Json result = done ? std::move(*done) : result_of_mistake(not_applied(done.error()));
    return sys::write_all(pipe.write.get(), dump(result)) ? 0 : 1;
  }));
  return {};
}

void Application::read() {
  std::array<char, std::size_t{64} << 10> bytes{};
  const ssize_t got = ::read(from_.get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got > 0) return (void)said_.append(bytes.data(), static_cast<std::size_t>(got));
  loop_->forget(from_.get());
  from_.reset();
  (void)process::reap(child_.process.get());
  Json result = read_json(said_);
  if (!result.is_object())
    result = result_of_mistake("the application broke off: call changes to see what is left");
  ended_(std::move(result));
}

}  // namespace sbx::mcp
