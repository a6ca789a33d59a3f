#include <sbx/error.hpp>

#include <unistd.h>

#include <cstdlib>
#include <cstring>

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

void assertion_failed(const char* expression, const char* file, int line) {
  const std::string text = std::string("sbx: internal error: ") + expression + " at " + file + ":" +
                           std::to_string(line) + "\nsbx: please report this\n";
  (void)!::write(STDERR_FILENO, text.data(),
                 text.size());  // nothing is left to do if even this fails
  std::abort();
}

}  // namespace sbx
