#include "record/limit_texts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <sbx/outcome.hpp>
#include <sbx/units.hpp>

namespace sbx::record {
namespace {

constexpr auto kLimits = std::to_array<LimitText>({
    {"wall_time", "it ran longer than allowed", "", "--timeout",
     "a program that hangs holds its caller longer"},
    {"cpu_time", "its processes computed longer than allowed", "", "--cpu-time",
     "the machine is busy longer"},
    {"memory", "its processes held more memory than allowed", "", "--memory",
     "the host has less for everything else"},
    {"output", "it printed more than allowed", "", "--output", "logs and records get larger"},
    {"file_size", "it wrote a file larger than allowed", "write() failed with EFBIG",
     "limits.file_size", "one file may take the whole disk budget"},
    {"disk", "it wrote more than allowed", "write() failed with ENOSPC", "--disk",
     "what is written there is memory of the host, unless limits.disk_on is \"directory\""},
    {"disk_files", "it made more files than allowed", "new files failed with ENOSPC",
     "limits.disk_files", "each file takes some memory of the host"},
    {"processes", "it started more processes or threads than allowed", "fork() failed with EAGAIN",
     "--processes", "a fork bomb gets further"},
    {"open_files", "it opened more files than allowed", "open() failed with EMFILE",
     "limits.open_files", "the host's table of open files is shared"},
});

/// Words about a verdict look for the row of its budget.
constexpr bool has_each_budget() {
  for (unsigned char i = 0; *name_of(static_cast<Budget>(i)) != '\0'; ++i)
    if (std::ranges::find(kLimits, name_of(static_cast<Budget>(i)), &LimitText::name) ==
        kLimits.end())
      return false;
  return true;
}
static_assert(has_each_budget());

std::string value_text(std::string_view limit, std::uint64_t value) {
  if (is_size(limit)) return to_text(Bytes{value});
  if (limit.ends_with("_time")) return to_text(Milliseconds(static_cast<std::int64_t>(value)));
  return std::to_string(value);
}

/// The next larger value; doubling doesn't change 0.
std::uint64_t larger(std::string_view limit, std::uint64_t value) {
  constexpr std::uint64_t kSome = std::uint64_t{1} << 20;
  if (value == 0) return is_size(limit) ? kSome : 1;
  return value * 2;
}

}  // namespace

const LimitText* find_limit(std::string_view name) {
  const auto found = std::ranges::find(kLimits, name, &LimitText::name);
  return found == kLimits.end() ? nullptr : &*found;
}

bool is_size(std::string_view limit) {
  return limit == "memory" || limit == "disk" || limit == "file_size" || limit == "output";
}

std::string amount(std::string_view limit, std::uint64_t value) {
  if (is_size(limit)) return describe(Bytes{value});
  if (limit.ends_with("_time")) return describe(Milliseconds(static_cast<std::int64_t>(value)));
  return std::to_string(value);
}

std::string toml_value(std::string_view limit, std::uint64_t value) {
  const bool is_text = is_size(limit) || limit.ends_with("_time");
  return is_text ? "\"" + value_text(limit, value) + "\"" : value_text(limit, value);
}

std::string twice(const LimitText& limit, std::uint64_t value) {
  if (limit.option.starts_with("--"))
    return fmt::format("{} {}", limit.option, value_text(limit.name, larger(limit.name, value)));
  return fmt::format("--set '{}={}'", limit.option,
                     toml_value(limit.name, larger(limit.name, value)));
}

std::string cure_of(const LimitText& limit, std::uint64_t value, std::string_view given_by,
                    std::uint64_t most) {
  const std::uint64_t twice_as_much = larger(limit.name, value);
  const std::uint64_t more = most == 0 ? twice_as_much : std::min(twice_as_much, most);
  if (given_by == "--set")
    return fmt::format("--set 'limits.{}={}'", limit.name, toml_value(limit.name, more));
  if (given_by.starts_with("--"))
    return fmt::format("{} {}", given_by, value_text(limit.name, more));
  if (!given_by.empty()) return fmt::format("a larger {}", given_by);
  return fmt::format("{}, or limits.{} = {} in the policy", twice(limit, value), limit.name,
                     toml_value(limit.name, more));
}

std::string_view option_in_rule(std::string_view rule) {
  const std::size_t begin = rule.rfind(" (--");
  if (begin == std::string_view::npos || !rule.ends_with(')')) return {};
  const std::string_view option = rule.substr(begin + 2, rule.size() - begin - 3);
  return option.find_first_not_of("-abcdefghijklmnopqrstuvwxyz") == std::string_view::npos
             ? option
             : std::string_view();
}

}  // namespace sbx::record
