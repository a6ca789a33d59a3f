#include "plan/files/grants.hpp"

#include <cerrno>

#include "base/text.hpp"
#include "plan/files/inside.hpp"
#include "plan/files/path_text.hpp"
#include "plan/files/refuse.hpp"

namespace sbx::plan {
namespace {

bool is_missing(const Error& error) {
  return error.errno_value == ENOENT || error.errno_value == ENOTDIR;
}

Status check_kind(const Grant& grant, const std::string& written) {
  switch (grant.facts.type) {
    case host::FileType::regular:
    case host::FileType::directory:
      return {};
    case host::FileType::socket:
      return refuse("not-grantable", "cannot grant '" + written + "': it is a socket", grant.origin,
                    "filesystem.sockets is for sockets");
    default:
      return refuse(
          "not-grantable", "cannot grant '" + written + "': it is neither a file nor a directory",
          grant.origin,
          "the program can have it as its standard input: --stdin " + shell_word(written));
  }
}

}  // namespace

std::string obstacle_on_the_way(const host::Host& host, const std::string& place,
                                const std::string& top) {
  for (std::string directory = parent_of(place); is_within(directory, top);
       directory = parent_of(directory)) {
    const auto facts = host.files->look(directory);
    if (!facts) continue;
    const auto real = host.files->canonical(directory);
    if (facts->type == host::FileType::symlink || !real || *real != directory)
      return "'" + directory + "' is reached through a symbolic link";
    return facts->type == host::FileType::directory ? "" : "'" + directory + "' is not a directory";
  }
  return {};
}

bool is_forbidden(const std::string& path) {
  if (path == "/") return true;
  if (is_within(path, "/dev/shm") && path != "/dev/shm") return false;
  return is_within(path, "/proc") || is_within(path, "/sys") || is_within(path, "/dev");
}

const char* describe(GrantKind kind) {
  switch (kind) {
    case GrantKind::empty:
      return "empty";
    case GrantKind::read:
      return "read-only";
    case GrantKind::copy:
      return "copy-on-write";
    case GrantKind::live:
      return "live";
  }
  return "";
}

namespace {

/// How the grant is taken back, where it was given.
std::string without(const Origin& origin) {
  const bool typed = origin.layer == Layer::command_line;
  return typed ? "leave out " + origin.text() : "take it out of the policy";
}

/// An option of its own takes a path only; --set takes what a policy says.
std::string cure_of_missing(const policy::Sourced<policy::PathGrant>& grant) {
  const std::string option = grant.origin.text();
  if (grant.origin.layer == Layer::command_line && option != "--set")
    return "name what exists, or leave out " + option;
  return "{ source = \"" + grant.value.source + "\", optional = true } leaves out what is missing";
}

}  // namespace

std::string cure_of_unreadable(const host::Host& host, const std::string& path) {
  std::string shut = path;
  bool is_on_the_way = false;
  const std::string from = host.working_directory.empty() ? "/" : host.working_directory;
  for (std::string above = parent_of(normal(joined(from, path)));; above = parent_of(above)) {
    if (!host.files->may_execute(above)) {
      shut = above;  // the topmost: what is below it can't be asked about
      is_on_the_way = true;
    }
    if (above == "/") break;
  }
  const auto facts = host.files->look(shut);
  const bool own = facts && facts->uid == host.uid;
  const bool is_directory = facts && facts->type == host::FileType::directory;
  const char* const mode = is_on_the_way ? "x" : is_directory ? "rx" : "r";
  return std::string(own ? "chmod u+" : "its owner can allow it, with chmod o+") + mode + " " +
         shell_word(shut);
}

std::string cure_of_unreadable(const host::Host& host, const std::string& path,
                               const Origin& origin) {
  return cure_of_unreadable(host, path) + ", or " + without(origin);
}

Result<std::optional<Grant>> resolve_grant(const host::Host& host,
                                           const policy::Sourced<policy::PathGrant>& grant,
                                           GrantKind kind, const std::string& home) {
  const std::string& written = grant.value.source;
  auto source = host.files->canonical(written);
  if (!source) {
    if (grant.value.optional && is_missing(source.error())) return std::nullopt;
    return refuse("missing-grant", "cannot grant '" + written + "'", grant.origin,
                  is_missing(source.error()) ? cure_of_missing(grant)
                  : source.error().errno_value == EACCES
                      ? cure_of_unreadable(host, written, grant.origin)
                      : without(grant.origin),
                  source.error().errno_value);
  }
  Grant resolved{.kind = kind,
                 .source = std::move(*source),
                 .target = normal(grant.value.target.empty() ? written : grant.value.target),
                 .facts = {},
                 .origin = grant.origin,
                 .chosen_target = !grant.value.target.empty(),
                 .special = grant.value.special};
  for (const std::string& path : {resolved.source, resolved.target})
    if (is_forbidden(path))
      return refuse("forbidden-grant", "'" + path + "' is never granted", grant.origin,
                    "grant the directories that the program needs; /dev, /proc and /tmp of its own "
                    "are there");
  if (is_within(home, resolved.target) && resolved.target != home)
    return refuse("forbidden-grant",
                  "'" + resolved.target + "' would cover the home of the sandbox, '" + home + "'",
                  grant.origin, "grant directories below it, or give it another target");
  resolved.facts = SBX_TRY(host.files->look(resolved.source));
  SBX_TRY(check_kind(resolved, written));
  if (!host.files->may_read(resolved.source))
    return refuse("unreadable-grant", "cannot grant '" + written + "'", grant.origin,
                  cure_of_unreadable(host, resolved.source, grant.origin), EACCES);
  return resolved;
}

Result<Grant> resolve_socket(const host::Host& host, const policy::Sourced<std::string>& socket) {
  auto source = host.files->canonical(socket.value);
  if (!source)
    return refuse("missing-grant", "cannot share the socket '" + socket.value + "'", socket.origin,
                  is_missing(source.error())
                      ? "start the program that listens there, or " + without(socket.origin)
                      : cure_of_unreadable(host, socket.value, socket.origin),
                  source.error().errno_value);
  Grant grant{.kind = GrantKind::read,
              .source = std::move(*source),
              .target = normal(socket.value),
              .facts = {},
              .origin = socket.origin};
  grant.facts = SBX_TRY(host.files->look(grant.source));
  if (grant.facts.type != host::FileType::socket)
    return refuse("not-a-socket", "'" + socket.value + "' is not a socket", socket.origin,
                  "filesystem.read and filesystem.write are for files and directories");
  return grant;
}

}  // namespace sbx::plan
