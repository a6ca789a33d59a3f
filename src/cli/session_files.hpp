#pragma once

#include "base/result.hpp"
#include "cli/invocation.hpp"
#include "host/host.hpp"
#include "transfer/host.hpp"

namespace sbx::cli {

/// `sbx session put`, `get` and `ls`: code of sbx's own inside the sandbox does the work there.
/// Each returns the exit status. Errors: usage, host, those of the session.
[[nodiscard]] Result<int> put_files(const Invocation& typed, const host::Host& host);
[[nodiscard]] Result<int> get_files(const Invocation& typed, const host::Host& host);
/// The entries of a directory of a session, and what the call that reads them exited with. Errors:
/// as above.
struct SessionListing {
  transfer::Listing listing;
  int status = 0;
};
[[nodiscard]] Result<SessionListing> list_directory(const host::Host& host,
                                                    const std::string& session,
                                                    const std::string& path);
[[nodiscard]] Result<int> list_files(const Invocation& typed, const host::Host& host);

}  // namespace sbx::cli
