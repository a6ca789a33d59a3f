#include "cli/github.hpp"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>

#include "base/sys.hpp"
#include "base/text.hpp"

namespace sbx::cli {
namespace {

std::string replaced(std::string_view text, std::string_view characters) {
  std::string result;
  for (const char c : text) {
    if (characters.find(c) == std::string_view::npos)
      result += c;
    else
      result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

}  // namespace

std::string github_data(std::string_view text) {
  return replaced(lossy_utf8(text), "%\r\n");
}

std::string github_property(std::string_view text) {
  return replaced(lossy_utf8(text), "%\r\n:,");
}

Result<GithubFence> GithubFence::raise() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return fail_errno(ErrorKind::host, "no-fence", "the kernel gave no random bytes");
  if (::dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
    return fail_errno(ErrorKind::host, "no-fence", "cannot join stderr to stdout");
  GithubFence fence;
  for (const unsigned char byte : bytes) fence.token_ += fmt::format("{:02x}", byte);
  SBX_TRY(sys::write_all(STDOUT_FILENO, "::stop-commands::" + fence.token_ + "\n"));
  return fence;
}

Status GithubFence::lower() {
  // The program's last line may lack a newline.
  return sys::write_all(STDOUT_FILENO, "\n::" + token_ + "::\n");
}

}  // namespace sbx::cli
