#include "cli/start_progress.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/text.hpp"

namespace sbx::cli {

run::Sinks sinks_of(Progress& progress) {
  run::Sinks sinks;
  if (!progress.is_shown()) return sinks;
  sinks.walk = [&progress](const std::string& directory, std::uint64_t entries) {
    if (entries == 0) return progress.clear();
    progress.tick(fmt::format("looking through {} for names that must stay hidden, {} entries",
                              printable(directory), entries));
  };
  sinks.set_up = [&progress, is_begun = false](bool goes_on) mutable {
    if (!goes_on) return progress.clear();
    if (!std::exchange(is_begun, true)) progress.begin();
    progress.tick("setting up the sandbox");
  };
  sinks.copied = copies_shown_by(progress);
  return sinks;
}

}  // namespace sbx::cli
