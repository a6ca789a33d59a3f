#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/copied.hpp"
#include "base/person.hpp"
#include "base/sys.hpp"
#include "protocol/answers.hpp"

namespace sbx::session {

/// What a process that reads changes says to its client before the answer. The session's calls may
/// be stopped meanwhile, so it never waits for the client: one that does not read hears less.
class ReaderEvents {
 public:
  using Clock = std::function<std::uint64_t()>;  ///< microseconds

  /// `client`: a packet socket, which from here on waits for nothing. It is borrowed.
  explicit ReaderEvents(int client, Clock now = sys::now_microseconds);
  ReaderEvents(const ReaderEvents&) = delete;
  ReaderEvents& operator=(const ReaderEvents&) = delete;

  void say(const std::string& lines);
  /// As `Copied` is called. The client hears of it at most ten times a second, and only while it
  /// reads.
  void copied(std::uint64_t bytes);

  /// Both, for work that tells of itself. They borrow this object.
  [[nodiscard]] Person person();
  [[nodiscard]] Copied progress();

 private:
  [[nodiscard]] bool is_read() const;
  void send(const protocol::ReaderEvent& event) const;

  int client_;
  Clock now_;
  std::uint64_t sum_ = 0;
  std::uint64_t told_ = 0;  ///< when; 0: not of this piece of work
};

}  // namespace sbx::session
