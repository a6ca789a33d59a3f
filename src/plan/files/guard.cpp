#include "plan/files/guard.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "host/state.hpp"
#include "plan/files/links.hpp"
#include "plan/files/path_text.hpp"
#include "plan/files/protected.hpp"
#include "plan/program/lookup.hpp"

namespace sbx::plan {
namespace {

constexpr std::size_t kMostSettings = 1U << 20;

/// "a/b" for /x/a/b below /x; empty for the directory itself.
std::string relative(const std::string& path, const std::string& directory) {
  std::string_view rest = below(path, directory);
  while (rest.starts_with('/')) rest.remove_prefix(1);
  return std::string(rest);
}

/// An empty read-only file, not /dev/null: a write must fail rather than vanish.
mount::Payload mask(bool is_directory) {
  if (is_directory) return mount::MaskDirectory{};
  return mount::Content{};
}

std::string first_part(const std::string& path) {
  return path.substr(0, path.find('/'));
}

}  // namespace

std::string Guard::inside_path(const Shown& shown, const std::string& path) const {
  return path.empty() ? shown.grant.target : joined(shown.grant.target, path);
}

/// True if another grant's mount is visible there instead.
bool Guard::is_covered(const Shown& shown, const std::string& inside) const {
  const Cover* over = view_.over(inside);
  return over != nullptr && over->target.size() > shown.grant.target.size();
}

bool Guard::is_granted_socket(const std::string& source) const {
  return std::ranges::any_of(grants_, [&](const Grant& grant) {
    return grant.facts.type == host::FileType::socket && grant.source == source;
  });
}

Status Guard::run(std::vector<Shown>& shown) {
  for (Shown& each : shown) {
    each.survey = SBX_TRY(survey(host_, each.grant, denials_, policy_.filesystem.scan));
    add_literals(each);
    add_plain_names(each);
  }
  follow_links(shown);
  SBX_TRY(find_other_names(shown));
  find_names_of_settings(shown);
  SBX_TRY(check_files());
  for (Shown& each : shown) {
    Mount& step = guarded_.steps[each.step];
    if (mount::Layered* layered = step.layered()) {
      layered->bytes = each.survey->bytes;
      layered->entries = each.survey->entries;
      if (each.grant.kind == GrantKind::copy)
        layered->seen = std::make_shared<const SeenTree>(std::move(each.survey->seen));
    }
    if (each.layered && !step.read_only() && !each.survey->foreign.empty()) copy_instead(each);
    hide_all(each);
    seal_names(each);
    note_live(each);
    tell(each);
  }
  keep_linked_files(shown);
  seal_way_to_state();
  return {};
}

/// A path named by a rule stays hidden even if it doesn't exist yet. If a parent is missing, the
/// parent is hidden instead, so that the path can't appear with it.
void Guard::add_literals(Shown& shown) const {
  const auto holds_own_state = [&](const std::string& path) {
    return std::ranges::any_of(denials_.literals(), [&](const DenyRule* rule) {
      return rule->own_state && rule->pattern != path && is_within(rule->pattern, path);
    });
  };
  for (const DenyRule* rule : denials_.literals()) {
    const std::string& path = rule->pattern;
    if (path == shown.grant.source || !is_within(path, shown.grant.source)) continue;
    if (rule->own_state) note_state(shown, *rule);
    std::string rest = relative(path, shown.grant.source);
    std::string place;
    while (!rest.empty()) {
      const std::string part = first_part(rest);
      place += (place.empty() ? "" : "/") + part;
      rest.erase(0, std::min(rest.size(), part.size() + 1));
      const auto facts = host_.files->look(joined(shown.grant.source, place));
      const bool is_directory = facts && facts->type == host::FileType::directory;
      if (is_directory && !rest.empty()) continue;
      // sbx creates this directory before the mounts; hiding it would also hide what others create
      // there later.
      if (!facts && !shown.layered && !rest.empty() &&
          holds_own_state(joined(shown.grant.source, place)))
        continue;
      if (facts && !rest.empty()) break;  // a file is in the way: nothing lies below it
      shown.survey->hidden.push_back({.path = place,
                                      .is_directory = is_directory,
                                      .is_there = facts.has_value() || rule->own_state});
      break;
    }
  }
}

/// In the top directory of a copy-on-write workspace a denied name stays hidden when the host
/// creates it later. What is there and shown all the same is a virtual environment.
void Guard::add_plain_names(Shown& shown) const {
  constexpr auto kUsual = std::to_array<std::string_view>(
      {".env.local", ".env.development", ".env.production", ".env.test"});
  if (shown.grant.kind != GrantKind::copy || !shown.layered) return;
  const std::string& source = shown.grant.source;
  const auto add = [&](std::string_view name) {
    const bool is_denied = denials_.hides(source, name) != nullptr;
    if (is_denied && !host_.files->look(joined(source, name)))
      shown.survey->hidden.push_back({.path = std::string(name), .is_there = false});
  };
  std::ranges::for_each(denials_.names_anywhere(), add);
  std::ranges::for_each(kUsual, add);
}

/// Notes a state directory, to be created before the mounts: a missing one can't be masked, so the
/// program could create it, and a later run would trust its contents.
void Guard::note_state(const Shown& shown, const DenyRule& rule) const {
  const bool known = std::ranges::find(guarded_.state_directories, rule.pattern) !=
                     guarded_.state_directories.end();
  if (!shown.layered && !known) guarded_.state_directories.push_back(rule.pattern);
}

/// A link on the way to sbx's own state is made read-only: a program that replaced it could
/// redirect a later run.
void Guard::seal_way_to_state() {
  const Origin origin{.file = "sbx's own state", .layer = Layer::builtin};
  const Lookup lookup(*host_.files, {}, {});
  for (const std::string& state : host::state_directories(host_)) {
    std::vector<Hop> links;
    (void)lookup.walk(state, links);  // what is missing further down can't be replaced
    for (const Hop& link : links) {
      const std::string inside = view_.inside(link.first);
      const Cover* over = inside.empty() ? nullptr : view_.over(inside);
      if (over != nullptr && over->live) protect(inside, mount::ReadOnly{}, origin);
    }
  }
}

/// The target of a hidden link is hidden too, unless the link lies in it.
void Guard::follow_links(std::vector<Shown>& shown) const {
  std::vector<std::string> targets;
  for (const Shown& each : shown)
    for (const Hidden& name : each.survey->hidden) {
      if (!name.is_link) continue;
      const std::string link = joined(each.grant.source, name.path);
      auto target = host_.files->canonical(link);
      if (target && !is_within(link, *target)) targets.push_back(std::move(*target));
    }
  for (const std::string& target : targets)
    for (Shown& each : shown) {
      if (target == each.grant.source || !is_within(target, each.grant.source)) continue;
      const auto facts = host_.files->look(target);
      if (facts)
        each.survey->hidden.push_back({.path = relative(target, each.grant.source),
                                       .is_directory = facts->type == host::FileType::directory});
    }
}

/// Hard links: a hidden file under a name that no rule matches.
Status Guard::find_other_names(std::vector<Shown>& shown) {
  const bool any_linked =
      std::ranges::any_of(shown, [](const Shown& each) { return !each.survey->linked.empty(); }) ||
      std::ranges::any_of(grants_, [](const Grant& grant) { return grant.facts.links > 1; });
  if (!any_linked) return {};
  // The files of sbx's own state are made by sbx, which links them nowhere else. A kept change set
  // may have more of them than a start has time to look at.
  const auto add = [&](const std::string& place) -> Status {
    const DenyRule* const rule = denials_.covers_literally(place);
    if (rule != nullptr && rule->own_state) return {};
    return add_linked_files(host_, place, policy_.filesystem.scan, hidden_files_);
  };
  for (const Shown& each : shown) {
    const Survey& found = *each.survey;
    hidden_files_.insert(hidden_files_.end(), found.hidden_files.begin(), found.hidden_files.end());
    for (const Hidden& name : found.hidden) SBX_TRY(add(joined(each.grant.source, name.path)));
  }
  for (const DenyRule* rule : denials_.literals()) SBX_TRY(add(rule->pattern));
  std::ranges::sort(hidden_files_);
  for (Shown& each : shown)
    for (const Linked& name : each.survey->linked)
      if (std::ranges::binary_search(hidden_files_, name.file))
        each.survey->hidden.push_back({.path = name.path});
  return {};
}

/// Git settings that are shown as a copy without credentials, or hidden: no other name shows them.
void Guard::find_names_of_settings(std::vector<Shown>& shown) {
  std::vector<FileId> files;
  std::set<std::pair<const Shown*, std::string>> names;
  for (const Shown& each : shown) {
    if (each.survey->linked.empty()) continue;
    for (const std::string& path : each.survey->git_settings)
      if (const auto settings = settings_of(each, path)) {
        const auto facts = host_.files->look(joined(each.grant.source, settings->name));
        if (facts && facts->links > 1) files.push_back({facts->device, facts->inode});
        names.emplace(&each, settings->name);
      }
  }
  for (Shown& each : shown)
    for (const Linked& name : each.survey->linked)
      if (std::ranges::find(files, name.file) != files.end() && !names.contains({&each, name.path}))
        each.survey->hidden.push_back({.path = name.path});
}

/// A file granted on its own that is a hard link of a hidden one.
Status Guard::check_files() const {
  for (const Grant& grant : grants_) {
    if (grant.facts.type != host::FileType::regular || grant.facts.links < 2) continue;
    if (!std::ranges::binary_search(hidden_files_, FileId{grant.facts.device, grant.facts.inode}))
      continue;
    return fail(
        {.kind = ErrorKind::policy,
         .code = "denied-grant",
         .message = "'" + grant.source + "' is another name of a file that filesystem.deny hides",
         .origin = grant.origin,
         .hint = "leave out the grant, or say filesystem.deny = { replace = […] }"});
  }
  return {};
}

/// Writing to such a file through an overlay fails with EOVERFLOW: its owner can't be preserved.
void Guard::copy_instead(const Shown& shown) {
  become_copy(guarded_.steps[shown.step]);
  guarded_.degraded.push_back({.promise = Promise::workspace_mode,
                               .why = "'" + joined(shown.grant.source, shown.survey->foreign) +
                                      "' belongs to a user or group that has no id inside",
                               .instead = "the directory is a copy, made when the run began"});
}

void Guard::hide_all(Shown& shown) {
  std::vector<Hidden>& hidden = shown.survey->hidden;
  std::ranges::sort(hidden, {}, &Hidden::path);
  std::vector<std::string> done;
  for (const Hidden& name : hidden) {
    std::string above = name.path;  // entries of a hidden directory are hidden with it
    bool is_done = false;
    while (!is_done && !above.empty()) {
      is_done = std::ranges::binary_search(done, above);
      const std::size_t slash = above.rfind('/');
      above.resize(slash == std::string::npos ? 0 : slash);
    }
    if (is_done) continue;
    hide(shown, name);
    done.insert(std::ranges::upper_bound(done, name.path), name.path);
  }
  for (const std::string& path : shown.survey->git_settings) clean_settings(shown, path);
  if (mount::Layered* layered = guarded_.steps[shown.step].layered())
    std::ranges::sort(layered->veils, {}, &Veil::path);
}

void Guard::hide(const Shown& shown, const Hidden& name) {
  const std::string inside = inside_path(shown, name.path);
  if (is_covered(shown, inside)) return;
  if (shown.layered)
    add_veil(shown, {.kind = VeilKind::hidden, .path = name.path});
  else
    protect(inside, mask(name.is_directory), shown.grant.origin);
  if (name.is_there)
    guarded_.explanations.push_back("'" + inside + "' is hidden (filesystem.deny)");
}

/// Parents come first, created like those below.
void Guard::add_veil(const Shown& shown, Veil veil) {
  std::vector<Veil>& veils = guarded_.steps[shown.step].layered()->veils;
  for (std::size_t slash = veil.path.find('/'); slash != std::string::npos;
       slash = veil.path.find('/', slash + 1)) {
    std::string directory = veil.path.substr(0, slash);
    if (veil_directories_.emplace(shown.step, directory).second)
      veils.push_back({.kind = VeilKind::directory, .path = std::move(directory)});
  }
  veils.push_back(std::move(veil));
}

/// Where settings must not be shown as they are: a repository's own may contain a password in a URL
/// or a token in a header.
std::optional<Guard::Settings> Guard::settings_of(const Shown& shown,
                                                  const std::string& path) const {
  const auto real = host_.files->canonical(joined(shown.grant.source, path));
  if (!real || !is_within(*real, shown.grant.source)) return {};  // the link leads outside
  Settings settings{.name = relative(*real, shown.grant.source)};
  const auto text = host_.files->read_head(*real, kMostSettings + 1);
  if (!text || text->size() > kMostSettings) return settings;
  settings.content = without_credentials(*text);
  return settings.content ? std::optional(std::move(settings)) : std::nullopt;
}

void Guard::clean_settings(const Shown& shown, const std::string& path) {
  auto settings = settings_of(shown, path);
  if (!settings) return;
  if (!settings->content) return hide(shown, {.path = settings->name});
  const std::string inside = inside_path(shown, settings->name);
  if (is_covered(shown, inside)) return;
  if (shown.layered)
    add_veil(shown, {.kind = VeilKind::content,
                     .path = settings->name,
                     .content = std::move(*settings->content)});
  else
    protect(inside, mount::Content{std::move(*settings->content)}, shown.grant.origin);
  guarded_.explanations.push_back("'" + inside + "' is shown as a copy without credentials");
}

/// No veil and no other mount is over the name. The veils are sorted.
bool Guard::shows_hosts_file(const Shown& shown, const std::string& name) const {
  const mount::Layered* layered = guarded_.steps[shown.step].layered();
  for (std::string place = name; !place.empty();
       place.resize(place.rfind('/') == std::string::npos ? 0 : place.rfind('/'))) {
    const auto veil = std::ranges::lower_bound(layered->veils, place, {}, &Veil::path);
    if (veil != layered->veils.end() && veil->path == place && veil->kind != VeilKind::directory)
      return false;
  }
  return !is_covered(shown, inside_path(shown, name));
}

void Guard::keep_linked_files(const std::vector<Shown>& shown) {
  constexpr std::uint64_t kShare = 8;
  if (std::ranges::all_of(shown, [](const Shown& each) { return each.survey->linked.empty(); }))
    return;
  keep_links(
      host_, shown,
      {.bytes = policy_.limits.disk.value.count / kShare,
       .names = policy_.limits.disk_files.value / kShare},
      [&](const Shown& each, const std::string& name) { return shows_hosts_file(each, name); },
      guarded_.steps, guarded_.degraded);
}

/// Only what is there can be sealed: of the names in a .git by which git is led elsewhere, sbx
/// makes those that are missing, where the program could.
void Guard::add_placeholders(Shown& shown) {
  std::vector<std::string>& sealed = shown.survey->protected_;
  for (const std::string& directory : shown.survey->repositories) {
    const std::string source =
        directory.empty() ? shown.grant.source : joined(shown.grant.source, directory);
    const auto facts = host_.files->look(source);
    if (!facts || !host_.files->look(joined(source, "HEAD"))) continue;
    const bool is_worktree = !is_dot_git(base_name(source));
    for (const Placeholder& each : placeholders()) {
      if (is_worktree && !each.of_worktree) continue;
      const std::string path = (directory.empty() ? "" : directory + "/") + std::string(each.name);
      const std::string inside = inside_path(shown, path);
      if (is_covered(shown, inside)) continue;
      guarded_.placeholders.push_back({.directory = source,
                                       .device = facts->device,
                                       .inode = facts->inode,
                                       .name = std::string(each.name),
                                       .content = std::string(each.content),
                                       .is_directory = each.is_directory,
                                       .target = inside});
      if (std::ranges::find(sealed, path) == sealed.end()) sealed.push_back(path);
    }
  }
}

/// The host's sockets can be reached through a bind but not through an overlay.
void Guard::seal_names(Shown& shown) {
  if (shown.grant.kind == GrantKind::live) add_placeholders(shown);
  if (shown.grant.kind == GrantKind::live)
    for (const std::string& name : shown.survey->protected_)
      if (const std::string inside = inside_path(shown, name); !is_covered(shown, inside))
        seal(inside, shown.grant.origin);
  if (shown.layered) return;
  for (const std::string& name : shown.survey->sockets) {
    const std::string inside = inside_path(shown, name);
    if (!is_granted_socket(joined(shown.grant.source, name)) && !is_covered(shown, inside))
      protect(inside, mount::MaskFile{}, shown.grant.origin);
  }
}

void Guard::seal(const std::string& inside, const Origin& origin) {
  const Cover* over = view_.over(inside);
  if (over != nullptr && over->writable) protect(inside, mount::ReadOnly{}, origin);
}

bool Guard::is_mounted(const std::string& target) {
  for (; known_steps_ < guarded_.steps.size(); ++known_steps_)
    mounted_.insert(guarded_.steps[known_steps_].target);
  return mounted_.contains(target);
}

/// Puts a protection over a path in a live grant and makes each parent a mount point: otherwise the
/// program could rename a parent and so move the protected name away.
void Guard::protect(const std::string& inside, mount::Payload protection, const Origin& origin) {
  const Cover* over = view_.over(inside);
  if (over == nullptr) return;
  std::vector<Mount>& steps = guarded_.steps;
  if (over->live) {
    for (std::string directory = parent_of(inside); directory != over->target && directory != "/";
         directory = parent_of(directory))
      if (!is_mounted(directory)) steps.push_back(plain_step(mount::Pinned{}, directory));
  }
  Mount step = plain_step(std::move(protection), inside);
  step.rights = {};
  step.origin = origin;
  steps.push_back(std::move(step));
}

/// Records what exists now, for the comparison at the end of the run.
void Guard::note_live(const Shown& shown) {
  const Survey& found = *shown.survey;
  if (shown.grant.kind != GrantKind::live || shown.grant.facts.type != host::FileType::directory)
    return;
  LiveDirectory directory{
      .source = shown.grant.source, .guarded = found.protected_, .special = shown.grant.special};
  for (const Hidden& name : found.hidden)
    if (name.is_there) directory.guarded.push_back(name.path);
  std::ranges::sort(directory.guarded);
  guarded_.live.push_back(std::move(directory));
}

void Guard::tell(const Shown& shown) {
  for (const std::string& directory : shown.survey->half_hidden)
    guarded_.degraded.push_back(
        {.promise = Promise::hidden_files,
         .why = "'" + joined(shown.grant.source, directory) +
                "' can be entered but not listed, so what a wildcard means was not found in it",
         .instead = "names without a wildcard are hidden"});
  if (shown.layered || shown.grant.facts.type != host::FileType::directory) return;
  const bool live = shown.grant.kind == GrantKind::live;
  guarded_.degraded.push_back(
      {.promise = Promise::one_grant,
       .path = shown.grant.target,
       .why = live ? "what the host makes in a live grant during the run is not covered: sockets "
                     "can be reached, denied names are seen, protected ones (.git/hooks, .envrc …) "
                     "can be made"
                   : "it holds mounts, so it is bound: sockets that the host makes in it during "
                     "the run can be reached, and denied names that it makes or replaces are seen",
       .instead = live ? "those that are there at the start are hidden or read-only"
                       : "those that are there at the start are hidden"});
}

void hide_in_binds(const DenyRules& denials, const host::Host& host, std::size_t count,
                   std::vector<Mount>& steps, std::vector<Degraded>& degraded) {
  if (denials.literals().empty()) return;
  std::vector<Mount> masks;
  for (std::size_t i = 0; i < count; ++i) {
    const auto* bind = steps[i].as<mount::Bind>();
    if (bind == nullptr) continue;
    const std::string& source = bind->source.path;
    for (const DenyRule* rule : denials.literals()) {
      const bool whole = is_within(source, rule->pattern);
      if (!whole && !is_within(rule->pattern, source)) continue;
      const auto facts = host.files->look(whole ? source : rule->pattern);
      if (!facts) continue;
      std::string target = steps[i].target;
      if (!whole) target += below(rule->pattern, source);
      Mount step = plain_step(mask(facts->type == host::FileType::directory), std::move(target));
      step.rights = {};
      step.origin = rule->origin;
      degraded.push_back({.promise = Promise::hidden_files,
                          .why = "'" + step.target + "' lies in a part of the system",
                          .instead = "what is there at the start is masked"});
      masks.push_back(std::move(step));
    }
  }
  for (Mount& step : masks) steps.push_back(std::move(step));
}

}  // namespace sbx::plan
