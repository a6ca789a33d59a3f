#include "plan/files/later.hpp"

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "plan/files/deny.hpp"
#include "plan/files/path_text.hpp"

namespace sbx::plan {
namespace {

/// Changes that come this soon after one another may get one time stamp.
constexpr std::int64_t kSameStamp = 3'000'000'000;

using Known = std::unordered_map<std::string, LookedThrough>;

std::int64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

bool is_the_same(const LookedThrough& known, const host::FileFacts& facts) {
  return known.file == FileId{facts.device, facts.inode} && known.changed == facts.changed &&
         known.changed + kSameStamp < known.looked_at;
}

bool is_gone(const Error& error) {
  return error.errno_value == ENOENT || error.errno_value == ENOTDIR || error.errno_value == ELOOP;
}

class LookAgain {
 public:
  LookAgain(const host::Host& host, const DenyRules& denials, Known& known)
      : host_(host), denials_(denials), known_(known) {}

  [[nodiscard]] bool is_complete() const { return entries_ <= kMostLookedAtAgain; }

  Status look(const mount::Layered& shown) {
    std::vector<std::string> waiting = {""};  // below the source
    while (!waiting.empty() && is_complete()) {
      const std::string directory = std::move(waiting.back());
      waiting.pop_back();
      const std::string place =
          directory.empty() ? shown.source.path : joined(shown.source.path, directory);
      const auto facts = host_.files->look(place);
      if (directory.empty() && !is_shown(shown.source, facts)) return not_there(place);
      // What the caller can't reach, the program can't either.
      if (!facts && !is_gone(facts.error()) && facts.error().errno_value != EACCES)
        return not_looked(place, facts.error());
      if (!facts || facts->type != host::FileType::directory) continue;  // gone meanwhile
      LookedThrough& known = known_[place];
      if (!is_the_same(known, *facts)) {
        known = {.file = {facts->device, facts->inode}, .changed = facts->changed};
        SBX_TRY(list(shown, directory, place, known));
      }
      entries_ += known.entries;
      for (const std::string& name : known.subdirectories)
        waiting.push_back(directory.empty() ? name : directory + "/" + name);
    }
    return {};
  }

 private:
  /// The session shows the directory that was at its path at the start, wherever it is now.
  static bool is_shown(const HostSource& source, const Result<host::FileFacts>& facts) {
    return facts && FileId{facts->device, facts->inode} == FileId{source.device, source.inode};
  }

  static std::unexpected<Error> not_there(const std::string& place) {
    return fail(Error{.kind = ErrorKind::host,
                      .code = "denied-later",
                      .message = "cannot look for denied names in the directory that the session "
                                 "shows: it is no longer at '" +
                                 printable(place) + "'",
                      .hint = "move it back, or start a new session; session stop --keep SET keeps "
                              "the changes of this one"});
  }

  Status list(const mount::Layered& shown, const std::string& directory, const std::string& place,
              LookedThrough& known) {
    const std::int64_t begun = now();
    const host::Visit visit = [&](const host::Seen& seen) {
      if (++known.entries > kMostLookedAtAgain) return host::Walk::end;
      std::string path = directory.empty() ? "" : directory + "/";
      path += seen.name;
      if (is_veiled(shown, path)) return host::Walk::past;
      if (const DenyRule* const rule = denials_.hides(place, seen.name)) {
        note_denied(joined(place, seen.name), *rule);
        return host::Walk::end;
      }
      if (seen.facts.type == host::FileType::directory && !seen.is_mount)
        known.subdirectories.emplace_back(seen.name);
      return host::Walk::past;
    };
    // What the caller can't list, the program can't either, or it was hidden at the start.
    const host::Shut shut = [](const std::string&) {};
    const Status walked = host_.files->walk(place, visit, shut);
    if (!walked && !is_gone(walked.error())) return not_looked(place, walked.error());
    if (!found_.code.empty()) return fail(found_);
    if (walked) known.looked_at = begun;
    return {};
  }

  static std::unexpected<Error> not_looked(const std::string& place, const Error& why) {
    return fail(Error{
        .kind = ErrorKind::host,
        .code = "denied-later",
        .message = "cannot look for denied names in '" + printable(place) + "': " + why.text()});
  }

  void note_denied(const std::string& path, const DenyRule& rule) {
    found_ = {.kind = ErrorKind::host,
              .code = "denied-later",
              .message = "'" + printable(path) + "' was made since the session began, and " +
                         "filesystem.deny \"" + rule.pattern + "\" hides it",
              .hint =
                  "move it away until the session has ended, or start a new session, which "
                  "hides it; session stop --keep SET keeps the changes of this one"};
  }

  static bool is_veiled(const mount::Layered& shown, const std::string& path) {
    const auto veil = std::ranges::lower_bound(shown.veils, path, {}, &Veil::path);
    return veil != shown.veils.end() && veil->path == path && veil->kind == VeilKind::hidden;
  }

  const host::Host& host_;
  const DenyRules& denials_;
  Known& known_;
  std::uint64_t entries_ = 0;
  Error found_{};
};

}  // namespace

const DenyRules& LaterNames::denials(const Plan& plan, const host::Host& host) {
  if (denials_ && names_ == plan.hidden_names) return *denials_;
  names_ = plan.hidden_names;
  std::vector<DenyRule> rules;
  for (const std::string& pattern : names_) rules.push_back({pattern, {.layer = Layer::builtin}});
  return denials_.emplace(std::move(rules), host.files.get());
}

Status LaterNames::look(const Plan& plan, const host::Host& host, std::vector<Degraded>& degraded) {
  if (plan.hidden_names.empty()) return {};
  const DenyRules& denials = this->denials(plan, host);
  if (known_.size() > 2 * kMostLookedAtAgain) known_.clear();  // directories that are gone
  LookAgain again(host, denials, known_);
  for (const Mount& mount : plan.mounts) {
    if (mount.kind() != MountKind::overlay || !again.is_complete()) continue;
    SBX_TRY(again.look(*mount.layered()));
  }
  if (!again.is_complete())
    degraded.push_back({.promise = Promise::hidden_files,
                        .why = "the directories of this session hold more than " +
                               std::to_string(kMostLookedAtAgain) +
                               " entries, too many to look through again before each call and cell",
                        .instead = "what was there when the session began is hidden"});
  return {};
}

}  // namespace sbx::plan
