#include "session/worker_process.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <span>
#include <utility>
#include <vector>

#include "base/message.hpp"
#include "base/sys.hpp"
#include "protocol/packet.hpp"

namespace sbx::session {

void ToSession::note(Note::What what, std::int32_t value) const {
  const Note note{what, value};
  (void)::send(link_.get(), &note, sizeof note, MSG_NOSIGNAL);
}

void ToSession::note(Note::What what, std::int32_t value,
                     std::initializer_list<std::string_view> texts) const {
  std::vector<UniqueFd> files;
  std::vector<int> fds;
  for (const std::string_view text : texts) {
    auto file = sys::in_memory(text);
    if (!file) break;
    fds.push_back(file->get());
    files.push_back(std::move(*file));
  }
  const Note note{what, value};
  // The session must hear of it even where descriptors can't be sent.
  if (!sys::send_message(link_.get(), std::as_bytes(std::span(&note, 1)), fds))
    this->note(what, value);
}

void ToSession::expect(const policy::Address& address, std::uint16_t port) const {
  Question question{.what = Question::What::expect, .address = address, .port = port};
  if (::send(ask_.get(), &question, sizeof question, MSG_NOSIGNAL) != sizeof question) return;
  ssize_t got = 0;
  do got = ::recv(ask_.get(), &question, sizeof question, 0);
  while (got < 0 && errno == EINTR);
}

run::NetworkTrouble ToSession::trouble() const {
  const Question question{.what = Question::What::trouble};
  if (::send(ask_.get(), &question, sizeof question, MSG_NOSIGNAL) != sizeof question) return {};
  auto answer = protocol::receive(ask_.get());
  if (!answer) return {};
  auto trouble = read_fields<run::NetworkTrouble>(std::move(answer->body));
  if (!trouble) return {};
  for (Denial& each : trouble->refused) each.during_call = true;
  return std::move(*trouble);
}

run::MostProcesses ToSession::most_processes() const {
  const Question question{.what = Question::What::most_processes};
  if (::send(ask_.get(), &question, sizeof question, MSG_NOSIGNAL) != sizeof question) return {};
  auto answer = protocol::receive(ask_.get());
  if (!answer) return {};
  return read_fields<run::MostProcesses>(std::move(answer->body)).value_or(run::MostProcesses{});
}

}  // namespace sbx::session
