#include "policy/entries.hpp"

#include <algorithm>
#include <array>

#include "base/letters.hpp"
#include "policy/network_rules.hpp"
#include "policy/syntax.hpp"

namespace sbx::policy {
namespace {

std::unexpected<Problem> problem(std::string code, std::string message, std::string hint = {}) {
  return std::unexpected(Problem{std::move(code), std::move(message), std::move(hint)});
}

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_alpha(char c) {
  return is_lower(c) || (c >= 'A' && c <= 'Z');
}

Checked<void> check_variable(std::string_view text) {
  const bool right = !is_digit(text[0]) && std::ranges::all_of(text, [](char c) {
    return is_alpha(c) || is_digit(c) || c == '_';
  });
  if (right) return {};
  const auto equals = text.find('=');
  return problem("bad-variable", quoted(text) + " is not the name of an environment variable",
                 equals == std::string_view::npos ? "names have letters, digits and _"
                                                  : "values go to environment.set");
}

Checked<void> check_user(std::string_view text) {
  constexpr std::size_t kLongest = 32;  // useradd(8)
  const auto begins = [](char c) { return is_lower(c) || c == '_'; };
  const bool right =
      begins(text[0]) && text.size() <= kLongest && text != "root" && text != "nobody" &&
      std::ranges::all_of(text, [&](char c) { return begins(c) || is_digit(c) || c == '-'; });
  if (right) return {};
  return problem("bad-user", quoted(text) + " can't be the name of the user inside",
                 "at most 32 lower-case letters, digits, - and _, beginning with a letter; not "
                 "root or nobody, which are others");
}

Checked<std::string> check_inside(std::string_view text) {
  if (text[0] == '/') return normal_path(text);
  return problem("bad-path", quoted(text) + " is not an absolute path", "as \"/data\"");
}

Checked<void> check_call(std::string_view text) {
  const bool group = text[0] == '@';
  const std::string_view name = text.substr(group ? 1 : 0);
  const bool right = !name.empty() && std::ranges::all_of(name, [&](char c) {
    return is_lower(c) || is_digit(c) || c == (group ? '-' : '_');
  });
  if (right) return {};
  return problem("bad-call-name", quoted(text) + " is not the name of a system call or group",
                 "names look like \"personality\", groups like \"@debug\"");
}

Checked<void> check_command(std::string_view text) {
  if (text.find_first_of(" \t\n") == std::string_view::npos) return {};
  return problem("bad-command", quoted(text) + " is not the name of a program",
                 "one name without arguments, as \"python3\"");
}

Checked<void> check_collected(std::string_view text) {
  const auto parts = split(text, '/');
  if (text[0] != '/' && text[0] != '~' && std::ranges::find(parts, "..") == parts.end()) return {};
  return problem("bad-pattern", quoted(text) + " leaves the workspace",
                 "write a pattern below it, as \"out/**\"");
}

/// A pattern stays as written when it begins with "**/"; everything else is a path, and a bare name
/// could be either.
Checked<std::string> check_hidden(std::string_view text, const PathBase& base) {
  if (text.starts_with("**/")) {
    const auto parts = split(text, '/');
    if (text.size() > 3 && std::ranges::find(parts, "..") == parts.end()) return std::string(text);
    return problem("bad-pattern", quoted(text) + " names nothing", "as \"**/.env\"");
  }
  if (text.find('/') == std::string_view::npos && text[0] != '~') {
    return problem("bad-pattern", quoted(text) + " could mean one file or every file of that name",
                   "write " + quoted("**/" + std::string(text)) + " to hide it everywhere, or " +
                       quoted("./" + std::string(text)) + " for the one beside this file");
  }
  return absolute_path(text, base);
}

/// Rules of the network stand in a policy as their canonical text: same rules, same texts.
template <class T>
Checked<std::string> canonical(const Checked<T>& parsed) {
  if (!parsed) return std::unexpected(parsed.error());
  return parsed->text();
}

Checked<std::string> check_source(std::string_view text, const PathBase& base) {
  if (text[0] == '~' || text[0] == '/' || text.find('$') != std::string_view::npos)
    return absolute_path(text, base);
  return std::string(text);
}

}  // namespace

std::string normal_path(std::string_view path) {
  std::string out;
  for (const std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      out.resize(out.empty() ? 0 : out.rfind('/'));
    } else {
      (out += '/') += part;
    }
  }
  return out.empty() ? "/" : out;
}

std::string_view parent_path(std::string_view path) {
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Checked<std::string> absolute_path(std::string_view text, const PathBase& base) {
  if (text.find('$') != std::string_view::npos) {
    return problem("bad-path", "variables are not expanded in " + quoted(text),
                   "write the path out, or begin it with ~");
  }
  if (text[0] == '/') return normal_path(text);
  if (text[0] == '~') {
    if (text.size() > 1 && text[1] != '/') {
      return problem("bad-path", "the home of another user is not looked up: " + quoted(text),
                     "write the path out; ~ alone is your own home");
    }
    if (base.home.empty()) {
      return problem("no-home", "you have no home directory for " + quoted(text),
                     "write the path out");
    }
    return normal_path(base.home + std::string(text.substr(1)));
  }
  if (base.directory.empty()) {
    return problem("bad-path",
                   quoted(text) + " is relative, and a built-in policy lies in no directory",
                   "write an absolute path or begin it with ~");
  }
  return normal_path(base.directory + "/" + std::string(text));
}

Checked<void> check_grantable(const std::string& path) {
  constexpr auto kOwn = std::to_array<std::string_view>({"/proc", "/sys", "/dev"});
  if (path == "/") {
    return problem("forbidden-grant", "\"/\" can't be granted",
                   "grant the directories that are needed");
  }
  for (const std::string_view own : kOwn) {
    if (!path.starts_with(own) || (path.size() > own.size() && path[own.size()] != '/')) continue;
    return problem("forbidden-grant", quoted(path) + " can't be granted",
                   own == "/sys"
                       ? "there is no /sys in a sandbox: leave it out"
                       : "the sandbox has its own " + std::string(own) + ": leave it out");
  }
  return {};
}

Checked<std::string> check_entry(Entry entry, std::string_view text, const PathBase& base) {
  if (text.empty()) return problem("empty-text", "empty value", "leave it out, or write a value");
  if (text.find('\0') != std::string_view::npos) {
    return problem("nul-in-text", quoted(text) + " has a NUL in it",
                   "the kernel ends every text there");
  }
  const auto as_written = [&](Checked<void> checked) -> Checked<std::string> {
    if (!checked) return std::unexpected(std::move(checked).error());
    return std::string(text);
  };
  switch (entry) {
    case Entry::any:
      return std::string(text);
    case Entry::command:
      return as_written(check_command(text));
    case Entry::variable:
      return as_written(check_variable(text));
    case Entry::user:
      return as_written(check_user(text));
    case Entry::call:
      return as_written(check_call(text));
    case Entry::destination:
      return canonical(parse_network_rule(text));
    case Entry::publication:
      return canonical(parse_publication(text));
    case Entry::collected:
      return as_written(check_collected(text));
    case Entry::path:
      return absolute_path(text, base);
    case Entry::inside:
      return check_inside(text);
    case Entry::system: {
      if (text == "host") return std::string(text);
      auto path = absolute_path(text, base);
      if (path) {
        if (auto grantable = check_grantable(*path); !grantable)
          return std::unexpected(std::move(grantable).error());
      }
      return path;
    }
    case Entry::source:
      return check_source(text, base);
    case Entry::hidden:
      return check_hidden(text, base);
  }
  return std::string(text);
}

}  // namespace sbx::policy
