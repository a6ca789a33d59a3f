#pragma once

#include <functional>
#include <string>

namespace sbx {

/// The person for whom work is done, as far as the front end that begins it lets the work reach
/// one: nothing below a front end writes to a terminal or asks by itself. By default, nobody.
struct Person {
  /// Whole lines.
  std::function<void(const std::string& lines)> hears;
  /// A question; true: yes. It is a no that `wake`, a descriptor, becomes readable. Empty: nobody
  /// can be asked.
  std::function<bool(const std::string& question, int wake)> answers;

  void tell(const std::string& lines) const {
    if (hears && !lines.empty()) hears(lines);
  }
};

}  // namespace sbx
