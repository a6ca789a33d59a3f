#include <malloc.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string_view>

#include <sbx/outcome.hpp>

#include "base/sys.hpp"
#include "cli/cli.hpp"
#include "worker/process_setup.hpp"

namespace {

[[noreturn]] void refuse(std::string_view message) {
  (void)!::write(STDERR_FILENO, message.data(), message.size());  // nowhere else to tell it
  ::_exit(sbx::exit_status::kCouldNot);
}

/// What most runs need of the heap, by one call each for addresses and pages: else every page is a
/// fault of its own. Without MADV_POPULATE_WRITE (since Linux 5.14) it is that again.
void prepare_heap() {
  constexpr std::size_t kUsed = std::size_t{160} << 10;  // by a run of the default policy
  ::mallopt(M_TOP_PAD, 2 * kUsed);  // malloc(3) asks for so much more at a time
  void* const first = std::malloc(1);
  const auto page = reinterpret_cast<std::uintptr_t>(first) & ~std::uintptr_t{4095};
  // The pages behind `first` are there: only what lies within the heap is asked for.
  const auto end = reinterpret_cast<std::uintptr_t>(::sbrk(0));
  if (page < end)  // else malloc has taken it elsewhere: brk(2) was refused
    (void)::madvise(reinterpret_cast<void*>(page), std::min<std::size_t>(kUsed, end - page),
                    MADV_POPULATE_WRITE);
  std::free(first);
}

/// The kernel lays argv and the environment out in one block, string after string (execve(2)); a
/// caller that moved an entry away ends it.
sbx::ArgumentArea argument_area(char** argv) {
  if (argv[0] == nullptr) return {};
  char* end = argv[0];
  for (char** each = argv; *each != nullptr && *each == end; ++each) end += std::strlen(*each) + 1;
  for (char** each = environ; each != nullptr && *each != nullptr && *each == end; ++each)
    end += std::strlen(*each) + 1;
  return {.begin = argv[0], .size = static_cast<std::size_t>(end - argv[0])};
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t started = sbx::sys::now_microseconds();
  prepare_heap();
  if (!sbx::worker::fill_standard_descriptors()) ::_exit(sbx::exit_status::kCouldNot);
  // AT_SECURE: set-user-ID, set-group-ID or file capabilities (getauxval(3)). sbx has no more
  // privilege than its caller.
  if (::getauxval(AT_SECURE) != 0)
    refuse(
        "sbx: error: refusing to run with raised privileges\n  help: take the set-user-ID bit or "
        "file capabilities off\n");
  sbx::worker::take_errors_for_signals();
  std::set_new_handler([] { refuse("sbx: error: out of memory\n"); });
  const std::span<const char* const> arguments(argv, static_cast<std::size_t>(argc));
  return sbx::cli::main_of({.arguments = arguments.empty() ? arguments : arguments.subspan(1),
                            .area = argument_area(argv),
                            .started = started});
}
