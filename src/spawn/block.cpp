#include "spawn/block.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>

#include "base/sys.hpp"
#include "spawn/failure.hpp"

namespace sbx::spawn {
namespace {

Error not_made(int errno_value) {
  Error error{.kind = ErrorKind::setup,
              .code = "setup-program",
              .message = "cannot keep the program of the sandbox in memory",
              .errno_value = errno_value};
  if (errno_value == EFBIG)
    error.hint = "the caller limits the size of files: raise it with ulimit -f";
  if (errno_value == ENOSYS) error.hint = filter_in_the_way();
  return error;
}

}  // namespace

Result<UniqueFd> Block::seal() const {
  UniqueFd file(::memfd_create("sbx_program", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return fail(not_made(errno));
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
  if (const auto written = sys::write_all(file.get(), text); !written)
    return fail(not_made(written.error().errno_value));
  constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) return fail(not_made(errno));
  return file;
}

}  // namespace sbx::spawn
