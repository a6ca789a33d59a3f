#include "changes/patch.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "base/sys.hpp"
#include "changes/diff.hpp"
#include "workspace/copy.hpp"
#include "workspace/names.hpp"
#include "workspace/tree.hpp"

namespace sbx::changes {
namespace {

constexpr std::size_t kLongest = 1 << 20;  // of one file
constexpr const char* kTooLong = "longer than 1 MiB";

/// One side of a change: a file or a link, as git keeps it.
struct Blob {
  const char* mode = "100644";
  std::string content;
};

const char* git_mode(FileType type, mode_t mode) {
  if (type == FileType::link) return "120000";
  return (mode & S_IXUSR) != 0 ? "100755" : "100644";
}

/// The lines of a diff, each with the newline that it has or with git's word for its absence.
std::string hunks(const std::string& before, const std::string& after) {
  std::string text;
  for (const std::string& line : exact_diff(before, after)) {
    text += line;
    if (line.starts_with("@@"))
      text += '\n';
    else if (!line.ends_with('\n'))
      text += "\n\\ No newline at end of file\n";
  }
  return text;
}

class Writer {
 public:
  explicit Writer(const Copy& copy) : copy_(copy) {}

  void add(const Change& change) {
    if (patch_.text.size() >= kLongestPatch) return leave(change, "the patch is too long already");
    if (change.type == FileType::directory) {
      if (change.change == ChangeKind::mode) leave(change, "git keeps no mode of a directory");
      return;
    }
    if (change.type != FileType::file && change.type != FileType::link)
      return leave(change, workspace::describe(change.type));
    if (change.change == ChangeKind::links) return leave(change, "git keeps no hard links");
    std::string why;
    std::optional<Blob> before;
    std::optional<Blob> after;
    if (change.change != ChangeKind::created) before = blob_before(change, why);
    if (change.change == ChangeKind::mode && before) {
      after = Blob{git_mode(change.type, change.mode), before->content};
      if (std::string_view(after->mode) == before->mode)
        return leave(change, "git keeps no more of a mode than whether a file can be executed");
    } else if (change.change != ChangeKind::deleted) {
      after = blob_after(change, why);
    }
    if (!why.empty()) return leave(change, why);
    write(change.path, before, after);
  }

  [[nodiscard]] Patch take() { return std::move(patch_); }

 private:
  void leave(const Change& change, std::string why) {
    patch_.left.push_back({change.path, std::move(why)});
  }

  static std::optional<Blob> text_of(const UniqueFd& file, const char* mode, std::string& why) {
    auto content = sys::read_all(file.get(), kLongest + 1);
    if (!content)
      why = "it can't be read";
    else if (content->size() > kLongest)
      why = kTooLong;
    else if (!is_text(*content))
      why = "a binary file";
    else
      return Blob{mode, std::move(*content)};
    return std::nullopt;
  }

  std::optional<Blob> blob_before(const Change& change, std::string& why) const {
    const workspace::LayerPath place = place_of(copy_, change.path);
    struct stat facts{};
    const auto directory =
        workspace::open_directory(place.layer->lower.get(), workspace::directory_of(place.path));
    if (!directory || ::fstatat(directory->get(), workspace::name_of(place.path).c_str(), &facts,
                                AT_SYMLINK_NOFOLLOW) != 0) {
      why = "it is not on the host any more";
      return std::nullopt;
    }
    const FileType type = workspace::type_of(facts.st_mode);
    if (type == FileType::link) {
      if (auto target = workspace::read_link(place.layer->lower.get(), place.path))
        return Blob{"120000", std::move(*target)};
    } else if (const auto file = workspace::open_file(place.layer->lower.get(), place.path)) {
      return text_of(*file, git_mode(type, facts.st_mode), why);
    }
    why = "what is on the host can't be read";
    return std::nullopt;
  }

  std::optional<Blob> blob_after(const Change& change, std::string& why) const {
    if (change.type == FileType::link) {
      if (auto target = link_content(copy_, change)) return Blob{"120000", std::move(*target)};
    } else if (const auto file = open_content(copy_, change)) {
      return text_of(*file, git_mode(change.type, change.mode), why);
    }
    why = "what the program wrote can't be read";
    return std::nullopt;
  }

  /// A file that becomes a link, or the other way round, is a deletion and a creation in git.
  void write(const std::string& path, const std::optional<Blob>& before,
             const std::optional<Blob>& after) {
    const auto is_link = [](const Blob& blob) { return std::string_view(blob.mode) == "120000"; };
    if (before && after && is_link(*before) != is_link(*after)) {
      write(path, before, std::nullopt);
      write(path, std::nullopt, after);
      return;
    }
    std::string& text = patch_.text;
    text += "diff --git " + git_name("a/" + path) + " " + git_name("b/" + path) + "\n";
    if (!before) text += std::string("new file mode ") + after->mode + "\n";
    if (!after) text += std::string("deleted file mode ") + before->mode + "\n";
    if (before && after && std::string_view(before->mode) != after->mode)
      text += std::string("old mode ") + before->mode + "\nnew mode " + after->mode + "\n";
    const std::string lines =
        hunks(before ? before->content : std::string(), after ? after->content : std::string());
    if (lines.empty()) return;
    text += "--- " + (before ? git_name("a/" + path) : std::string("/dev/null")) + "\n";
    text += "+++ " + (after ? git_name("b/" + path) : std::string("/dev/null")) + "\n";
    text += lines;
  }

  const Copy& copy_;
  Patch patch_;
};

}  // namespace

std::string git_name(const std::string& name) {
  constexpr std::string_view kPlain = "-_./+@=,:%~#";
  const auto is_plain = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kPlain.find(c) != std::string_view::npos;
  };
  if (std::ranges::all_of(name, is_plain)) return name;
  std::string text = "\"";
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += {'\\', c};
    } else if (byte < 0x20 || byte >= 0x7f) {
      const std::array<char, 3> digits{static_cast<char>('0' + (byte >> 6)),
                                       static_cast<char>('0' + ((byte >> 3) & 7)),
                                       static_cast<char>('0' + (byte & 7))};
      text += '\\';
      text.append(digits.data(), digits.size());
    } else {
      text += c;
    }
  }
  return text + "\"";
}

Patch make_patch(const Copy& copy, const std::vector<Change>& changes) {
  Writer writer(copy);
  for (const ChangeKind kind : {ChangeKind::deleted, ChangeKind::created, ChangeKind::modified,
                                ChangeKind::mode, ChangeKind::links})
    for (const Change& change : changes)
      if (change.change == kind) writer.add(change);
  return writer.take();
}

}  // namespace sbx::changes
