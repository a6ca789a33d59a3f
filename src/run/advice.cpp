#include "run/advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.hpp"

namespace sbx::run {
namespace {

/// Parts of names whose values are secrets, or that change what programs load.
constexpr auto kNeverOffered = std::to_array<std::string_view>(
    {"TOKEN", "SECRET",  "PASS",       "CREDENTIAL", "KEY",     "AUTH", "COOKIE",   "DSN",
     "_URL",  "_URI",    "CERT",       "_PAT",       "SESSION", "SOCK", "LD_",      "PYTHON",
     "PWD",   "WEBHOOK", "CONNECTION", "JWT",        "PRIVATE", "SEED", "BASH_ENV", "_OPTIONS"});

bool may_be_offered(std::string_view name) {
  if (name.size() > 64 || !is_variable_name(name)) return false;
  std::string upper(name);
  std::ranges::transform(upper, upper.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return std::ranges::none_of(kNeverOffered,
                              [&](std::string_view part) { return upper.contains(part); });
}

/// The word that ends where `behind` begins.
std::string_view word_before(std::string_view text, std::size_t behind) {
  std::size_t begin = behind;
  while (begin > 0 &&
         (std::isalnum(static_cast<unsigned char>(text[begin - 1])) != 0 || text[begin - 1] == '_'))
    --begin;
  return text.substr(begin, behind - begin);
}

/// "KeyError: 'X'" of os.environ, "x.sh: line 1: X: unbound variable", "sh: 1: X: parameter not
/// set".
std::string_view unset_variable(std::string_view text) {
  constexpr std::string_view kPython = "KeyError: '";
  if (text.contains("os.py\", line") || text.contains("<frozen os>"))
    if (const auto at = text.rfind(kPython); at != std::string_view::npos) {
      const std::string_view name = text.substr(at + kPython.size());
      return name.substr(0, name.find('\''));
    }
  for (const std::string_view phrase : {": unbound variable", ": parameter not set"})
    if (const auto at = text.rfind(phrase); at != std::string_view::npos)
      return word_before(text, at);
  return {};
}

bool is_in(const plan::Plan& plan, std::string_view name) {
  return std::ranges::any_of(plan.environment, [&](const std::string& each) {
    return each.starts_with(name) && each.substr(name.size()).starts_with('=');
  });
}

std::string note_of_variable(const Outcome& outcome, const plan::Plan& plan, const host::Host& host,
                             hints::Reader reader, std::string_view how) {
  for (const Stream* const stream : {&outcome.err, &outcome.out}) {
    const std::string name(unset_variable(stream->last));
    if (!may_be_offered(name) || is_in(plan, name)) continue;
    if (reader == hints::Reader::person && !host.environment.contains(name)) continue;
    return fmt::format(
        "the variable {0} is not in the sandbox; to pass the caller's on, {1} --env {0}", name,
        how);
  }
  return {};
}

/// The literal path that a call of this name gets first: savefig('/tmp/x.png').
std::string_view path_given_to(std::string_view program, std::string_view call) {
  for (auto at = program.find(call); at != std::string_view::npos;
       at = program.find(call, at + 1)) {
    std::string_view rest = program.substr(at + call.size());
    while (rest.starts_with(' ') || rest.starts_with('\n')) rest.remove_prefix(1);
    if (!rest.starts_with('\'') && !rest.starts_with('"')) continue;
    const std::string_view path = rest.substr(1, rest.find(rest.front(), 1) - 1);
    if ((path.starts_with('/') || path.starts_with("~/")) && !path.contains('\n')) return path;
  }
  return {};
}

}  // namespace

std::string note_of_words(const Outcome& outcome, const plan::Plan& plan, const host::Host& host,
                          hints::Reader reader, std::string_view how) {
  if (std::string note = note_of_variable(outcome, plan, host, reader, how); !note.empty())
    return note;
  constexpr std::string_view kOfPip = "environment is externally managed";
  if (!outcome.err.last.contains(kOfPip) && !outcome.out.last.contains(kOfPip)) return {};
  return fmt::format(
      "pip installs nothing into the system's Python; outside: python3 -m venv .venv "
      "&& .venv/bin/pip install PACKAGE; then {} --venv .venv",
      how);
}

std::string note_of_unsaved(std::string_view program) {
  constexpr auto kSaves = std::to_array<std::string_view>(
      {"savefig(", "to_csv(", "to_excel(", "to_parquet(", "to_json(", "imsave(", "imwrite("});
  for (const std::string_view call : kSaves) {
    const std::string_view path = path_given_to(program, call);
    if (path.empty()) continue;
    return fmt::format("\"{}\" is not in the working directory, whose files --out copies; {}'{}')",
                       path, call, path.substr(path.rfind('/') + 1));
  }
  const bool shows = program.contains("plt.show(") || program.contains("fig.show(");
  if (!shows || program.contains("savefig")) return {};
  return "plt.show() shows nothing in a sandbox; plt.savefig('chart.png') makes a file for --out";
}

}  // namespace sbx::run
