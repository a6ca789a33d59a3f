#include "cli/reader_shown.hpp"

#include <unistd.h>

#include <sbx/units.hpp>

#include "cli/console.hpp"

namespace sbx::cli {

ReaderShown::ReaderShown(bool quiet) : progress_(STDERR_FILENO, quiet) {}

void ReaderShown::show(const protocol::ReaderEvent& event) {
  if (event.said || event.copied == 0) {
    progress_.clear();
    console().tell(event.said.value_or(""));
  } else {
    if (event.copied < copied_ || copied_ == 0) progress_.begin();
    progress_.tick(describe(Bytes{event.copied}) + " copied");
  }
  copied_ = event.copied;
}

}  // namespace sbx::cli
