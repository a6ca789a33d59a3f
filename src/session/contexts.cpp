#include "session/contexts.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "session/session_name.hpp"

namespace sbx::session {
namespace {

constexpr std::size_t kMostLost = 64;

protocol::ContextState state_of(const Context& context) {
  using protocol::ContextState;
  switch (context.life) {
    case Life::absent:
    case Life::lost:
      return ContextState::lost;
    case Life::starting:
      return ContextState::starting;
    case Life::ready:
    case Life::ending:
      break;
  }
  return context.open > 0 ? ContextState::running : ContextState::idle;
}

}  // namespace

void Context::begin(std::uint64_t its_call, std::int64_t now) {
  life = Life::starting;
  call = its_call;
  since = now;
}

void Context::end(std::string why) {
  life = life == Life::ready ? Life::lost : Life::absent;
  call = 0;
  open = 0;
  lost_because = std::move(why);
}

Result<std::string> Contexts::name_of(const std::string& name, const std::string& language) {
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

std::string Contexts::new_name(const std::string& language) {
  std::string name;
  do name = language + "-" + std::to_string(++opened_);
  while (all_.contains(name));
  return name;
}

void Contexts::forget_old() {
  std::size_t lost = all_.size() - living();
  std::erase_if(all_, [&](const auto& each) {
    const Context& context = each.second;
    return !context.lives() && context.pending_cells.empty() && lost > kMostLost && lost-- > 0;
  });
}

std::size_t Contexts::living() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(all_, [](const auto& each) { return each.second.lives(); }));
}

bool Contexts::is_busy() const {
  return std::ranges::any_of(all_, [](const auto& each) { return each.second.open > 0; });
}

std::vector<protocol::ContextFacts> Contexts::list() const {
  std::vector<protocol::ContextFacts> list;
  for (const auto& [name, context] : all_) {
    protocol::ContextFacts& facts =
        list.emplace_back(protocol::ContextFacts{.context = name,
                                                 .language = context.language,
                                                 .state = state_of(context),
                                                 .cells = context.cells,
                                                 .waiting = context.open > 0 ? context.open - 1 : 0,
                                                 .since = context.since,
                                                 .directory = context.directory});
    if (context.lives()) facts.call = context.call;
  }
  return list;
}

}  // namespace sbx::session
