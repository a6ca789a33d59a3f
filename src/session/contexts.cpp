#include "session/contexts.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "session/json.hpp"
#include "session/session_directory.hpp"

namespace sbx::session {
namespace {

constexpr std::size_t kMostLost = 64;

const char* state_of(const Context& context) {
  if (context.call == 0) return "lost";
  if (!context.is_ready) return "starting";
  return context.open > 0 ? "running" : "idle";
}

}  // namespace

Result<std::string> Contexts::name_of(const Json& request, const std::string& language) {
  std::string name = member_or(request, "context", "");
  if (name.empty()) return language;
  if (check_name(name)) return name;
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "bad-context-name",
                    .message = "\"" + lossy_utf8(name) + "\" can't be the name of a context",
                    .hint = "lower-case letters, digits and hyphens, at most 63, not beginning "
                            "with a hyphen"});
}

Context* Contexts::find(const std::string& name) {
  const auto found = all_.find(name);
  return found == all_.end() ? nullptr : &found->second;
}

Context* Contexts::of_call(std::uint64_t call) {
  const auto found =
      std::ranges::find_if(all_, [call](const auto& each) { return each.second.call == call; });
  return call == 0 || found == all_.end() ? nullptr : &found->second;
}

Context& Contexts::add(const std::string& name, const std::string& language) {
  Context& added = all_[name];
  added.name = name;
  added.language = language;
  return added;
}

void Contexts::forget_old() {
  std::size_t lost = all_.size() - living();
  std::erase_if(all_, [&](const auto& each) {
    const Context& context = each.second;
    return context.call == 0 && context.pending_cells.empty() && lost > kMostLost && lost-- > 0;
  });
}

std::size_t Contexts::living() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(all_, [](const auto& each) { return each.second.call != 0; }));
}

bool Contexts::is_busy() const {
  return std::ranges::any_of(all_, [](const auto& each) { return each.second.open > 0; });
}

Json Contexts::list() const {
  Json list = Json::array();
  for (const auto& [name, context] : all_)
    list.push_back({{"context", name},
                    {"language", context.language},
                    {"state", state_of(context)},
                    {"cells", context.cells},
                    {"waiting", context.open > 0 ? context.open - 1 : 0},
                    {"since", context.since},
                    {"call", context.call != 0 ? Json(context.call) : Json(nullptr)}});
  return list;
}

}  // namespace sbx::session
