#include "policy/locate.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <memory>
#include <optional>

#include "base/links.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "policy/entries.hpp"
#include "policy/keys.hpp"
#include "policy/syntax.hpp"

namespace sbx::policy {
namespace {

constexpr std::size_t kLargestPolicy = 1U << 20;
constexpr std::string_view kEnding = ".toml";

std::unexpected<Error> refuse(std::string code, std::string message, std::string hint,
                              int errno_value = 0) {
  return fail({.kind = ErrorKind::policy,
               .code = std::move(code),
               .message = std::move(message),
               .errno_value = errno_value,
               .hint = std::move(hint)});
}

std::string_view type_word(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a fifo";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Result<struct stat> regular(const std::string& shown, const struct stat& facts) {
  if (!S_ISREG(facts.st_mode)) {
    return refuse("not-a-regular-file",
                  "policy " + quoted(shown) + " is " + std::string(type_word(facts.st_mode)),
                  "a policy is a regular file");
  }
  if (facts.st_size > static_cast<off_t>(kLargestPolicy)) {
    return refuse("policy-too-large", "policy " + quoted(shown) + " is larger than 1 MiB",
                  "is it a policy?");
  }
  return facts;
}

std::string canonical_of(int fd, const std::string& otherwise) {
  std::array<char, PATH_MAX> target{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = ::readlink(link.c_str(), target.data(), target.size());
  return size > 0 ? std::string(target.data(), static_cast<std::size_t>(size)) : otherwise;
}

std::string stem_of(std::string_view path) {
  const auto slash = path.rfind('/');
  if (slash != std::string_view::npos) path.remove_prefix(slash + 1);
  if (path.size() > kEnding.size() && path.ends_with(kEnding)) path.remove_suffix(kEnding.size());
  return std::string(path);
}

bool is_link(const std::string& path) {
  struct stat facts{};
  return ::lstat(path.c_str(), &facts) != 0 || S_ISLNK(facts.st_mode);
}

/// Looked at before it is opened: opening a device can do something, and a fifo would wait.
Result<PolicyText> read_file(const std::string& path, const std::string& shown) {
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) {
    const int number = errno;
    return refuse(number == ENOENT ? "no-such-file" : "unreadable-policy",
                  "cannot read policy " + quoted(shown),
                  number == ENOENT ? "sbx policy list shows the policies that have a name" : "",
                  number);
  }
  (void)SBX_TRY(regular(shown, facts));
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid())
    return refuse("unreadable-policy", "cannot read policy " + quoted(shown), "", errno);
  if (::fstat(fd.get(), &facts) != 0)
    return refuse("unreadable-policy", "cannot read policy " + quoted(shown), "", errno);
  (void)SBX_TRY(regular(shown, facts));
  auto content = sys::read_all(fd.get(), kLargestPolicy + 1);
  if (!content)
    return refuse("unreadable-policy", "cannot read policy " + quoted(shown), "",
                  content.error().errno_value);
  if (content->size() > kLargestPolicy) {
    return refuse("policy-too-large", "policy " + quoted(shown) + " is larger than 1 MiB",
                  "is it a policy?");
  }
  return PolicyText{.content = std::move(*content),
                    .name = shown,
                    .stem = stem_of(path),
                    .identity = canonical_of(fd.get(), path),
                    .directory = std::string(parent_path(path)),
                    .owner = facts.st_uid,
                    .links = links_on_the_way(path),
                    .typed = !is_link(path)};
}

bool exists(const std::string& path) {
  struct stat facts{};
  return ::stat(path.c_str(), &facts) == 0;
}

bool is_policy_name(std::string_view text) {
  return !text.empty() && text.front() != '.' && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

const PackedPolicy* find_builtin(std::string_view name) {
  const auto all = packed_policies();
  const auto found = std::ranges::find(all, name, &PackedPolicy::name);
  return found == all.end() ? nullptr : &*found;
}

std::string file_in(const std::string& directory, std::string_view name) {
  return directory + "/" + std::string(name) + std::string(kEnding);
}

/// Every name that could be asked for, the built-ins first.
std::vector<std::string> known_names(const LoadContext& context) {
  std::vector<std::string> names;
  for (const PackedPolicy& builtin : packed_policies()) names.emplace_back(builtin.name);
  for (const std::string& directory : context.policy_directories) {
    const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(directory.c_str()), ::closedir);
    if (!open) continue;
    while (const dirent* entry =
               ::readdir(open.get())) {  // NOLINT(concurrency-mt-unsafe): a stream of our own
      const std::string_view name(entry->d_name);
      if (name.ends_with(kEnding) && std::ranges::find(names, stem_of(name)) == names.end())
        names.push_back(stem_of(name));
    }
  }
  return names;
}

std::unexpected<Error> unknown(const std::string& operand, std::string_view name,
                               const LookIn& where, const LoadContext& context) {
  const std::vector<std::string> names = known_names(context);
  const std::vector<std::string_view> views(names.begin(), names.end());
  std::string list;
  for (const std::string& one : names) (list += list.empty() ? "" : ", ") += one;
  const std::string_view meant = nearest(name, views);
  std::string hint = meant.empty() ? "" : "did you mean " + quoted(meant) + "? ";
  if (meant.empty() && !where.directory.empty() && exists(where.directory + "/" + operand)) {
    hint = "for the file of that name write ./" + operand + "; ";
  } else if (meant.empty() && !where.directory.empty() &&
             exists(file_in(where.directory, operand))) {
    hint = "for the file write " + operand + std::string(kEnding) + "; ";
  }
  return refuse("unknown-policy",
                operand == name
                    ? "there is no policy " + quoted(name)
                    : "there is no file " + quoted(operand) + " and no policy " + quoted(name),
                hint + "policies: " + list);
}

Result<PolicyText> by_name(const std::string& operand, const std::string& name, const LookIn& where,
                           const LoadContext& context) {
  if (const PackedPolicy* builtin = find_builtin(name)) {
    for (const std::string& directory : context.policy_directories) {
      if (!exists(file_in(directory, name))) continue;
      return refuse(
          "shadows-builtin",
          quoted(file_in(directory, name)) + " has the name of a built-in policy",
          "rename the file, or name it by its path: -p " + shell_word(file_in(directory, name)));
    }
    return PolicyText{.builtin = builtin,
                      .name = name + std::string(kEnding),
                      .stem = name,
                      .identity = name,
                      .layer = Layer::builtin,
                      .by_name = true};
  }
  for (const std::string& directory : context.policy_directories) {
    if (!is_policy_name(name) || !exists(file_in(directory, name))) continue;
    auto text = read_file(file_in(directory, name), file_in(directory, name));
    if (text) text->by_name = true;
    return text;
  }
  return unknown(operand, name, where, context);
}

Result<PolicyText> by_path(const std::string& operand, const LookIn& where,
                           const LoadContext& context) {
  if (where.directory.empty()) {
    return refuse("no-such-file",
                  quoted(operand) + " is a file, and only built-in policies are known here", "");
  }
  if (operand[0] == '/') return read_file(operand, operand);
  if (operand.starts_with("~")) {
    auto path = absolute_path(operand, {.directory = where.directory, .home = context.home});
    if (!path) return refuse(path.error().code, path.error().message, path.error().hint);
    return read_file(*path, *path);
  }
  const std::string shown =
      where.display_directory.empty() ? operand : where.display_directory + "/" + operand;
  return read_file(where.directory + "/" + operand, shown);
}

/// True if a line before the first table is `schema = …`.
bool says_schema(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
    if (line.starts_with('[')) return false;
    if (!line.starts_with("schema")) continue;
    line.remove_prefix(6);
    line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
    if (line.starts_with('=')) return true;
  }
  return false;
}

