#pragma once

#include <string>
#include <vector>

/// What may stand at the cursor of a command line, for the shells' completion functions: `sbx
/// __complete WORD...`, which no page names. Those are 20 to 30 lines each and know no option and
/// no name.
namespace sbx::cli::completion {

/// `words`: those after the program's name, up to the cursor; the last is the one that is
/// completed, empty or begun. bash divides "--policy=x" into three words.
///
/// The first line of the answer says what the shell does besides: "files" or "directories" (it
/// offers those too), "nospace" (no blank follows) or "program N" (from word N on, counted from the
/// program's name, the line belongs to another program, whose completion takes over). It is empty
/// otherwise. Each line after it is a word that fits, a tab and what it means.
[[nodiscard]] std::string complete(std::vector<std::string> words);

}  // namespace sbx::cli::completion
