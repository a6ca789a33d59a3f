#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/json.hpp"
#include "base/result.hpp"
#include "client/file_work.hpp"

/// What the tools for files answer.
namespace sbx::mcp {

/// A part of a file from `offset` on, a picture, or the entries of a directory.
[[nodiscard]] Json result_of_read(const std::string& path,
                                  const Result<client::FileWork::Read>& read, std::uint64_t offset);
[[nodiscard]] Json result_of_written(const std::string& path, std::size_t bytes,
                                     const Status& written);

}  // namespace sbx::mcp