std::optional<std::string> link_text(const std::string& path) {
  std::array<char, PATH_MAX> text{};
  const ssize_t size = ::readlink(path.c_str(), text.data(), text.size());
  return size < 0 ? std::nullopt
                  : std::optional(std::string(text.data(), static_cast<std::size_t>(size)));
}

}  // namespace

std::vector<std::string> links_on_the_way(std::string_view path) {
  return sbx::links_on_the_way(path, link_text);
}

bool has_policy_name(const PolicyText& text) {
  return text.builtin != nullptr || text.self_contained || text.identity.ends_with(kEnding);
}

bool may_be_quoted(const PolicyText& text) {
  if (text.builtin != nullptr || text.self_contained) return true;
  return has_policy_name(text) && (text.typed || says_schema(text.content));
}

std::vector<Builtin> builtins() {
  std::vector<Builtin> list;
  for (const PackedPolicy& policy : packed_policies()) list.push_back({policy.name, policy.toml});
  return list;
}

Result<PolicyText> locate(const std::string& operand, const LookIn& where,
                          const LoadContext& context) {
  if (operand.empty()) return refuse("unknown-policy", "the name of a policy is empty", "");
  if (operand.find('\0') != std::string::npos)
    return refuse("nul-in-text", quoted(operand) + " has a NUL in it", "");
  if (operand.find('/') != std::string::npos || operand[0] == '~')
    return by_path(operand, where, context);
  if (!operand.ends_with(kEnding) || operand.size() == kEnding.size())
    return by_name(operand, operand, where, context);
  if (!where.directory.empty() && exists(where.directory + "/" + operand))
    return by_path(operand, where, context);
  auto found = by_name(operand, stem_of(operand), where, context);
  if (found) {
    found->note = operand + " is not a file here: this is the " +
                  (found->layer == Layer::builtin ? "built-in policy " : "policy ") +
                  quoted(found->stem);
  }
  return found;
}

}  // namespace sbx::policy
