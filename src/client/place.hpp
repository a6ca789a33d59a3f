#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.hpp"
#include "base/result.hpp"
#include "client/starter.hpp"
#include "client/task.hpp"
#include "host/host.hpp"
#include "session/client.hpp"

namespace sbx::client {

/// "c-" and 8 of [a-z2-7], of getrandom(2): nobody who has not been told it finds it.
[[nodiscard]] std::string make_id(char kind);

/// An interpreter in the session. `name` is what the session calls it: an id is known to this
/// process and its client only.
struct Context {
  std::string id;
  std::string name;
  std::string language;
  std::size_t open = 0;  ///< cells that run or wait
  std::uint64_t used = 0;
};

/// What nobody has applied can outlive a session. Errors: host "no-state-directory".
[[nodiscard]] Status check_keeping(const host::Host& host);

/// The session of a front end, which the first call starts, and its contexts.
class Place {
 public:
  /// False: there is none, and `tell` has heard why.
  using Ready = std::function<void(bool is_there)>;

  /// For the operator: whole lines.
  using Tell = std::function<void(const std::string& words)>;

  struct Rules {
    std::string session;           ///< the name of one that outlives this; empty: one of its own
    std::string prefix;            ///< of a name of its own
    bool shares_contexts = false;  ///< cells that name none share one of their language
    bool keeps_changes = false;    ///< at the end, as a set
    std::uint64_t most_contexts = 0;
    /// Why a session of that name is not what the front end tells its users, if so.
    std::function<Status(const protocol::SessionFacts& facts)> accepts{};
  };
  /// A session that has taken the place of one that ended.
  struct Replaced {
    std::string kept_as;  ///< the set of the old one's changes; empty: there is none
  };

  Place(EventLoop& loop, const host::Host& host, Rules rules, Starter& starter, Tell tell)
      : loop_(loop),
        host_(host),
        rules_(std::move(rules)),
        starter_(starter),
        tell_(std::move(tell)) {}
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() { leave(); }

  /// Calls back once the session is there.
  void prepare(Ready ready);
  [[nodiscard]] Result<session::Client> connect() const;
  /// Once for each.
  [[nodiscard]] std::optional<Replaced> take_replaced();

  /// A context for one more cell. Errors: usage "no-such-context", "context-ended",
  /// "other-language", "no-contexts", "contexts-busy".
  [[nodiscard]] Result<Context*> context(const std::string& id, const std::string& language);
  /// The cell has ended.
  void release(Context& context);
  [[nodiscard]] bool has_session() const { return life_.valid(); }

  /// Ends the session, and keeps its changes; or ends what is this server's in one that lives on.
  /// False: changes are lost, and `tell` has heard which.
  [[nodiscard]] bool end();

 private:
  void begin();
  void try_to_join();
  void answer_waiting(bool is_there);
  [[nodiscard]] Status hold();
  [[nodiscard]] Status check_joined() const;
  void session_ended();
  [[nodiscard]] bool keep();
  [[nodiscard]] bool loses_nothing();
  [[nodiscard]] Result<Context*> fresh(const std::string& language);
  [[nodiscard]] bool make_room();
  void forget(std::list<Context>::iterator context, const std::string& why);
  void leave();

  EventLoop& loop_;
  const host::Host& host_;
  const Rules rules_;
  Starter& starter_;
  Tell tell_;
  std::string name_;
  std::string starting_;  ///< the name of a session that starts
  std::string keep_as_;   ///< the set of its changes; empty: nobody has asked for one
  /// A connection that asks nothing: with it the session is never idle, and it closes with that.
  UniqueFd life_;
  std::vector<Ready> waiting_;
  std::optional<Replaced> replaced_;
  std::list<Context> contexts_;               ///< addresses stay
  std::map<std::string, std::string> ended_;  ///< ids, with the reason
};

}  // namespace sbx::client
