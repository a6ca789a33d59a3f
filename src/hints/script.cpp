#include "hints/script.hpp"

#include "plan/files/path_text.hpp"

namespace sbx::hints {

std::string head_of_script(const policy::Policy& policy, const host::Host& host,
                           const std::vector<std::string>& typed) {
  constexpr std::size_t kHead = 1 << 16;
  const bool is_live = policy.filesystem.workspace.mode.value == policy::WorkspaceMode::read_write;
  if (is_live || !policy.filesystem.write.empty() || typed.empty()) return {};
  const auto path = host.files->canonical(plan::joined(host.working_directory, typed.front()));
  const auto facts = path ? host.files->look(*path) : std::unexpected(path.error());
  if (!facts || facts->type != host::FileType::regular) return {};
  return host.files->read_head(*path, kHead).value_or("");
}

}  // namespace sbx::hints
