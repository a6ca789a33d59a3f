#include "plan/files/survey.hpp"

#include <cerrno>

#include "plan/files/path_text.hpp"
#include "plan/files/protected.hpp"

namespace sbx::plan {
namespace {

constexpr uid_t kMappedIds = 65'536;
constexpr std::uint64_t kBetweenCalls = 1024;  // entries

std::unexpected<Error> too_many(const std::string& directory,
                                const policy::Sourced<std::uint64_t>& most, const Origin& origin) {
  // Nobody can edit a built-in policy.
  const bool is_in_file = most.origin.layer == Layer::file;
  const std::string raise =
      is_in_file ? "raise filesystem.scan (" + most.origin.text() + ")"
                 : "--set filesystem.scan=" + std::to_string(2 * most.value) + " raises it";
  return fail({.kind = ErrorKind::policy,
               .code = "too-many-entries",
               .message = "'" + directory + "' holds more than " + std::to_string(most.value) +
                          " entries, too many to look for what must stay hidden",
               .origin = origin,
               .hint = raise + ", or grant a smaller directory"});
}

bool is_below_git(std::string_view directory) {
  for (; !directory.empty(); directory = directory.substr(0, directory.rfind('/')))
    if (is_dot_git(base_name(directory))) return true;
  return false;
}

class Surveyor {
 public:
  Surveyor(const host::Host& host, const Grant& grant, const DenyRules& denials,
           const policy::Sourced<std::uint64_t>& most)
      : host_(host), grant_(grant), denials_(denials), most_(most) {}

  Result<Survey> run() {
    if (!has_ids_inside(host_, grant_.facts, grant_.facts)) found_.foreign = ".";
    if (grant_.kind == GrantKind::copy) note_directory(".", grant_.facts);
    if (is_repository(parent_of(grant_.source), base_name(grant_.source)))
      found_.repositories.emplace_back();
    const host::Visit visit = [this](const host::Seen& seen) { return look(seen); };
    const host::Shut shut = [this](const std::string& directory) { closed(directory); };
    auto walked = host_.files->walk(grant_.source, visit, shut);
    if (host_.on_walk) host_.on_walk(grant_.source, 0);
    if (!walked) {
      Error error = std::move(walked).error();
      error.kind = ErrorKind::policy;
      error.code = "unreadable-grant";
      error.origin = grant_.origin;
      error.hint = "what is granted is looked through for names that must stay hidden";
      return fail(std::move(error));
    }
    if (found_.entries > most_.value) return too_many(grant_.source, most_, grant_.origin);
    if (top_is_closed_)
      return fail({.kind = ErrorKind::policy,
                   .code = "unreadable-grant",
                   .message = "cannot look into '" + grant_.source + "'",
                   .errno_value = EACCES,
                   .origin = grant_.origin,
                   .hint = cure_of_unreadable(host_, grant_.source, grant_.origin)});
    return std::move(found_);
  }

 private:
  host::Walk look(const host::Seen& seen) {
    if (++found_.entries > most_.value) return host::Walk::end;
    if (found_.entries % kBetweenCalls == 0 && host_.on_walk)
      host_.on_walk(grant_.source, found_.entries);
    const bool is_directory = seen.facts.type == host::FileType::directory;
    const std::string_view above = absolute(seen.directory);
    if (denials_.hides(above, seen.name) != nullptr) {
      hide(path_of(seen), seen.facts);
      return host::Walk::past;
    }
    if (seen.is_mount) return host::Walk::past;  // gets a grant of its own
    found_.bytes += seen.facts.stored;
    if (grant_.kind == GrantKind::copy) note_seen(seen);
    if (found_.foreign.empty() && !has_ids_inside(host_, grant_.facts, seen.facts))
      found_.foreign = path_of(seen);
    if (!is_directory && seen.facts.links > 1 && seen.facts.type == host::FileType::regular)
      note_linked(seen);
    if (seen.facts.type == host::FileType::socket) found_.sockets.push_back(path_of(seen));
    note_special(seen);
    return host::Walk::into;
  }

  void note_directory(const std::string& path, const host::FileFacts& facts) {
    found_.seen.add_directory(path, {facts.device, facts.inode}, facts.mode);
  }
  void note_seen(const host::Seen& seen) {
    if (seen.facts.type == host::FileType::directory)
      note_directory(path_of(seen), seen.facts);
    else
      found_.seen.add_name(seen.directory.empty() ? "." : seen.directory, seen.name);
  }

