#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <string>

#include "base/unique_fd.hpp"

/// The directory of one session from outside and from inside: its socket and its lock.
namespace sbx::session {

inline constexpr const char* kSocketName = "socket";

/// Paths of sockets are at most 107 bytes: a long one is reached through a descriptor of its
/// directory.
struct Address {
  sockaddr_un value{};
  socklen_t size = sizeof(sockaddr_un);
};
[[nodiscard]] Address address_in(int directory);
/// Invalid where it is not there.
[[nodiscard]] UniqueFd open_place(int parent, const std::string& name);
/// Made where it is not there.
[[nodiscard]] UniqueFd open_lock(int directory);
/// With what a session makes in it.
void remove_place(int parent, int directory, const std::string& name);

}  // namespace sbx::session
