#include "cli/parent.hpp"

#include <unistd.h>

#include "base/process.hpp"

namespace sbx::cli {

UniqueFd open_parent() {
  return process::open(::getppid());
}

}  // namespace sbx::cli
