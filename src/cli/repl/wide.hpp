#pragma once

#include <string>
#include <string_view>

/// UTF-8 and wchar_t, which is UCS-4 here, whatever the locale.
namespace sbx::cli {

/// Bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::wstring to_wide(std::string_view bytes);
[[nodiscard]] std::string from_wide(std::wstring_view text);

}  // namespace sbx::cli
