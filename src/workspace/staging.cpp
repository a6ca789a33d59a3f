#include "workspace/staging.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/random.hpp"
#include "workspace/tree.hpp"

namespace sbx::workspace {
namespace {

std::unexpected<Error> could_not(const std::string& what, const std::string& name) {
  return fail_errno(ErrorKind::host, "cannot-put", "cannot " + what + " '" + name + "'");
}

/// False: the file can't have a further name there. A disk that fails or is full is an error: the
/// names would come apart.
Result<bool> link_name(const Change& change, int file, int directory) {
  if (held::link_file(file, directory, name_of(change.path))) return true;
  if (errno == EIO || errno == ENOSPC || errno == EDQUOT)
    return could_not("make another name of a file of", change.path);
  return false;
}

}  // namespace

std::string Staging::directory_of_change(const Change& change) {
  return directory_of(change.path);
}

std::optional<Owner> Staging::owner_in_new(const Change& change) const {
  return new_.at(directory_of_change(change)).owner;
}

/// Kept open: most changes have the directory of the change before.
Result<int> Staging::open_place(const Layer& layer, const Place& place) {
  if (!open_.valid() || open_layer_ != &layer || open_place_ != place.path) {
    open_ = SBX_TRY(open_directory(layer.lower.get(), place.path));
    open_layer_ = &layer;
    open_place_ = place.path;
    if (held::identity_of(open_.get()) != place.identity) {
      open_.reset();
      return fail(Error{.kind = ErrorKind::host,
                        .code = "replaced",
                        .message = "another process replaced '" + place.path + "'"});
    }
  }
  return open_.get();
}

/// The temporary directory beside what is in `directory`, made at the first use.
Result<Staging::Place> Staging::place_beside(const LayerPath& path, const std::string& directory) {
  const auto known = beside_.find(directory);
  if (known != beside_.end()) return known->second;
  const std::string above = directory_of(path.path);
  const std::string name = temporary_name();
  const std::string place = join(above, name);
  const UniqueFd holder = SBX_TRY(open_directory(path.layer->lower.get(), above));
  const std::string shown = join(copy_.directory, join(directory, name));
  notes_.about_to_make(shown);
  auto made = held::make_and_open(holder.get(), name);
  if (!made) {
    made.error().message =
        "cannot write to '" + (directory == "." ? copy_.directory : directory) + "'";
    return fail(std::move(made).error());
  }
  const Place made_place{.path = place, .identity = held::identity_of(made->get())};
  if (made_place.identity) notes_.made(shown, *made_place.identity);
  beside_.emplace(directory, made_place);
  open_ = std::move(*made);
  open_layer_ = path.layer;
  open_place_ = place;
  return made_place;
}

Result<int> Staging::directory_for(const Change& change) {
  const LayerPath path = place_of(copy_, change.path);
  const std::string directory = directory_of_change(change);
  if (const auto inner = new_.find(directory); inner != new_.end())
    return open_place(*path.layer, inner->second.place);
  return open_place(*path.layer, SBX_TRY(place_beside(path, directory)));
}

Status Staging::add_directory(const Change& change, std::optional<Owner> owner) {
  const int directory = SBX_TRY(directory_for(change));
  const std::string name = name_of(change.path);
  const UniqueFd made = SBX_TRY(held::make_and_open(directory, name));
  if (owner) SBX_TRY(give_to(made.get(), *owner, change.path));
  new_.emplace(change.path, NewDirectory{.place = {.path = join(open_place_, name),
                                                   .identity = held::identity_of(made.get())},
                                         .owner = owner});
  return {};
}

Status Staging::add_link(const Change& change, const std::string& text,
                         std::optional<Owner> owner) {
  const int directory = SBX_TRY(directory_for(change));
  const std::string name = name_of(change.path);
  if (!held::make_symlink(text, directory, name)) return could_not("make the link", change.path);
  if (!owner) return {};
  // Nobody reads the owner of a link but `ls`: one that can't be given away stays the caller's.
  if (const auto link = held::open_name(directory, name, O_PATH))
    (void)held::set_owner(link->get(), owner->uid, owner->gid);
  return {};
}

Status Staging::add_file(const Change& change, int source, mode_t mode, std::optional<Owner> owner,
                         std::uint64_t number) {
  const int directory = SBX_TRY(directory_for(change));
  if (number != 0 && SBX_TRY(add_known(change, directory, number))) return {};
  const UniqueFd file(::openat(directory, name_of(change.path).c_str(),
                               O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return could_not("write", change.path);
  SBX_TRY(copy_content(source, file.get(), copy_.copied));
  if (owner) SBX_TRY(give_to(file.get(), *owner, change.path));
  struct stat facts{};
  const bool has_mode = ::fstat(file.get(), &facts) == 0 && (facts.st_mode & 07777) == mode;
  if (!has_mode && !held::set_mode(file.get(), mode))
    return could_not("set the mode of", change.path);
  if (number != 0)
    known_.emplace(number,
                   Known{.path = change.path,
                         .place = {.path = open_place_, .identity = held::identity_of(directory)}});
  return {};
}

Result<bool> Staging::add_known(const Change& change, int into, std::uint64_t number) {
  const auto found = known_.find(number);
  if (found == known_.end()) return false;
  const Known& first = found->second;
  const auto directory =
      open_directory(place_of(copy_, first.path).layer->lower.get(), first.place.path);
  if (!directory || held::identity_of(directory->get()) != first.place.identity) return false;
  const auto file = held::open_name(directory->get(), name_of(first.path), O_PATH);
  return file && SBX_TRY(link_name(change, file->get(), into));
}

Result<bool> Staging::add_name(const Change& change, int file) {
  return link_name(change, file, SBX_TRY(directory_for(change)));
}

Result<held::Name> Staging::waiting(const Change& change) {
  const LayerPath path = place_of(copy_, change.path);
  const Place place = SBX_TRY(place_beside(path, directory_of_change(change)));
  return held::Name{.directory = SBX_TRY(open_place(*path.layer, place)),
                    .name = name_of(change.path)};
}

std::optional<held::Identity> Staging::identity_of(const std::string& path) const {
  const auto found = new_.find(path);
  return found == new_.end() ? std::nullopt : found->second.place.identity;
}

void Staging::clear() {
  open_.reset();
  bool is_clear = true;
  for (const auto& [directory, place] : beside_) {
    const std::string name = name_of(place.path);
    const LayerPath path = place_of(copy_, join(directory, name));
    const auto above = open_directory(path.layer->lower.get(), directory_of(place.path));
    if (above && held::remove_directory(above->get(), name)) continue;
    const auto staged = above ? held::open_name(above->get(), name, O_RDONLY | O_DIRECTORY)
                              : std::unexpected(above.error());
    is_clear = staged && held::identity_of(staged->get()) == place.identity &&
               remove_contents(staged->get()) && held::remove_directory(above->get(), name) &&
               is_clear;
  }
  if (!is_clear) notes_.leave_for_next();
  beside_.clear();
  new_.clear();
}

}  // namespace sbx::workspace
