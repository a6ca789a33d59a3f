#pragma once

#include "base/result.hpp"
#include "cli/invocation.hpp"
#include "client/listing.hpp"
#include "host/host.hpp"

namespace sbx::cli {

/// `sbx session put`, `get` and `ls`: code of sbx's own inside the sandbox does the work there.
/// Each returns the exit status. Errors: usage, host, those of the session.
[[nodiscard]] Result<int> put_files(const Invocation& typed, const host::Host& host);
[[nodiscard]] Result<int> get_files(const Invocation& typed, const host::Host& host);
/// The entries of a directory of a session. Errors: as above.
[[nodiscard]] Result<client::DirectoryListing> list_directory(const host::Host& host,
                                                              const std::string& session,
                                                              const std::string& path,
                                                              std::uint64_t depth = 1);
/// `sbx session stat`, `mkdir`, `mv` and `rm`.
[[nodiscard]] Result<int> change_files(const Invocation& typed, const host::Host& host);
[[nodiscard]] Result<int> list_files(const Invocation& typed, const host::Host& host);

}  // namespace sbx::cli
