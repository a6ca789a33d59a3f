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
#include "transfer/inside.hpp"
#include "worker/process_setup.hpp"

namespace {

[[noreturn]] void refuse(std::string_view message) {
  (void)!::write(STDERR_FILENO, message.data(), message.size());  // errors can't be reported
  ::_exit(sbx::exit_status::kCouldNot);
}

/// Allocates and populates the heap that a command will use, with one call each: otherwise every
/// page costs a fault, as it still does without MADV_POPULATE_WRITE (before Linux 5.14).
void prepare_heap(bool is_run) {
  // By a run of the default policy; the client of a session's call.
  const std::size_t used = (is_run ? std::size_t{288} : std::size_t{64}) << 10;
  constexpr int kExtension = 512 << 10;  // malloc(3) extends the heap by this much at a time
  ::mallopt(M_TOP_PAD, kExtension);
  // Allocations before main() have made a heap of 132 KiB: only what does not fit into it extends
  // it, by the padding too.
  constexpr std::size_t kExtends = std::size_t{100} << 10;  // above 128 KiB malloc maps
  void* const first = std::malloc(kExtends);
  const auto page = reinterpret_cast<std::uintptr_t>(first) & ~std::uintptr_t{4095};
  // From the page of `first` on, but not beyond the heap's end.
  const auto end = reinterpret_cast<std::uintptr_t>(::sbrk(0));
  if (page < end)  // otherwise brk(2) failed and malloc used mmap(2)
    (void)::madvise(reinterpret_cast<void*>(page), std::min<std::size_t>(used, end - page),
                    MADV_POPULATE_WRITE);
  std::free(first);
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t started = sbx::sys::now_microseconds();
  prepare_heap(argc > 1 && std::string_view(argv[1]) == "run");
  if (!sbx::worker::fill_standard_descriptors()) ::_exit(sbx::exit_status::kCouldNot);
  // AT_SECURE: set-user-ID, set-group-ID or file capabilities, getauxval(3). sbx must have no more
  // privileges than its caller.
  if (::getauxval(AT_SECURE) != 0)
    refuse(
        "sbx: error: refusing to run with raised privileges\n  help: take the set-user-ID bit or "
        "file capabilities off\n");
  sbx::worker::take_errors_for_signals();
  sbx::worker::raise_descriptor_limit();
  std::set_new_handler([] { refuse("sbx: error: out of memory\n"); });
  const std::span<const char* const> arguments(argv, static_cast<std::size_t>(argc));
  // A session executes this program in its sandbox, to copy files there without privilege
  // (session/self_image.hpp). Whoever else gives it that name gets a program that copies files with
  // the rights it has.
  if (argc > 0 && std::string_view(argv[0]) == "sbx-inside")
    return sbx::transfer::inside_main(arguments.subspan(1));
  return sbx::cli::main_of({.arguments = arguments.empty() ? arguments : arguments.subspan(1),
                            .area = sbx::worker::argument_area(argv),
                            .started = started});
}
