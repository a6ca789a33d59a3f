#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/host.hpp"

namespace sbx::hints {

/// The host's files as far as a look at them waits for no other machine and no other process: only
/// mounts that mountinfo shows as local are entered, also behind links. A program chooses the names
/// that hints look at, and in a live directory what links and settings of git say.
class LocalFiles final : public host::Files {
 public:
  explicit LocalFiles(std::shared_ptr<const host::Files> all);

  Result<host::FileFacts> look(const std::string& path) const override;
  Result<std::string> canonical(const std::string& path) const override;
  Result<std::string> link_target(const std::string& path) const override;
  Result<std::string> read_head(const std::string& path, std::size_t limit) const override;
  Result<std::vector<host::Entry>> list(const std::string& path,
                                        const host::Wanted& wanted) const override;
  Status walk(const std::string& root, const host::Visit& visit,
              const host::Shut& shut) const override;
  bool memory_takes_attributes() const override { return all_->memory_takes_attributes(); }
  bool may_read(const std::string& path) const override;
  bool may_execute(const std::string& path) const override;

 private:
  [[nodiscard]] bool is_local(const std::string& path) const;
  [[nodiscard]] Result<std::string> reach(const std::string& path) const;

  std::shared_ptr<const host::Files> all_;
  std::vector<host::MountPoint> mounts_;
};

/// The same machine, seen by LocalFiles.
[[nodiscard]] host::Host local_view(const host::Host& host);

}  // namespace sbx::hints
