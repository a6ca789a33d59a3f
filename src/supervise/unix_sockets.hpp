#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "supervise/acting_as.hpp"
#include "supervise/caller_paths.hpp"
#include "supervise/granted_sockets.hpp"
#include "supervise/pace.hpp"
#include "supervise/settings.hpp"
#include "supervise/socket_binder.hpp"
#include "supervise/socket_copies.hpp"
#include "supervise/unix_connector.hpp"

namespace sbx::supervise {

/// Makes, connects and binds the unix sockets of a program that is in the machine's own namespaces:
/// Landlock does not see where a socket is connected to. All other calls of sockets are the
/// kernel's.
///
/// An address is read once. A socket is found by its inode, among those that were made here, and
/// connected to what was opened here: a socket in the program's own directories, or one that is
/// granted. What the program does to its memory, descriptors or directories meanwhile makes no
/// difference. Abstract names are refused: those of the machine have no other wall.
class UnixSockets {
 public:
  struct Options {
    std::vector<std::string> places;  ///< the program's own directories, without links
    std::vector<GrantedSockets::Granted> granted;
    ProgramIds ids;
    pid_t keeper = 0;  ///< of the program's processes
  };
  /// Errors: setup.
  static Result<std::unique_ptr<UnixSockets>> make(Options options);
  /// One for each call of plan::served_sockets(). They refer to this object.
  [[nodiscard]] std::vector<Note> notes();
  void attach(EventLoop& loop);
  /// Before the loop is gone. What waits is not answered.
  void detach();

 private:
  using Inode = SocketCopies::Inode;
  struct Address {
    std::string path;  ///< empty: abstract, or none
    int error = 0;
  };
  /// A socket of the caller's, or the errno.
  struct Copied {
    Inode inode = 0;
    int error = 0;
  };
  /// A connect(2) that waits for room in the queue of its listener.
  struct Pending {
    CallerMemory caller;
    Inode inode = 0;
    UniqueFd target;
    std::uint64_t until = 0;  ///< microseconds; 0: SO_SNDTIMEO is not set
  };

  /// A socket(2) that waits until the copies may be swept again.
  struct Making {
    NotedCall call;
    CallerMemory caller;
  };
  /// A bind(2) that waits for its turn: it needs descriptors only then.
  struct Binding {
    CallerMemory caller;
    Inode inode = 0;
    std::string path;
  };

  UnixSockets(Options options, UnixConnector connector);
  void answer(const NotedCall& call, const CallerMemory& caller);
  /// The errno; nothing where the call is answered, or will be.
  [[nodiscard]] std::optional<int> make_socket(const NotedCall& call, const CallerMemory& caller);
  [[nodiscard]] std::optional<int> connect(const NotedCall& call, const CallerMemory& caller);
  [[nodiscard]] std::optional<int> bind(const NotedCall& call, const CallerMemory& caller);
  [[nodiscard]] Copied copied(const CallerMemory& caller, std::uint64_t fd, int otherwise) const;
  [[nodiscard]] static Address address_of(const NotedCall& call, const CallerMemory& caller);
  [[nodiscard]] CallerPaths::Found target(const CallerMemory& caller,
                                          const std::string& path) const;
  [[nodiscard]] int connect_copy(Inode inode, int target);
  void make_later();
  void bind_next();
  [[nodiscard]] bool may_bind();
  [[nodiscard]] std::optional<SocketBinder::Work> prepare(const Binding& binding);
  void try_later();
  void try_pending();

  UnixConnector connector_;
  GrantedSockets granted_;
  CallerPaths paths_;
  SocketCopies copies_;
  SocketBinder binder_;
  ProgramIds ids_;
  EventLoop* loop_ = nullptr;
  std::deque<Pending> pending_;
  std::deque<Binding> bindings_;
  std::deque<Making> makings_;
  EventLoop::TimerId retry_ = EventLoop::kNoTimer;  ///< of pending_
  EventLoop::TimerId rest_ = EventLoop::kNoTimer;   ///< of makings_
  EventLoop::TimerId turn_ = EventLoop::kNoTimer;   ///< of bindings_
  Pace bind_pace_{5000, 64};                        ///< each takes a process
};

}  // namespace sbx::supervise
