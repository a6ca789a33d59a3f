#pragma once

#include <string>

#include "base/person.hpp"
#include "base/result.hpp"
#include "base/tell.hpp"

namespace sbx::cli {

/// Where the command line speaks: stdout is for who asked, stderr for a person. A test puts
/// another in its place (StandIn).
class Console {
 public:
  Console() = default;
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  virtual ~Console() = default;

  /// Writes an answer to stdout. False: that failed; it is told, unless the reader went away.
  [[nodiscard]] bool print(const std::string& text);
  /// Tells whole lines.
  void tell(const std::string& lines) { write_error(lines); }
  /// Tells what went wrong, and what helps.
  void complain(const Error& error, Color color);
  /// A terminal shows the question, and a person answers there.
  [[nodiscard]] virtual bool can_ask() const;
  /// True: yes. That `wake` becomes readable is a no.
  [[nodiscard]] virtual bool ask(const std::string& question, int wake);

  /// For the work that a command begins.
  [[nodiscard]] Person person();

 protected:
  [[nodiscard]] virtual Status write_answer(const std::string& text);
  virtual void write_error(const std::string& text);
};

/// The process's.
[[nodiscard]] Console& console();

/// Takes the console's place while it lives.
class StandIn {
 public:
  /// `console` is borrowed.
  explicit StandIn(Console& console);
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;
  ~StandIn();

 private:
  Console* before_;
};

}  // namespace sbx::cli
