#include "session/end_note.hpp"

#include <fcntl.h>
#include <time.h>

#include <vector>

#include "base/sys.hpp"
#include "protocol/answers.hpp"
#include "protocol/packet.hpp"
#include "workspace/lost.hpp"

namespace sbx::session {
namespace {

struct Kept {
  std::optional<protocol::BroughtOutAnswer> answer;
  std::string failure = "that took longer than a minute";  ///< where there is no answer
};

Kept receive(int connection) {
  Kept kept;
  while (auto packet = protocol::receive(connection)) {
    auto answer = protocol::answer_from<protocol::BroughtOutAnswer>(std::move(packet->body));
    if (answer)
      kept.answer = std::move(*answer);
    else if (answer.error().code != "bad-message")  // an event comes too
      kept.failure = answer.error().text();
  }
  return kept;
}

void lose(Remains& remains, std::string path) {
  if (!workspace::may_be_missed(path)) return;
  if (++remains.lost <= kLostNamed) remains.paths.push_back(std::move(path));
}

void take_kept(Remains& remains, protocol::KeptAnswer kept) {
  remains.set = std::move(kept.name);
  remains.kept = kept.changes;
  if (!kept.lost) return;
  for (protocol::LeftFacts& each : *kept.lost) lose(remains, std::move(each.path));
}

}  // namespace

void EndNote::begin(std::string cause, bool has_expired) {
  if (!cause_.empty()) return;
  cause_ = std::move(cause);
  has_expired_ = has_expired;
}

Result<UniqueFd> EndNote::expect_answer() {
  auto sockets = SBX_TRY(sys::make_packet_pair());
  answer_ = std::move(sockets.second);
  return std::move(sockets.first);
}

std::optional<Remains> EndNote::take(bool has_overlay) const {
  if (cause_.empty() || !answer_.valid()) return std::nullopt;  // a command has stopped it
  (void)::fcntl(answer_.get(), F_SETFL, O_NONBLOCK);  // the reader may not be done in time
  Kept done = receive(answer_.get());
  Remains remains{.ended = ::time(nullptr), .cause = cause_};
  if (done.answer && done.answer->kept) {
    take_kept(remains, std::move(*done.answer->kept));
  } else if (!done.answer || done.answer->failures) {
    if (done.answer)
      for (Change& each : done.answer->changes)
        if (each.type == FileType::file) lose(remains, std::move(each.path));
    remains.cure = has_overlay ? "its changes could not be kept: " + done.failure
                               : "a session with --workspace .:overlay keeps changes";
  }
  if (remains.lost == 0 && !has_overlay) remains.cure.clear();
  // What cells had in their variables has no name.
  const bool matters =
      has_expired_ || remains.kept > 0 || remains.lost > 0 || !remains.cure.empty();
  return matters ? std::optional(std::move(remains)) : std::nullopt;
}

}  // namespace sbx::session
