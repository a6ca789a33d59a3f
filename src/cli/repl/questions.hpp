#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "host/host.hpp"

namespace sbx::cli {

/// What a prompt wants to know of a context, asked for each time over a connection of its own.
/// Answers come from inside the sandbox; the context's worker lets through what fits into a line of
/// text.
class Questions {
 public:
  /// `interrupts`: a descriptor; once it is readable no answer is waited for.
  Questions(const host::Host& host, std::string session, int interrupts)
      : host_(host), session_(std::move(session)), interrupts_(interrupts) {}

  /// Finds or starts the context, by one or both of these. False: interrupted. Errors: those of the
  /// session.
  [[nodiscard]] Result<bool> begin(const std::string& language, const std::string& context);
  [[nodiscard]] const std::string& language() const { return language_; }
  [[nodiscard]] const std::string& context() const { return context_; }
  /// Cells that the context's interpreter has run, as far as known.
  [[nodiscard]] std::uint64_t count() const { return count_; }

  struct Completeness {
    bool is_complete = true;  ///< or wrong, or nobody knows
    std::string indent;       ///< of the next line
  };
  /// Errors: those that mean the end of the session.
  [[nodiscard]] Result<Completeness> completeness(const std::string& code);

  struct Completion {
    std::string replaces;              ///< the end of the code
    std::vector<std::string> matches;  ///< each begins with that
  };
  [[nodiscard]] Completion completion(const std::string& code);

 private:
  const host::Host& host_;
  std::string session_;
  int interrupts_;
  std::string language_;
  std::string context_;
  std::uint64_t count_ = 0;
};

/// Whether the error says that there is no session any more.
[[nodiscard]] bool means_end(const std::string& code);

}  // namespace sbx::cli
