#include "cli/session_contexts.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/tell.hpp"
#include "base/text.hpp"
#include "cli/answer.hpp"
#include "cli/console.hpp"
#include "cli/session_documents.hpp"
#include "cli/usage.hpp"
#include "session/json.hpp"

namespace sbx::cli {
namespace {

/// The one that is named, or all.
Result<std::vector<std::string>> named_contexts(const SessionAsker& asker) {
  SBX_TRY(asker.most(2));
  if (asker.operands.size() > 1) return std::vector{asker.operands[1]};
  std::vector<std::string> names;
  const protocol::ContextsAnswer facts = SBX_TRY(asker.ask(protocol::ContextsRequest{}));
  for (const protocol::ContextFacts& each : facts.contexts) names.push_back(each.context);
  return names;
}

}  // namespace

Result<int> list_contexts(const SessionAsker& asker) {
  SBX_TRY(asker.most(1));
  const protocol::ContextsAnswer facts = SBX_TRY(asker.ask(protocol::ContextsRequest{}));
  if (asker.typed.output.json) return print(dump(session::headed(facts)));
  std::string text = fmt::format("{:<20}  {:<10}  {:<8}  {:>5}  {:>7}  {}\n", "CONTEXT", "LANGUAGE",
                                 "STATE", "CELLS", "WAITING", "SINCE");
  for (const protocol::ContextFacts& each : facts.contexts)
    text += fmt::format("{:<20}  {:<10}  {:<8}  {:>5}  {:>7}  {}\n", printable(each.context),
                        printable(each.language), name_of(each.state), each.cells, each.waiting,
                        time_text(each.since));
  return print_fitted(text);
}

Result<int> open_context(const SessionAsker& asker) {
  SBX_TRY(asker.most(1));
  const protocol::InspectAnswer opened = SBX_TRY(asker.ask(protocol::OpenContextRequest{
      .language = asker.typed.request.language, .directory = asker.typed.request.directory}));
  const Json json =
      session::headed(ContextDocument{.context = opened.context, .language = opened.language});
  const int status = print(asker.typed.output.json ? dump(json) : printable(opened.context) + "\n");
  // Nobody knows its name.
  if (status != kDone) (void)asker.ask(protocol::CloseContextRequest{.context = opened.context});
  return status;
}

Result<int> close_context(const SessionAsker& asker) {
  SBX_TRY(asker.most(2));
  if (asker.operands.size() < 2)
    return usage(
        "usage", "\"sbx session close\" needs a session and a context",
        fmt::format("sbx session contexts {} lists them", printable(asker.operands.front())));
  (void)SBX_TRY(asker.ask(protocol::CloseContextRequest{.context = asker.operands[1]}));
  return asker.answered(ClosedDocument{.closed = asker.operands[1]});
}

Result<int> interrupt_contexts(const SessionAsker& asker) {
  std::vector<std::string> names;
  for (const std::string& name : SBX_TRY(named_contexts(asker))) {
    if (SBX_TRY(asker.ask(protocol::InterruptRequest{.context = name})).interrupted)
      names.push_back(name);
  }
  if (names.empty() && !asker.typed.output.json) console().tell("sbx: no cell runs there\n");
  return asker.answered(InterruptedDocument{.interrupted = std::move(names)});
}

Result<int> restart_contexts(const SessionAsker& asker) {
  std::vector<std::string> names;
  for (const std::string& name : SBX_TRY(named_contexts(asker))) {
    (void)SBX_TRY(asker.ask(protocol::RestartRequest{.context = name}));
    names.push_back(name);
  }
  return asker.answered(RestartedDocument{.restarted = std::move(names)});
}

}  // namespace sbx::cli
