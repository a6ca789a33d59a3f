#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sbx/outcome.hpp>

#include "hints/places.hpp"

/// What a failed program may have met where no refused system call tells it.
namespace sbx::hints {

struct Facts {
  const Outcome& outcome;
  const policy::Policy& policy;
  const plan::Plan& plan;
  const host::Host& host;      ///< with the files of local_view()
  const host::Files& kernels;  ///< /proc/net
  /// The words of the command line that may name files.
  const std::vector<std::string>& typed;
  Reader reader = Reader::unknown;
  bool of_cell = false;  ///< no command line chose the interpreter
};

/// Follows the last words of a program that failed, as far as facts bear them out. Changes nothing
/// and waits for nothing.
[[nodiscard]] std::vector<Hint> after_failure(const Facts& facts);

/// The files that a run made (`names`) or changed in its working directory and that went with it.
/// An option that would have kept them and stands behind the command went to the program.
[[nodiscard]] Hint about_lost_files(std::vector<std::string> names, bool are_all,
                                    const std::vector<std::string>& changed,
                                    const std::vector<std::string>& command);

/// Those that it made in its home, "~/a": only the working directory can be brought out.
[[nodiscard]] Hint about_lost_home(const std::vector<std::string>& names);

}  // namespace sbx::hints
