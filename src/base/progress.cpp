#include "base/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include <sbx/units.hpp>

#include "base/tell.hpp"
#include "base/text.hpp"

namespace sbx {
namespace {

/// Microseconds before the first line.
std::uint64_t first() {
#ifdef SBX_FAULTS
  if (std::getenv("SBX_TEST_PROGRESS_AT_ONCE") != nullptr) return 0;
#endif
  return 1'000'000;
}
constexpr std::uint64_t kBetween = 100'000;
constexpr const char* kErase = "\r\033[K";

}  // namespace

Progress::Progress(int descriptor, bool quiet, Clock now)
    : descriptor_(descriptor),
      is_shown_(!quiet && ::isatty(descriptor) == 1),
      now_(std::move(now)) {
  if (is_shown_) began_ = now_();
}

void Progress::begin() {
  clear(in_line_);
  if (is_shown_) began_ = now_();
}

void Progress::tick(const std::string& words) {
  if (!is_shown_ || in_line_) return;
  const std::uint64_t now = now_();
  if (now < began_ + first() || (painted_ != 0 && now < painted_ + kBetween)) return;
  std::string line = fmt::format("sbx: {}, {} s", words, (now - began_) / 1'000'000);
  const std::size_t columns = terminal_columns(descriptor_);
  if (line.size() >= columns) line.resize(columns - 1);  // a full line would scroll
  write(kErase + line);
  painted_ = now;
}

void Progress::clear(bool in_line) {
  if (painted_ != 0) write(kErase);
  painted_ = 0;
  in_line_ = in_line;
}

// What can't be written can be told nowhere.
void Progress::write(const std::string& text) const {
  (void)sys::write_all(descriptor_, text);
}

Copied copies_shown_by(Progress& progress) {
  if (!progress.is_shown()) return {};
  return [&progress, sum = std::uint64_t{0}](std::uint64_t bytes) mutable {
    if (bytes == 0) {
      sum = 0;
      return progress.clear();
    }
    if (sum == 0) progress.begin();
    sum += bytes;
    progress.tick(describe(Bytes{sum}) + " copied");
  };
}

}  // namespace sbx
