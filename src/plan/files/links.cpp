#include "plan/files/links.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <tuple>

#include "plan/files/path_text.hpp"

namespace sbx::plan {
namespace {

constexpr std::uint64_t kPage = 4096;  // what a tmpfs gives a file at least

struct Name {
  const Shown* shown = nullptr;
  const Linked* linked = nullptr;
};

enum class Reason : std::uint8_t { bounds, special, mounts };
constexpr std::size_t kReasons = 3;

/// Of one granted directory and reason.
struct Lost {
  std::string first;  ///< a name
  std::uint64_t files = 0;
};

const char* describe_reason(Reason reason) {
  switch (reason) {
    case Reason::bounds:
      return "more than an eighth of limits.disk and limits.disk_files, or than 2000 files, would "
             "be copied at the start";
    case Reason::special:
      return "it has a set-ID bit, or can't be read";
    case Reason::mounts:
      return "some are on the other side of a mount point";
  }
  return "";
}

class Keeping {
 public:
  Keeping(const host::Host& host, LinkBounds bounds, std::vector<Mount>& steps)
      : host_(host), bounds_(bounds), steps_(steps) {}

  void add(std::span<const Name> names) {
    const bool is_in_one = std::ranges::all_of(
        names, [&](const Name& name) { return name.shown == names.front().shown; });
    if (!is_in_one) return lose(names, Reason::mounts);
    auto* overlay = steps_[names.front().shown->step].as<mount::Overlay>();
    if (overlay == nullptr) return;  // a copy: all that is seen in it is linked
    const Linked& first = *names.front().linked;
    if ((first.mode & (S_ISUID | S_ISGID)) != 0 ||
        !host_.files->may_read(joined(names.front().shown->grant.source, first.path)))
      return lose(names, Reason::special);
    if (!take(first, names)) return lose(names, Reason::bounds);
    LinkedFile& file = overlay->linked.emplace_back(LinkedFile{
        .file = first.file, .links = first.links, .size = first.size, .modified = first.modified});
    for (const Name& name : names) file.names.push_back(name.linked->path);
  }

  void tell(std::vector<Degraded>& degraded) const {
    for (const auto& [shown, reasons] : lost_)
      for (std::size_t i = 0; i < kReasons; ++i) {
        const Lost& lost = reasons[i];
        if (lost.files == 0) continue;
        const std::string others =
            lost.files == 1 ? ""
                            : "; the same holds for " + std::to_string(lost.files - 1) + " more";
        degraded.push_back(
            {.promise = Promise::one_grant,
             .path = shown->grant.target,
             .why = "'" + lost.first + "' has several names, which don't stay those of one file: " +
                    describe_reason(static_cast<Reason>(i)) + others,
             .instead = "the program writes to one name; --apply takes that as a conflict"});
      }
  }

 private:
  void lose(std::span<const Name> names, Reason reason) {
    const Shown* last = nullptr;
    for (const Name& name : names) {
      if (name.shown == last) continue;
      last = name.shown;
      if (mount::Layered* layered = steps_[last->step].layered())
        layered->unlinked.push_back(name.linked->file);
      Lost& lost = lost_[last][static_cast<std::size_t>(reason)];
      if (lost.files++ == 0) lost.first = name.linked->path;
    }
  }

  /// A copy needs its directories too.
  bool take(const Linked& file, std::span<const Name> names) {
    std::set<std::string_view> directories;
    std::set<std::string_view>& known = directories_[names.front().shown];
    for (const Name& name : names)
      for (std::string_view path = name.linked->path; path.contains('/');) {
        path = path.substr(0, path.rfind('/'));
        if (known.contains(path) || !directories.insert(path).second) break;
      }
    const std::uint64_t bytes = std::max(file.stored, kPage);
    const std::uint64_t made = names.size() + directories.size();
    if (bounds_.files == 0 || bounds_.bytes < bytes || bounds_.names < made) return false;
    --bounds_.files;
    bounds_.bytes -= bytes;
    bounds_.names -= made;
    known.merge(directories);
    return true;
  }

  const host::Host& host_;
  LinkBounds bounds_;
  std::vector<Mount>& steps_;
  std::map<const Shown*, std::array<Lost, kReasons>> lost_;
  std::map<const Shown*, std::set<std::string_view>> directories_;  ///< in which copies are made
};

std::vector<Name> visible_names(const std::vector<Shown>& shown, const std::vector<Mount>& steps,
                                const IsVisible& is_visible) {
  std::vector<Name> names;
  for (const Shown& each : shown) {
    if (steps[each.step].layered() == nullptr || steps[each.step].read_only()) continue;
    for (const Linked& linked : each.survey->linked)
      if (is_visible(each, linked.path)) names.push_back({&each, &linked});
  }
  std::ranges::sort(names, {}, [](const Name& name) {
    return std::tuple(name.linked->file, name.shown, std::string_view(name.linked->path));
  });
  return names;
}

}  // namespace

void keep_links(const host::Host& host, const std::vector<Shown>& shown, LinkBounds bounds,
                const IsVisible& is_visible, std::vector<Mount>& steps,
                std::vector<Degraded>& degraded) {
  const std::vector<Name> names = visible_names(shown, steps, is_visible);
  std::vector<std::span<const Name>> files;
  for (std::size_t i = 0, end = 0; i < names.size(); i = end) {
    while (end < names.size() && names[end].linked->file == names[i].linked->file) ++end;
    if (end - i > 1) files.emplace_back(&names[i], end - i);
  }
  // Whatever numbers the files have, the same ones are within the bounds.
  std::ranges::sort(files, {}, [](const auto& file) {
    return std::pair(file.front().shown, std::string_view(file.front().linked->path));
  });
  Keeping keeping(host, bounds, steps);
  for (const auto& file : files) keeping.add(file);
  for (Mount& step : steps)
    if (mount::Layered* layered = step.layered()) std::ranges::sort(layered->unlinked);
  keeping.tell(degraded);
}

}  // namespace sbx::plan
