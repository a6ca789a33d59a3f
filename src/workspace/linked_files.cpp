#include "workspace/linked_files.hpp"

#include <fcntl.h>

#include "workspace/copy.hpp"
#include "workspace/tree.hpp"

namespace sbx::workspace {

const Linked& LinkedFiles::of(const Change& change) const {
  static const Linked none;
  const auto found = links_.find(change.path);
  return found == links_.end() ? none : found->second;
}

void LinkedFiles::note(const Step& step) {
  const std::uint64_t number = of(*step.change).file;
  if (number == 0 || step.is_over || !step.replaces_file() || !S_ISREG(step.before.st_mode)) return;
  File& file = files_[number];
  file.before |= step.before.st_mode & 0777;
  if (file.model == nullptr) file.model = &step;
}

void LinkedFiles::note_done(const Change& change) {
  const std::uint64_t number = of(change).file;
  if (number == 0 || change.type != FileType::file) return;
  File& file = files_[number];
  file.done = change.path;
  ++file.done_names;
}

LinkedFiles::Stays& LinkedFiles::stays(const Change& change, const std::string& path) {
  const auto [place, is_new] = stays_.try_emplace(path);
  const auto spot = is_new ? names_.look(path) : std::unexpected(Error{});
  if (!spot || !spot->exists || !S_ISREG(spot->facts.st_mode) ||
      (spot->facts.st_mode & (S_ISUID | S_ISGID)) != 0)
    return place->second;
  if (!changed_on_host(copy_, path, spot->facts) || holds_the_same(change, *spot))
    place->second = {.identity = held::identity_of(spot->facts), .links = spot->facts.st_nlink};
  return place->second;
}

bool LinkedFiles::holds_the_same(const Change& change, const Spot& spot) {
  if ((spot.facts.st_mode & 0777) != (change.mode & 0777)) return false;
  const auto here = open_file(spot.directory, spot.name);
  const auto content = names_.content_of(change);
  struct stat facts{};
  return here && content && ::fstat(content->get(), &facts) == 0 &&
         facts.st_size == spot.facts.st_size &&
         same_content(here->get(), content->get(), facts.st_size);
}

bool LinkedFiles::is_linked_already(const Step& step) {
  const Linked& link = of(*step.change);
  if (link.to.empty() || step.change->change == ChangeKind::deleted) return false;
  Stays& file = stays(*step.change, link.to);
  if (!step.exists || file.identity != held::identity_of(step.before)) return false;
  ++file.added;
  return true;
}

bool LinkedFiles::is_shared(const Change& change) const {
  const Linked& link = of(change);
  return link.file != 0 || !link.to.empty();
}

Result<UniqueFd> LinkedFiles::to_share(const Step& step) {
  const Linked& link = of(*step.change);
  std::string to = link.to;
  std::uint64_t names = link.names;
  if (const auto known = files_.find(link.file); to.empty() && known != files_.end()) {
    to = known->second.done;
    names = known->second.done_names;
  }
  if (to.empty()) return UniqueFd();
  const Stays& file = stays(*step.change, to);
  if (!file.identity || file.links > names + file.added) return UniqueFd();
  const Spot spot = SBX_TRY(names_.look(to));
  auto opened = held::open_name(spot.directory, spot.name, O_PATH);
  if (!opened || held::identity_of(opened->get()) != file.identity) return UniqueFd();
  return std::move(*opened);
}

Result<std::optional<Owner>> LinkedFiles::owner(const Step& step, const OwnerOf& owner_of) {
  const std::uint64_t number = of(*step.change).file;
  if (number == 0) return owner_of(step);
  File& file = files_[number];
  if (!file.owner) file.owner = SBX_TRY(owner_of(file.model == nullptr ? step : *file.model));
  return *file.owner;
}

std::optional<mode_t> LinkedFiles::mode_before(const Change& change) const {
  const auto file = files_.find(of(change).file);
  return file == files_.end() ? std::nullopt : std::optional(file->second.before);
}

}  // namespace sbx::workspace
