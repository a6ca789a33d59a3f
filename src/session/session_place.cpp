#include "session/session_place.hpp"

#include <fcntl.h>

#include <cstring>

#include "base/held.hpp"

namespace sbx::session {
namespace {

constexpr const char* kLock = "lock";

}  // namespace

Address address_in(int directory) {
  Address address;
  address.value.sun_family = AF_UNIX;
  const std::string path = "/proc/self/fd/" + std::to_string(directory) + "/" + kSocketName;
  std::memcpy(address.value.sun_path, path.c_str(), path.size() + 1);
  return address;
}

UniqueFd open_place(int parent, const std::string& name) {
  return UniqueFd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

UniqueFd open_lock(int directory) {
  return UniqueFd(::openat(directory, kLock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
}

void remove_place(int parent, int directory, const std::string& name) {
  (void)held::remove_file(directory, kSocketName);
  (void)held::remove_file(directory, kLock);
  (void)held::remove_directory(parent, name);
}

}  // namespace sbx::session
