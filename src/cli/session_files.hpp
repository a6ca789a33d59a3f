#pragma once

#include "base/result.hpp"
#include "cli/invocation.hpp"
#include "client/listing.hpp"
#include "host/host.hpp"

namespace sbx::cli {

/// The entries of a directory of a session. Errors: usage, host, those of the session.
[[nodiscard]] Result<client::DirectoryListing> list_directory(const host::Host& host,
                                                              const std::string& session,
                                                              const std::string& path,
                                                              std::uint64_t depth = 1);
/// `sbx session stat`, `mkdir`, `mv` and `rm`: code of sbx's own inside the sandbox does the work
/// there. The exit status.
[[nodiscard]] Result<int> change_files(const Invocation& typed, const host::Host& host);
/// `sbx session ls`.
[[nodiscard]] Result<int> list_files(const Invocation& typed, const host::Host& host);

}  // namespace sbx::cli
