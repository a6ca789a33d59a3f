// Processes that read what the calls have written over the workspace. The calls are stopped
// meanwhile, and requests for more work wait.

#include <sys/epoll.h>
#include <unistd.h>

#include <utility>

#include "base/process.hpp"
#include "session/bring_out_worker.hpp"
#include "session/session.hpp"

namespace sbx::session {

void Session::answer(const protocol::ChangesRequest& request, Asker client) {
  bring_out(request, std::move(client));
}

void Session::answer(const protocol::SnapshotRequest& request, Asker client) {
  bring_out(request, std::move(client));
}

void Session::answer(const protocol::KeepRequest& request, Asker client) {
  bring_out(request, std::move(client));
}

void Session::answer(const protocol::BringOutRequest& request, Asker client) {
  bring_out(request, std::move(client));
}

void Session::bring_out(ChangesTask task, Asker client, When when) {
  const pid_t session = ::getpid();
  auto reader = process::fork([&]() -> int {
    connections_.close();
    directory_.forget_lock();
    bring_out_and_answer({.held = *held_,
                          .name = directory_.name(),
                          .id = id_,
                          .asked = std::move(task),
                          .client = std::move(client.connection),
                          .session = session,
                          .is_at_end = when == When::at_end});
  });
  if (!reader) return refuse(client.connection.get(), reader.error());
  reader_ = std::move(reader->process);
  (void)loop_.watch(reader_.get(), EPOLLIN, [this](std::uint32_t) { reader_ended(); });
}

void Session::reader_ended() {
  loop_.forget(reader_.get());
  const bool exited = process::reap(reader_.get());
  reader_.reset();
  if (!exited) held_->continue_calls();  // killed, it woke nobody
  clocks_.note_use();
  for (auto& [request, client] : std::exchange(pending_requests_, {}))
    handle(std::move(request), std::move(client));
  ending_.look();
}

}  // namespace sbx::session
