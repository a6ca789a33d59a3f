#include "record/kept.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/held.hpp"
#include "base/sys.hpp"
#include "workspace/state.hpp"

namespace sbx::record {
namespace {

constexpr const char* kFile = "last.json";
/// Twice the largest output, in base64, plus the other fields.
constexpr std::size_t kLargestRecord = std::size_t{256} << 20;

/// Never through a link: the target is not sbx's own.
Result<std::string> read_kept(const std::string& directory) {
  const UniqueFd place = SBX_TRY(workspace::open_state(directory, workspace::Missing::is_an_error));
  const UniqueFd file =
      SBX_TRY(sys::open_at(place.get(), kFile, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  return sys::read_all(file.get(), kLargestRecord);
}

}  // namespace

Status keep_record(const std::string& directory, std::string_view record) {
  const UniqueFd place = SBX_TRY(workspace::open_state(directory, workspace::Missing::is_made));
  const std::string temporary = fmt::format(".{}.{}", kFile, ::getpid());
  (void)held::remove_file(place.get(), temporary);  // left by a killed sbx with the same pid
  const UniqueFd file(
      ::openat(place.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid())
    return fail_errno(ErrorKind::host, "cannot-write", "cannot write to '" + directory + "'");
  Status written = sys::write_all(file.get(), record);
  if (written && !held::rename({place.get(), temporary}, {place.get(), kFile}))
    written = fail_errno(ErrorKind::host, "cannot-write", "cannot write to '" + directory + "'");
  if (!written) (void)held::remove_file(place.get(), temporary);  // the first error is reported
  return written;
}

Result<std::string> kept_record(const std::string& directory) {
  auto text = directory.empty() ? Result<std::string>(std::string()) : read_kept(directory);
  if (text && !text->empty()) return text;
  if (!text && text.error().errno_value != ENOENT && text.error().errno_value != ENOTDIR)
    return text;
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "no-record-kept",
                    .message = "no record is kept",
                    .hint = "name one, as in: sbx run --report r.json ... then sbx why r.json; or "
                            "write record = \"keep\" into ~/.config/sbx/config.toml"});
}

}  // namespace sbx::record
