#include "client/application.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/json_read.hpp"
#include "base/sys.hpp"
#include "changes/apply_files.hpp"
#include "protocol/packet.hpp"
#include "session/snapshot.hpp"

namespace sbx::client {
namespace {

/// What the process says that applies them.
struct Report {
  Applied applied;
  protocol::ErrorFields failure;  ///< without a code where nothing failed
};
SBX_FIELDS(Report, applied, failure)

Result<Applied> apply_all(const protocol::SnapshotAnswer& made,
                          const std::vector<std::string>& paths,
                          const std::string& state_directory) {
  const session::Snapshot snapshot = SBX_TRY(session::Snapshot::of(made));
  const changes::Kept kept = SBX_TRY(snapshot.load());
  const workspace::Applied applied = SBX_TRY(changes::apply_files(kept, paths, state_directory));
  snapshot.note_as_applied(kept, applied);
  Applied told;
  for (const Change& each : applied.done) told.done.push_back(each.path);
  if (!applied.has_failures() && !applied.is_incomplete()) return told;
  for (const auto* const list : {&applied.conflicts, &applied.left})
    for (const workspace::Left& each : *list)
      told.left.push_back({.path = each.path, .why = each.why});
  return told;
}

Report report_of(Result<Applied> applied) {
  Report report;
  if (applied)
    report.applied = std::move(*applied);
  else
    report.failure = protocol::fields_from(applied.error());
  return report;
}

}  // namespace

Application::~Application() {
  if (loop_ != nullptr && from_.valid()) loop_->forget(from_.get());
}

Status Application::attach(EventLoop& loop, Ended ended) {
  ended_ = std::move(ended);
  loop_ = &loop;
  return task_.attach(loop, {.ended = [this](const Result<protocol::SnapshotAnswer>& made) {
                        if (!made) return ended_(fail(made.error()));
                        if (!made->snapshot)
                          return ended_(fail(Error{.kind = ErrorKind::usage,
                                                   .code = "no-changes-kept",
                                                   .message = "nothing has been changed"}));
                        if (const Status begun = apply(*made); !begun) ended_(fail(begun.error()));
                      }});
}

Status Application::apply(const protocol::SnapshotAnswer& made) {
  sys::Pipe pipe = SBX_TRY(sys::make_pipe());
  SBX_TRY(loop_->watch(pipe.read.get(), EPOLLIN, [this](std::uint32_t) { read(); }));
  from_ = std::move(pipe.read);
  child_ = SBX_TRY(process::fork([&] {
    process::keep_only({pipe.write.get()});
    const Report report = report_of(apply_all(made, paths_, state_directory_));
    return sys::write_all(pipe.write.get(), dump(write_fields(report, Form::document))) ? 0 : 1;
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
  auto report = read_fields<Report>(read_json(said_), {.form = Form::document});
  if (report && report->failure.code.empty()) return ended_(std::move(report->applied));
  if (report) return ended_(fail(protocol::error_of(std::move(report->failure))));
  ended_(fail(Error{
      .kind = ErrorKind::internal, .code = "call-lost", .message = "the application broke off"}));
}

}  // namespace sbx::client
