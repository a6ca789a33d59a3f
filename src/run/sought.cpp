#include "run/sought.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <string_view>
#include <utility>

#include "base/private_disk.hpp"
#include "plan/files/inside.hpp"
#include "plan/files/path_text.hpp"
#include "plan/path_calls.hpp"

namespace sbx::run {
namespace {

using plan::MountKind;

constexpr std::size_t kMostPaths = 1024;
constexpr std::size_t kMostNamed = 64;
constexpr std::size_t kPathLimit = PATH_MAX;
/// Never the host's, so they can't be granted.
constexpr std::array<std::string_view, 3> kOwn = {"/proc", "/sys", "/dev"};

/// The directory that a relative path starts from, as the program sees it.
std::string directory_of(const plan::PathCall& asked, const supervise::NotedCall& call,
                         std::uint32_t thread) {
  std::string link = "/proc/" + std::to_string(thread);
  const int directory = asked.directory == plan::PathCall::kNoDirectory
                            ? AT_FDCWD
                            : static_cast<int>(call.arguments[asked.directory]);
  link += directory == AT_FDCWD ? "/cwd" : "/fd/" + std::to_string(directory);
  std::array<char, PATH_MAX> text;
  const ssize_t length = ::readlink(link.c_str(), text.data(), text.size());
  return length <= 0 || text[0] != '/' ? std::string()
                                       : std::string(text.data(), static_cast<std::size_t>(length));
}

bool shows_something(MountKind kind) {
  return kind != MountKind::directory && kind != MountKind::pinned;
}

/// Masked paths of /proc are never looked up here.
bool hides(const plan::Mount& mount) {
  return mount.kind() == MountKind::mask_file || mount.kind() == MountKind::mask_directory;
}

std::string quoted(const std::string& path) {
  std::string text = "\"";
  for (const char letter : path) {
    if (letter == '"' || letter == '\\') text += '\\';
    text += letter;
  }
  return text + "\"";
}

}  // namespace

Sought::Sought(const plan::Plan& plan, const host::Host& host) : plan_(plan), host_(host) {}

std::vector<supervise::Note> Sought::notes() {
  std::vector<supervise::Note> notes;
  if (!plan_.explain) return notes;
  for (const int number : plan::calls_with_paths())
    notes.push_back(
        {.number = number,
         .look = [this](const supervise::NotedCall& call, const supervise::CallerMemory& memory) {
           look(call, memory);
         }});
  return notes;
}

void Sought::look(const supervise::NotedCall& call, const supervise::CallerMemory& memory) {
  const auto asked = std::ranges::find(plan::path_calls(), call.number, &plan::PathCall::number);
  if (asked == plan::path_calls().end()) return;
  const bool makes =
      asked->flags != plan::PathCall::kNoFlags && (call.arguments[asked->flags] & O_CREAT) != 0;
  const auto text = memory.text(call.arguments[asked->path], kPathLimit);
  if (!text || text->empty()) return;
  std::string path = *text;
  if (!path.starts_with('/')) {
    const std::string directory = directory_of(*asked, call, memory.thread());
    if (directory.empty()) return;
    path = plan::joined(directory, path);
  }
  if (makes) return note_made(plan::normal(path));
  const bool used = asked->flags != plan::PathCall::kNoFlags || call.number == SYS_execve ||
                    call.number == SYS_execveat || call.number == SYS_chdir;
  remember(plan::normal(path), memory, used);
}

/// Files that the program creates itself don't count as sought, neither now nor later.
void Sought::note_made(const std::string& path) {
  if (made_.size() < kMostPaths && !seen_.contains(path)) made_.insert(path);
}

void Sought::remember(const std::string& path, const supervise::CallerMemory& memory, bool used) {
  auto known = seen_.find(path);
  if (known == seen_.end()) {
    if (made_.contains(path)) return;
    HostPath place = place_of(path);
    if (place.host.empty()) return;
    if (seen_.size() >= kMostPaths) {
      ++left_out_;
      return;
    }
    known = seen_.emplace(path, Seen{std::move(place), 0, memory.process_name(), false}).first;
  }
  ++known->second.count;
  known->second.used |= used;
}

/// Directories that exist inside only because something below them does.
bool Sought::is_upper_directory(const std::string& path) const {
  return std::ranges::any_of(
      plan_.mounts, [&](const plan::Mount& mount) { return plan::is_within(mount.target, path); });
}

Sought::HostPath Sought::place_of(const std::string& path) const {
  if (std::ranges::any_of(kOwn, [&](std::string_view own) { return plan::is_within(path, own); }))
    return {};
  const plan::Mount* deepest = nullptr;
  for (const plan::Mount& mount : plan_.mounts)
    if (shows_something(mount.kind()) && plan::is_within(path, mount.target) &&
        (deepest == nullptr || mount.target.size() >= deepest->target.size()))
      deepest = &mount;
  if (deepest != nullptr && hides(*deepest)) return {.host = path, .hidden = true};
  if (is_upper_directory(path)) return {};
  if (deepest == nullptr) return {.host = path};
  if (deepest->kind() != MountKind::scratch) return {};
  if (deepest->source() == private_disk::kHome && !host_.home.empty())
    return {.host = host_.home + std::string(plan::below(path, deepest->target)),
            .below_home = true};
  const bool is_empty_here =
      deepest->source() == private_disk::kWorkspace && deepest->target == host_.working_directory;
  if (deepest->source() == private_disk::kTmp || is_empty_here) return {.host = path};
  return {};
}

/// A directory that was only visited on the way to something below it, as realpath(3) does.
bool Sought::leads_further(const std::string& path) const {
  const auto next = seen_.upper_bound(path + "/");
  return next != seen_.end() && plan::is_within(next->first, path);
}

Denial Sought::denial(const std::string& path, const Seen& seen, bool is_directory) const {
  const HostPath& place = seen.place;
  Denial denial{
      .kind = DenialKind::path, .what = path, .count = seen.count, .process = seen.process};
  if (place.hidden) {
    denial.rule = "hidden by filesystem.deny";
    return denial;
  }
  denial.rule = "looked for, not granted (seen by --explain; a program can fake such look-ups)";
  denial.risk = is_directory ? "the program can read all that is in it" : "the program can read it";
  if (!place.below_home) {
    denial.allow_with = fmt::format("filesystem.read = [{}]", quoted(place.host));
    denial.options = {"--read", plan::operand_text(place.host)};
  } else if (is_directory) {
    denial.allow_with = fmt::format("filesystem.read = [{{ source = {}, target = {} }}]",
                                    quoted(place.host), quoted(path));
    denial.options = {"--read", plan::operand_text(place.host) + ":" + plan::operand_text(path)};
  } else {
    denial.allow_with = fmt::format("filesystem.seed = [{}]", quoted(place.host));
    denial.options = {"--in", plan::operand_text(place.host) + ":" + plan::operand_text(path)};
  }
  return denial;
}

std::vector<Denial> Sought::denials() const {
  std::vector<Denial> found;
  std::uint64_t others = left_out_;
  for (const auto& [path, seen] : seen_) {
    if (!seen.used && leads_further(path)) continue;
    // The home directory and its parents: no line grants those.
    if (!host_.home.empty() && plan::is_within(host_.home, seen.place.host)) continue;
    const auto facts = host_.files->look(seen.place.host);
    if (!facts) continue;
    if (found.size() < kMostNamed)
      found.push_back(denial(path, seen, facts->type == host::FileType::directory));
    else
      ++others;
  }
  if (others != 0)
    found.push_back({.kind = DenialKind::path,
                     .what = "others",
                     .count = others,
                     .rule = fmt::format("--explain names {} paths", kMostNamed)});
  return found;
}

}  // namespace sbx::run
