#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/event_loop.hpp"
#include "client/output_pipe.hpp"
#include "client/task.hpp"
#include "transfer/host.hpp"

namespace sbx::client {

struct DirectoryListing {
  transfer::Listing listing;
  int status = 0;    ///< of the call that listed it
  std::string said;  ///< lines for a person about how that ended
};

/// Lists a directory of a session.
class Listing {
 public:
  using Ended = Result<DirectoryListing>;
  struct Hooks {
    std::function<void(Ended ended)> ended;
  };

  Listing(session::Client connection, const std::string& path, std::uint64_t depth = 1);
  Listing(const Listing&) = delete;
  Listing& operator=(const Listing&) = delete;

  [[nodiscard]] Status attach(EventLoop& loop, Hooks hooks);
  void cancel() { task_.cancel(); }
  /// For who does nothing else: waits for the end.
  [[nodiscard]] Ended run();

 private:
  void end(Result<protocol::CallEnded> call);

  Task<protocol::FilesRequest> task_;
  std::uint64_t depth_;
  Hooks hooks_;
  OutputPipe out_;
  std::string text_;
};

}  // namespace sbx::client
