#include "session/self_image.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/sys.hpp"

#ifndef MFD_EXEC  // Linux 6.3
#define MFD_EXEC 0x0010U
#endif
#ifndef F_SEAL_EXEC  // Linux 6.3
#define F_SEAL_EXEC 0x0020
#endif

namespace sbx::session {
namespace {

std::unexpected<Error> no_image(const char* what) {
  return fail_errno(ErrorKind::host, "cannot-write", what);
}

/// Without F_SEAL_EXEC the program inside, which has the file's uid, could take the execute
/// permission away. A kernel that doesn't know that seal (EINVAL) takes the others.
bool seal(int file) {
  const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  return ::fcntl(file, F_ADD_SEALS, seals | F_SEAL_EXEC) == 0 ||
         (errno == EINVAL && ::fcntl(file, F_ADD_SEALS, seals) == 0);
}

}  // namespace

Result<UniqueFd> own_image() {
  const UniqueFd program = SBX_TRY(sys::open_at(AT_FDCWD, "/proc/self/exe", O_RDONLY));
  struct stat facts{};
  if (::fstat(program.get(), &facts) != 0) return no_image("cannot read sbx's own program");
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  UniqueFd image(::memfd_create("sbx", flags | MFD_EXEC));
  if (!image.valid() && errno == EINVAL) image = UniqueFd(::memfd_create("sbx", flags));
  if (!image.valid()) return no_image("cannot make an executable file in memory");
  for (off_t left = facts.st_size; left > 0;) {
    const ssize_t sent =
        ::sendfile(image.get(), program.get(), nullptr, static_cast<std::size_t>(left));
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return no_image("cannot copy sbx's own program");
    left -= sent;
  }
  if (!seal(image.get())) return no_image("cannot seal a file in memory");
  return image;
}

}  // namespace sbx::session
