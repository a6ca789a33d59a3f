#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.hpp"
#include "base/json.hpp"
#include "base/progress.hpp"
#include "base/result.hpp"
#include "base/sys.hpp"
#include "cli/answer.hpp"
#include "cli/invocation.hpp"
#include "cli/session_documents.hpp"
#include "client/task.hpp"
#include "host/host.hpp"
#include "protocol/requests.hpp"
#include "session/json.hpp"
#include "transfer/host.hpp"

/// What the commands share that work on a session's files.
namespace sbx::cli {

[[nodiscard]] std::unexpected<Error> wrong_operands(const Invocation& typed, const char* needs);
/// An empty path is often a variable that is not set, and means nothing to the kernel. Errors:
/// usage.
[[nodiscard]] Status check_paths(const Invocation& typed);
/// As "docker cp" is typed: SESSION:PATH instead of the session and the path. Errors: usage.
[[nodiscard]] Status check_form(const Invocation& typed);
/// How to see which names a session has.
[[nodiscard]] std::string names_inside(const std::string& session);

/// A call that runs sbx's own code inside, with pipes between it and this process.
class OwnCall {
 public:
  static Result<std::unique_ptr<OwnCall>> begin(const host::Host& host, const std::string& session,
                                                std::vector<std::string> words,
                                                const std::string& title);

  [[nodiscard]] int to() const { return to_.get(); }
  [[nodiscard]] int from() const { return from_.get(); }
  void close_to() { to_.reset(); }
  /// The exit status. Errors: those of the call.
  [[nodiscard]] Result<int> end();
  /// The same error; where the other end broke off, its call has said why.
  [[nodiscard]] Error explained(Error error);

 private:
  OwnCall(session::Client connection, const protocol::FilesRequest& request, EventLoop loop)
      : loop_(std::move(loop)), files_(std::move(connection), request) {}
  Status begin();

  EventLoop loop_;
  std::optional<Result<protocol::CallEnded>> ended_;
  client::Files files_;
  UniqueFd to_;
  UniqueFd from_;
};

[[nodiscard]] transfer::Passed shown_by(Progress& progress);

/// `help`, where something failed: empty, there is no more to say.
void tell_left(const std::vector<workspace::Left>& left, std::uint64_t more,
               const std::string& help = {});
/// The first files by name, those that replaced another before all; of more only their number and
/// size. `files`, `bytes`: of all of them.
void tell_brought(std::vector<transfer::Brought> brought, std::uint64_t files, std::uint64_t bytes);
/// Of files and links: a directory that was there stays.
void tell_brought(const std::vector<transfer::Brought>& brought);
[[nodiscard]] std::vector<LeftFile> left_files(const std::vector<workspace::Left>& left);
/// What a command did, as JSON or, what it left out, as messages. `help` says where the names are
/// that could have been meant.
template <class Document>
[[nodiscard]] int tell_done(const Invocation& typed, Document done,
                            const std::vector<workspace::Left>& left, std::uint64_t more,
                            const std::string& help) {
  if (typed.output.json) {
    done.left = left_files(left);
    done.left_out = more;
    return print(dump(session::headed(done)));
  }
  tell_left(left, more, help);
  return kDone;
}

/// How much of what was asked for a command did.
struct Extent {
  bool all = false;
  bool any = false;
  bool failed = false;  ///< else what is missing is of a kind that is never copied
};
[[nodiscard]] int status_of_extent(const Extent& done);

}  // namespace sbx::cli
