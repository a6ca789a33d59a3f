#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/json.hpp"
#include "base/result.hpp"
#include "client/application.hpp"
#include "client/file_work.hpp"

/// What the tools for files answer.
namespace sbx::agent {

/// A part of a file from `offset` on, a picture, or the entries of a directory.
[[nodiscard]] Json result_of_read(const std::string& path,
                                  const Result<client::FileWork::Read>& read, std::uint64_t offset);
[[nodiscard]] Json result_of_written(const std::string& path, std::size_t bytes,
                                     const Status& written);

/// A path that a model gives, as changes name it: below the workspace, in whose `directory` its
/// commands run. One that leads out means no change.
[[nodiscard]] std::string name_of_change(std::string path, const std::string& directory);
[[nodiscard]] Json result_of_applied(const Result<client::Applied>& applied);

}  // namespace sbx::agent