  void note_linked(const host::Seen& seen) {
    const host::FileFacts& facts = seen.facts;
    found_.linked.push_back({.path = path_of(seen),
                             .file = {facts.device, facts.inode},
                             .links = facts.links,
                             .size = facts.size,
                             .stored = facts.stored,
                             .modified = facts.modified,
                             .mode = facts.mode});
  }

  void note_special(const host::Seen& seen) {
    const std::string_view directory = absolute(seen.directory);
    const bool is_directory = seen.facts.type == host::FileType::directory;
    if (!reason_to_guard(directory, seen.name, is_directory).empty())
      found_.protected_.push_back(path_of(seen));
    if (is_directory && is_repository(directory, seen.name))
      found_.repositories.push_back(path_of(seen));
    const bool is_text =
        seen.facts.type == host::FileType::regular || seen.facts.type == host::FileType::symlink;
    if (is_text && has_settings_name(seen.name) && is_below_git(directory))
      found_.git_settings.push_back(path_of(seen));
  }

  void hide(std::string path, const host::FileFacts& facts) {
    if (facts.type == host::FileType::regular && facts.links > 1)
      found_.hidden_files.push_back({facts.device, facts.inode});
    found_.hidden.push_back({.path = std::move(path),
                             .is_directory = facts.type == host::FileType::directory,
                             .is_link = facts.type == host::FileType::symlink});
  }

  void closed(const std::string& directory) {
    if (directory.empty()) {
      top_is_closed_ = true;
      return;
    }
    const std::string place = joined(grant_.source, directory);
    const auto facts = host_.files->look(place);
    if (!facts || facts->type != host::FileType::directory) return;
    if (facts->uid == host_.uid) return hide(directory, *facts);
    if (denials_.empty() || !host_.files->may_execute(place)) return;
    for (const std::string& name : denials_.names_anywhere())
      if (const auto inner = host_.files->look(joined(place, name)))
        hide(directory + "/" + name, *inner);
    if (denials_.needs_lists()) found_.half_hidden.push_back(directory);
  }

  static std::string path_of(const host::Seen& seen) {
    if (seen.directory.empty()) return std::string(seen.name);
    std::string path(seen.directory);
    path += '/';
    path += seen.name;
    return path;
  }

  /// Names come directory by directory, so the prefix is built once for each.
  std::string_view absolute(std::string_view directory) {
    if (directory != last_directory_ || last_absolute_.empty()) {
      last_directory_ = directory;
      last_absolute_ = directory.empty() ? grant_.source : joined(grant_.source, directory);
    }
    return last_absolute_;
  }

  const host::Host& host_;
  const Grant& grant_;
  const DenyRules& denials_;
  const policy::Sourced<std::uint64_t>& most_;
  Survey found_;
  bool top_is_closed_ = false;
  std::string last_directory_;
  std::string last_absolute_;
};

}  // namespace

bool has_ids_inside(const host::Host& host, const host::FileFacts& directory,
                    const host::FileFacts& file) {
  if (!host.privileged) return file.uid == host.uid && file.gid == host.gid;
  return (file.uid < kMappedIds || file.uid == directory.uid) &&
         (file.gid < kMappedIds || file.gid == directory.gid);
}

Result<Survey> survey(const host::Host& host, const Grant& grant, const DenyRules& denials,
                      const policy::Sourced<std::uint64_t>& most) {
  return Surveyor(host, grant, denials, most).run();
}

Status add_linked_files(const host::Host& host, const std::string& place,
                        const policy::Sourced<std::uint64_t>& most, std::vector<FileId>& files) {
  const auto facts = host.files->look(place);
  if (!facts) return {};
  if (facts->type == host::FileType::regular && facts->links > 1)
    files.push_back({facts->device, facts->inode});
  if (facts->type != host::FileType::directory) return {};
  std::uint64_t seen_entries = 0;
  const host::Visit visit = [&](const host::Seen& seen) {
    if (++seen_entries > most.value) return host::Walk::end;
    if (seen.facts.type == host::FileType::regular && seen.facts.links > 1)
      files.push_back({seen.facts.device, seen.facts.inode});
    return host::Walk::into;
  };
  // If the caller can't list it now, its names can't be compared later either.
  const host::Shut shut = [](const std::string&) {};
  SBX_TRY(host.files->walk(place, visit, shut));
  if (seen_entries > most.value) return too_many(place, most, most.origin);
  return {};
}

}  // namespace sbx::plan
