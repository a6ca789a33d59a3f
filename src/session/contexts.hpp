#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "protocol/requests.hpp"

namespace sbx::session {

/// Who asks: the connection, and the descriptors that came with the request.
struct Asker {
  UniqueFd connection;
  std::vector<UniqueFd> fds;
};

/// A request that waits.
struct PendingRequest {
  protocol::Request request;
  Asker client;
};

/// What has become of a context's interpreter.
///
///     absent, lost -- a cell --> starting -- it says so --> ready
///     starting, ready -- restart, close --> ending
///     starting, ending -- its process ends --> absent
///     ready -- its process ends --> lost
enum class Life : std::uint8_t {
  absent,    ///< there is none, and nobody misses anything: the next cell starts one
  lost,      ///< the same, but the last one had something to remember
  starting,  ///< its worker takes cells, which wait there
  ready,     ///< it runs cells, and has something to remember
  ending,    ///< it has been told to end; cells wait for the next one
};

/// An interpreter that keeps its state, as the session's process knows it.
struct Context {
  std::string name;
  std::string language;
  Life life = Life::absent;
  std::uint64_t call = 0;    ///< the call that it is; 0: none lives
  std::int64_t since = 0;    ///< CLOCK_REALTIME, seconds
  bool is_opened = false;    ///< by open-context: once it has lived, it keeps its name until close
  bool has_lived = false;    ///< one of this name was ready
  bool closes = false;       ///< nobody wants it any more
  std::string directory;     ///< where it begins; empty: the session's
  std::string lost_because;  ///< in words; empty: unknown
  std::size_t open = 0;      ///< cells that are not answered
  std::uint64_t cells = 0;
  std::vector<PendingRequest> pending_cells;  ///< for the next one of this name
  std::vector<UniqueFd> enders;               ///< hear of its end

  [[nodiscard]] bool lives() const { return call != 0; }
  void begin(std::uint64_t its_call, std::int64_t now);
  /// Its process has ended, for this reason.
  void end(std::string why);
};

class Contexts {
 public:
  /// The name of the context of a request, of which it may give the language only. Errors: usage
  /// "bad-context-name".
  [[nodiscard]] static Result<std::string> name_of(const std::string& name,
                                                   const std::string& language);

  [[nodiscard]] Context* find(const std::string& name);
  /// The one that is this call; null: none.
  [[nodiscard]] Context* of_call(std::uint64_t call);
  /// A new one.
  [[nodiscard]] Context& add(const std::string& name, const std::string& language);
  /// One that no context of this session has had.
  [[nodiscard]] std::string new_name(const std::string& language);
  void forget(const std::string& name) { all_.erase(name); }
  /// Forgets the names of lost contexts beyond the last 64.
  void forget_old();
  [[nodiscard]] std::size_t living() const;
  [[nodiscard]] bool is_busy() const;
  [[nodiscard]] std::vector<protocol::ContextFacts> list() const;

 private:
  std::map<std::string, Context> all_;
  std::uint64_t opened_ = 0;
};

}  // namespace sbx::session
