#include <sbx/error.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/obstacle.hpp"
#include "base/result.hpp"

namespace sbx {

std::string Origin::text() const {
  if (layer == Layer::key_default && file.empty()) return "built-in default";
  if (line == 0) return file;
  return file + ":" + std::to_string(line);
}

std::string Error::text() const {
  std::string text = message;
  if (errno_value != 0) text += std::string(": ") + ::strerrordesc_np(errno_value);
  if (origin && !origin->text().empty()) text += " (" + origin->text() + ")";
  return text;
}

Obstacle obstacle_of(int errno_value) {
  switch (errno_value) {
    case ENOENT:
      return Obstacle::not_found;
    case EEXIST:
    case ENOTEMPTY:
      return Obstacle::exists;
    case EISDIR:
      return Obstacle::is_directory;
    case ENOTDIR:
      return Obstacle::not_a_directory;
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:  // also a link that must not be followed
    case EXDEV:
      return Obstacle::not_permitted;
    case ENOSPC:
    case EDQUOT:
      return Obstacle::no_space;
    case EFBIG:
      return Obstacle::too_large;
    case ETIMEDOUT:
      return Obstacle::time_out;
    default:
      return Obstacle::none;
  }
}

Obstacle obstacle_of(const Error& error) {
  if (error.obstacle != Obstacle::none) return error.obstacle;
  if (error.kind == ErrorKind::not_found) return Obstacle::not_found;
  return error.kind == ErrorKind::setup ? Obstacle::none : obstacle_of(error.errno_value);
}

void assertion_failed(const char* expression, const char* file, int line) {
  const std::string text = std::string("sbx: internal error: ") + expression + " at " + file + ":" +
                           std::to_string(line) + "\nsbx: please report this\n";
  (void)!::write(STDERR_FILENO, text.data(),
                 text.size());  // nothing is left to do if even this fails
  std::abort();
}

}  // namespace sbx
