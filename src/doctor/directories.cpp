#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/unwritable.hpp"
#include "doctor/doctor.hpp"
#include "host/state.hpp"

namespace sbx::doctor {
namespace {

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

/// Why the caller can't use a directory, and what changes that; both are empty where he can.
struct Trouble {
  std::string why;
  std::string cure;
};

Trouble of_errno(const std::string& directory, int errno_value) {
  return {.why = fmt::format("'{}': {}", directory, ::strerrordesc_np(errno_value)),
          .cure = cure_of_unwritable(directory, errno_value)};
}

/// Nothing is made: where the directory is missing, the nearest one above it decides.
Trouble trouble_with(const std::string& path) {
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) == 0) {
    if (!S_ISDIR(facts.st_mode))
      return {.why = "it is not a directory", .cure = "move away what is there"};
    if (facts.st_uid != ::geteuid())
      return {.why = "it belongs to somebody else",
              .cure = "give it to this account, or remove it"};
  }
  std::string nearest = path;
  while (nearest != "/" && ::stat(nearest.c_str(), &facts) != 0 && errno == ENOENT)
    nearest = parent_of(nearest);
  if (::faccessat(AT_FDCWD, (nearest + "/").c_str(), W_OK | X_OK, AT_EACCESS) == 0) return {};
  return of_errno(nearest, errno);
}

/// A variable that says where, and does not.
std::string not_used(const host::Host& host, const char* variable, const std::string& why) {
  return why.empty()
             ? std::string()
             : fmt::format("; {}={} is not used: {}", variable, host.environment.at(variable), why);
}

std::string why_unused(const host::Host& host, const char* variable, const std::string& used,
                       const char* rule) {
  const auto set = host.environment.find(variable);
  const bool is_used =
      set == host.environment.end() || set->second.empty() || used == set->second + "/sbx";
  return is_used ? std::string() : rule;
}

std::string shown(const host::Host& host, const std::string& path) {
  return host::lies_below(path, host.home) ? "~" + path.substr(host.home.size()) : path;
}

Finding finding_of(const host::Host& host, std::string name, const std::string& path,
                   const std::string& ignored, std::string consequence) {
  if (path.empty())
    return {.name = std::move(name),
            .state = State::missing,
            .fact = "this account has no home" + ignored,
            .consequence = std::move(consequence),
            .cure = "set HOME to a directory of yours"};
  Trouble trouble = trouble_with(path);
  if (trouble.why.empty()) return {.name = std::move(name), .fact = shown(host, path) + ignored};
  return {.name = std::move(name),
          .state = State::missing,
          .fact = fmt::format("{} can't be used: {}{}", shown(host, path), trouble.why, ignored),
          .consequence = std::move(consequence),
          .cure = std::move(trouble.cure)};
}

}  // namespace

std::vector<Finding> examine_directories(const host::Host& host) {
  const std::string state = host::state_directory(host);
  const std::string runtime = host::runtime_directory(host);
  return {finding_of(host, "state directory", state,
                     not_used(host, "HOME", host::why_home_is_ignored(host)) +
                         not_used(host, "XDG_STATE_HOME",
                                  why_unused(host, "XDG_STATE_HOME", state,
                                             "it is not a directory below the home")),
                     "no changes, records and private disks are kept there"),
          finding_of(host, "session directory", runtime.empty() ? "" : runtime + "/sessions",
                     not_used(host, "XDG_RUNTIME_DIR",
                              why_unused(host, "XDG_RUNTIME_DIR", runtime,
                                         "it is not a directory of yours of mode 0700")),
                     "no session can be started")};
}

}  // namespace sbx::doctor
