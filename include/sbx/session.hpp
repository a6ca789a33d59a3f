#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sbx/outcome.hpp>
#include <sbx/run.hpp>

/// Sessions, sbx-session(1): a sandbox that stays, for any number of calls and cells. Each member
/// function starts the installed `sbx`; it waits for the end of that process and is thread-safe.
/// Needs no other library.
namespace sbx {

struct SessionOptions {
  /// Path of sbx, or a name that is searched on PATH; empty: its installed name.
  std::string program{};
  /// Names the session. If it is empty, sbx chooses a name.
  std::string name{};
  /// Options of `sbx session start`: {"--policy", "agent", "--workspace", ".:overlay"}.
  std::vector<std::string> arguments{};
};

struct CallOptions {
  /// Options of `sbx session exec`: {"--timeout", "5s"}.
  std::vector<std::string> arguments{};
  /// The command or script and its arguments, as in RunOptions.
  std::vector<std::string> command;
  /// Keep the program's output in the record; false: it goes to the caller's stdout and stderr.
  bool capture = true;
};

struct CellOptions {
  std::string code;
  /// "python", "javascript", "r", "bash"; empty: that of the context, or python.
  std::string language{};
  /// Which interpreter; empty: the one that is named as the language.
  std::string context{};
  /// Further options of `sbx session eval`: {"--timeout", "5s"}.
  std::vector<std::string> arguments{};
};

/// What a cell raised. The cell's own words: untrusted.
struct CellError {
  std::string name;  ///< "ZeroDivisionError"
  std::string value;
  std::string traceback;
};

struct CellResult {
  int exit_status = 0;   ///< of `sbx session eval`
  bool success = false;  ///< the cell ended and raised nothing
  std::string status;    ///< outcome.status: "answered", "over-budget", "setup-failed"
  std::string state;     ///< of the interpreter: "new", "kept", "lost"
  Stream out;
  Stream err;
  /// Each value that the cell showed, by media type: {"text/plain": "42"}. Pictures are in base64.
  /// Untrusted.
  std::vector<std::map<std::string, std::string>> values;
  std::optional<CellError> raised;
  std::optional<Error> error;  ///< why no cell ran
  std::string record;          ///< JSON of schema "sbx.cell/1"; empty if sbx could not write one
};

struct CellAnswer {
  std::optional<CellResult> result;
  RunError error;  ///< if there is no result
};

/// What a command answers that runs nothing in the session: put, get, changes.
struct CommandAnswer {
  int exit_status = -1;  ///< of sbx; -1: it could not be started
  std::string json;      ///< what it answered
  std::string messages;  ///< what it said on stderr
  RunError error;        ///< why it could not be started
};

struct SessionAnswer;

class Session {
 public:
  /// Starts one, which ends with this object. If the calling process is killed, it ends at its
  /// policy's session.idle.
  [[nodiscard]] static SessionAnswer start(const SessionOptions& options);
  /// One that somebody else has started; it outlives this object. Whether it lives shows at the
  /// first use.
  [[nodiscard]] static Session named(std::string name, std::string program = {});

  Session(Session&& other) noexcept;
  Session& operator=(Session&& other) noexcept;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  [[nodiscard]] const std::string& name() const { return name_; }
  /// Runs a program in it. The call is cancelled when the calling process ends.
  [[nodiscard]] RunAnswer exec(const CallOptions& options) const;
  /// Runs code in an interpreter that keeps its state. The code passes through no command line.
  /// Cancelled as exec() is.
  [[nodiscard]] CellAnswer eval(const CellOptions& options) const;
  /// `sbx session WORD NAME --json OPERANDS`: command("put", {"data.csv"}), command("changes"),
  /// command("interrupt").
  [[nodiscard]] CommandAnswer command(const std::string& word,
                                      const std::vector<std::string>& operands = {}) const;
  /// Ends it and everything in it, whoever started it.
  CommandAnswer stop();

 private:
  Session(std::string program, std::string name, bool is_own);
  std::string program_;
  std::string name_;
  bool is_own_ = false;
};

struct SessionAnswer {
  std::optional<Session> session;
  RunError error;  ///< if there is none: what sbx said
};

}  // namespace sbx
