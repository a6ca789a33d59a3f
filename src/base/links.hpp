#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sbx {

/// The text of the symbolic link at a path; nothing where there is no link.
using LinkText = std::function<std::optional<std::string>(const std::string& path)>;

/// Where each symbolic link lies that leads to what an absolute path names, in the order in which
/// the kernel follows them: the directory of each is canonical. Empty for a path without links. No
/// more than 40, as the kernel, path_resolution(7).
[[nodiscard]] std::vector<std::string> links_on_the_way(std::string_view path,
                                                        const LinkText& link_text);

}  // namespace sbx
