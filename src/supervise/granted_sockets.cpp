#include "supervise/granted_sockets.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/held.hpp"

namespace sbx::supervise {
namespace {

/// Without what is empty, "." or "..", as it is written: links are not followed.
std::string lexically_normal(std::string_view path) {
  std::string normal;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view name = path.substr(at, end - at);
    at = end + 1;
    if (name.empty() || name == ".") continue;
    if (name == "..")
      normal.erase(std::min(normal.rfind('/'), normal.size()));
    else
      normal.append("/").append(name);
  }
  return normal;
}

}  // namespace

CallerPaths::Found GrantedSockets::find(const CallerMemory& caller, const std::string& path) const {
  const Granted* found = nullptr;
  const auto named = named_descriptor(path);
  if (all_.empty()) return {};
  if (named && named->rest.empty()) {
    const std::string link = of_thread(caller, "fd/" + std::to_string(named->number));
    const UniqueFd file(::open(link.c_str(), O_PATH | O_CLOEXEC));
    if (file.valid()) found = same_as(file.get());
  } else if (const auto whole =
                 CallerPaths::absolute(caller, static_cast<std::uint64_t>(AT_FDCWD), path)) {
    found = at(lexically_normal(*whole));
  }
  if (found == nullptr) return {};
  UniqueFd file(::fcntl(found->file.get(), F_DUPFD_CLOEXEC, 3));
  const int error = file.valid() ? 0 : EMFILE;
  return {.file = std::move(file), .error = error};
}

const GrantedSockets::Granted* GrantedSockets::at(const std::string& path) const {
  const auto found = std::ranges::find_if(all_, [&](const Granted& each) {
    return std::ranges::find(each.paths, path) != each.paths.end();
  });
  return found == all_.end() ? nullptr : &*found;
}

const GrantedSockets::Granted* GrantedSockets::same_as(int file) const {
  const auto identity = held::identity_of(file);
  const auto found = std::ranges::find_if(all_, [&](const Granted& each) {
    return identity && held::identity_of(each.file.get()) == identity;
  });
  return found == all_.end() ? nullptr : &*found;
}

}  // namespace sbx::supervise
