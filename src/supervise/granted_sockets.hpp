#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "supervise/caller_paths.hpp"

namespace sbx::supervise {

/// Sockets of the machine that a program may connect to, held since before it asked: what takes
/// their names later is not granted.
class GrantedSockets {
 public:
  struct Granted {
    std::vector<std::string> paths;  ///< each leads to it
    UniqueFd file;                   ///< O_PATH
  };
  GrantedSockets() = default;
  explicit GrantedSockets(std::vector<Granted> all) : all_(std::move(all)) {}

  /// What the caller's path leads to, as it is written, if that is granted: a descriptor of its
  /// own, or the errno; neither where it is not.
  [[nodiscard]] CallerPaths::Found find(const CallerMemory& caller, const std::string& path) const;

 private:
  [[nodiscard]] const Granted* at(const std::string& path) const;
  [[nodiscard]] const Granted* same_as(int file) const;

  std::vector<Granted> all_;
};

}  // namespace sbx::supervise
