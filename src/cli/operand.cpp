#include "cli/operand.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "cli/usage.hpp"
#include "policy/keys.hpp"

namespace sbx::cli {
namespace {

constexpr const char* kColonHint = "a colon that belongs to a name is written \\:";

/// docker's third part, "ro" or "rw", is the option here.
std::string without_mode(std::string_view text) {
  constexpr auto kModesOfDocker = std::to_array<std::pair<std::string_view, std::string_view>>(
      {{":ro", "--read"}, {":rw", "--write"}, {":z", "--read"}, {":Z", "--read"}});
  for (const auto& [mode, option] : kModesOfDocker)
    if (text.ends_with(mode))
      return fmt::format("the option says how it is shown: {} {}", option,
                         shell_word(std::string(text.substr(0, text.rfind(':')))));
  return kColonHint;
}

/// Splits at the first unescaped colon and removes the backslashes.
Result<PathOperand> split_colon(std::string_view text, std::string_view option) {
  PathOperand parts;
  std::string* part = &parts.source;
  bool divided = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escapes =
        text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == ':' || text[i + 1] == '\\');
    if (escapes) {
      *part += text[++i];
    } else if (text[i] == ':') {
      if (divided)
        return bad_value(fmt::format("{}: more than one colon in \"{}\"", option, text),
                         without_mode(text));
      divided = true;
      part = &parts.suffix;
    } else {
      *part += text[i];
    }
  }
  if (divided && parts.suffix.empty())
    return bad_value(fmt::format("{}: nothing follows the colon of \"{}\"", option, text),
                     kColonHint);
  return parts;
}

constexpr std::array<std::string_view, 4> kModes{"overlay", "read-only", "read-write", "empty"};

}  // namespace

Result<PathOperand> split_path_operand(std::string_view text, std::string_view option,
                                       Target target) {
  PathOperand parts = SBX_TRY(split_colon(text, option));
  if (parts.source.empty())
    return bad_value(fmt::format("{} needs a path, got \"{}\"", option, text),
                     fmt::format("for example {} ./data.csv", option));
  if (target == Target::absolute && !parts.suffix.empty() && !parts.suffix.starts_with('/'))
    return bad_value(
        fmt::format("{}: the target \"{}\" is not an absolute path", option, parts.suffix),
        without_mode(text));
  return parts;
}

Result<WorkspaceOperand> split_workspace_operand(std::string_view text) {
  PathOperand parts = SBX_TRY(split_colon(text, "--workspace"));
  if (parts.source.empty()) parts.source = ".";
  if (parts.suffix.empty()) return WorkspaceOperand{std::move(parts.source), {}};
  for (const std::string_view mode : kModes)
    if (parts.suffix == mode) return WorkspaceOperand{std::move(parts.source), std::string(mode)};
  const std::string_view meant = parts.suffix == "rw"   ? kModes[2]
                                 : parts.suffix == "ro" ? kModes[1]
                                                        : policy::nearest(parts.suffix, kModes);
  return bad_value(fmt::format("--workspace: unknown mode \"{}\"", parts.suffix),
                   meant.empty()
                       ? fmt::format("overlay, read-only, read-write or empty; {}", kColonHint)
                       : fmt::format("did you mean \"{}\"?", meant));
}

}  // namespace sbx::cli
