#include "run/variables.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <sbx/units.hpp>

#include "base/read_stream.hpp"
#include "base/sys.hpp"
#include "base/unique_fd.hpp"

namespace sbx::run {
namespace {

/// The kernel's own limit for one argument block, execve(2), "Limits on size".
constexpr std::size_t kLargest = 2U << 20;

constexpr const char* kNameFile = "name a file with lines NAME=VALUE";

std::unexpected<Error> bad_line(std::string_view from, std::size_t line) {
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "bad-variable",
                    .message = fmt::format("{}: line {} is not NAME=VALUE", from, line),
                    .hint = "write NAME=VALUE, or put # before the line"});
}

Status add(Variables& variables, std::string_view entry, std::string_view from, std::size_t line) {
  const auto equals = entry.find('=');
  // The entry may be a secret: the message names only its position.
  if (equals == std::string_view::npos || !check_variable_name(entry.substr(0, equals), from))
    return bad_line(from, line);
  variables.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  return {};
}

Result<std::string> read_bounded(int fd, std::string_view from) {
  std::string text = SBX_TRY(sys::read_stream(fd, kLargest + 1));
  if (text.size() > kLargest)
    return fail(
        Error{.kind = ErrorKind::usage,
              .code = "too-large",
              .message = fmt::format("{} holds more than {}", from, describe(Bytes{kLargest}))});
  return text;
}

Result<Variables> from_file(const std::string& name) {
  auto file = sys::open_to_read(name);
  if (!file && file.error().code == "no-writer") return fail(std::move(file).error());
  if (!file)
    return fail(Error{.kind = ErrorKind::usage,
                      .code = "no-such-file",
                      .message = fmt::format("--env-file: cannot open \"{}\"", name),
                      .errno_value = file.error().errno_value,
                      .hint = kNameFile});
  const std::string from = fmt::format("--env-file \"{}\"", name);
  struct stat facts{};
  if (::fstat(file->get(), &facts) == 0 && S_ISDIR(facts.st_mode))
    return fail(Error{.kind = ErrorKind::usage,
                      .code = "not-a-file",
                      .message = from + " is a directory",
                      .hint = kNameFile});
  return parse_variables(SBX_TRY(read_bounded(file->get(), from)), from);
}

Result<Variables> from_descriptor(int descriptor) {
  const std::string from = fmt::format("--env-fd {}", descriptor);
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY || descriptor == 1 || descriptor == 2)
    return fail(Error{.kind = ErrorKind::usage,
                      .code = "bad-descriptor",
                      .message = fmt::format("{}: the descriptor is not open for reading", from),
                      .hint = "in a shell: sbx run --env-fd 3 ... 3<secrets"});
  if (descriptor == 0) return parse_variables(SBX_TRY(read_bounded(0, from)), from);
  const UniqueFd owned(descriptor);  // closed after use: nobody else needs the secrets
  return parse_variables(SBX_TRY(read_bounded(descriptor, from)), from);
}

}  // namespace

Status check_variable_name(std::string_view name, std::string_view option) {
  bool good = !name.empty() && !(name.front() >= '0' && name.front() <= '9');
  for (const char c : name)
    good = good &&
           ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_');
  if (!good)
    return fail(Error{.kind = ErrorKind::usage,
                      .code = "bad-value",
                      .message = fmt::format("{}: \"{}\" can't be a variable's name", option, name),
                      .hint = "letters, digits and _, and no digit first; for example MODE=test"});
  return {};
}

Result<Variables> parse_variables(std::string_view text, std::string_view from) {
  const char divider = text.find('\0') == std::string_view::npos ? '\n' : '\0';
  Variables variables;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const auto end = text.find(divider);
    std::string_view entry = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (divider == '\n') {
      if (entry.ends_with('\r')) entry.remove_suffix(1);
      if (entry.empty() || entry.front() == '#') continue;
    } else if (entry.empty()) {
      continue;
    }
    SBX_TRY(add(variables, entry, from, line));
  }
  return variables;
}

Result<Variables> read_variables(const std::vector<VariableSource>& sources) {
  Variables all;
  for (const VariableSource& source : sources) {
    Variables some;
    switch (source.kind) {
      case VariableSource::Kind::assignment: {
        const auto equals = source.text.find('=');
        some.emplace_back(source.text.substr(0, equals), source.text.substr(equals + 1));
        break;
      }
      case VariableSource::Kind::file:
        some = SBX_TRY(from_file(source.text));
        break;
      case VariableSource::Kind::descriptor:
        some = SBX_TRY(from_descriptor(source.descriptor));
        break;
    }
    for (auto& variable : some) all.push_back(std::move(variable));
  }
  return all;
}

}  // namespace sbx::run
