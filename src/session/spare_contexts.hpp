#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/event_loop.hpp"
#include "base/result.hpp"
#include "session/worker.hpp"

namespace sbx::session {

/// An interpreter that runs, and that nobody has asked for yet: it has no name, no number, and is
/// in no list.
struct SpareContext {
  Worker worker;
  pid_t init = -1;  ///< of its call; -1: it does not live yet
};

/// Interpreters ahead of their contexts: one of each language that was used, started once the
/// session rests, so that nobody waits for the start of the next context. A spare takes room from
/// nobody, and lives only beside contexts that have a name.
class SpareContexts {
 public:
  struct Hooks {
    /// Errors: host.
    std::function<Result<Worker>(const std::string& language)> start;
    std::function<bool()> rests;          ///< nobody waits for anything
    std::function<bool()> has_room;       ///< budgets have room for interpreters
    std::function<std::size_t()> living;  ///< contexts that have a name
    std::function<void(Worker)> dismiss;  ///< it ends by itself: the link is closed
  };
  /// `most`: contexts that may live, spares included.
  SpareContexts(EventLoop& loop, std::uint64_t most, Hooks hooks)
      : loop_(loop), most_(most), hooks_(std::move(hooks)) {}

  /// A context of this language was used. The next spare of it is tried once the session rests, and
  /// only once: one that dies is not replaced before another use.
  void note_use(const std::string& language);
  /// Something has ended: the session may rest now, or have no room for spares any more.
  void look_soon();
  /// For a new context of this language, which is nobody else's then.
  [[nodiscard]] std::optional<SpareContext> take(const std::string& language);
  /// Ends those for which `living` contexts leave no place: one always stays free.
  void fit(std::size_t living);
  void end_all();
  [[nodiscard]] bool has_any() const { return !all_.empty(); }

 private:
  void look();
  void start(const std::string& language);
  void on_message(const std::string& language);
  void end(const std::string& language);
  [[nodiscard]] SpareContext leave(const std::string& language);

  EventLoop& loop_;
  std::uint64_t most_;
  Hooks hooks_;
  std::map<std::string, SpareContext> all_;  ///< by language
  std::set<std::string> wanted_;
  EventLoop::TimerId timer_ = EventLoop::kNoTimer;
};

}  // namespace sbx::session
