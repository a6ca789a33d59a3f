#include "cli/start_progress.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace sbx::cli {

run::Sinks sinks_of(Progress& progress) {
  run::Sinks sinks;
  sinks.walk = [&progress](const std::string& directory, std::uint64_t entries) {
    if (entries == 0) return progress.clear();
    progress.tick(fmt::format("looking through {} for names that must stay hidden, {} entries",
                              printable(directory), entries));
  };
  return sinks;
}

}  // namespace sbx::cli
