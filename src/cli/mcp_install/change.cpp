#include "cli/mcp_install/change.hpp"

#include <utility>

#include "base/text.hpp"

namespace sbx::cli::mcp_install {
namespace {

Result<Edit> edit_of(const Client& client, const File& file, const Registration& wanted,
                     Change change) {
  Target target = SBX_TRY(Target::open(file.location.root, file.location.below));
  std::string text = SBX_TRY(changed_text(client, file, wanted, change, target.text()));
  return Edit{.file = file, .target = std::move(target), .text = std::move(text)};
}

}  // namespace

Result<std::vector<Edit>> edits_of(const Client& client, const std::vector<File>& files,
                                   const Registration& wanted, Change change) {
  std::vector<Edit> edits;
  for (const File& file : files) {
    auto edit = edit_of(client, file, wanted, change);
    if (!edit) {
      Error error = std::move(edit.error());
      error.message = "'" + printable(file.location.path()) + "' stays as it is: " + error.message;
      return fail(std::move(error));
    }
    edits.push_back(std::move(*edit));
  }
  return edits;
}

Status write_all(std::vector<Edit>& edits) {
  for (Edit& each : edits)
    if (each.changes()) SBX_TRY(each.target.replace(each.text));
  return {};
}

}  // namespace sbx::cli::mcp_install
