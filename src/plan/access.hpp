#pragma once

#include <string>

#include <sbx/outcome.hpp>

/// What the program may reach. It is decided once, here; the attributes of mounts and the rules of
/// Landlock say the same in the kernel's two languages (spawn/rights.hpp).
namespace sbx::plan {

/// What the program may do with a file, or with a directory and everything below it. It may always
/// read.
struct Rights {
  bool execute = true;
  bool write = false;   ///< change files that are there; use devices
  bool make = false;    ///< create names and remove them, but never device nodes
  bool special = true;  ///< of `make`: FIFOs and sockets too
  bool plain = false;   ///< of `make`: regular files and nothing else

  bool operator==(const Rights&) const = default;
};
inline constexpr Rights kWritable{.write = true, .make = true};

struct Access {
  std::string path;  ///< as the program sees it
  Rights rights;
  bool is_directory = true;
  /// Names may be listed, also those further down; each file in it has an Access of its own.
  bool lists_only = false;
  /// The rule is there for the reference to the directory that Landlock keeps. It grants what is
  /// granted further down anyway: to execute files, but neither to read nor to list.
  bool holds_only = false;
  Origin origin{};  ///< the policy line that grants it; empty: every sandbox has it

  bool operator==(const Access&) const = default;
};

}  // namespace sbx::plan
