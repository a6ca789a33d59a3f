#include <fmt/format.h>

#include <array>

#include <sbx/outcome.hpp>

#include "base/json.hpp"
#include "base/text.hpp"
#include "cli/policy/command.hpp"
#include "policy/compare.hpp"

namespace sbx::cli::policy_verb {
namespace {

using policy::Difference;
using policy::Direction;

struct Heading {
  Direction direction;
  const char* name;   ///< in JSON
  const char* words;  ///< follows the second policy's name
};
constexpr auto kHeadings = std::to_array<Heading>({
    {Direction::wider, "wider", "allows more"},
    {Direction::narrower, "narrower", "allows less"},
    {Direction::different, "different", "differs where no order says which is more"},
});

std::size_t count(const std::vector<Difference>& list, Direction direction) {
  std::size_t number = 0;
  for (const Difference& each : list) number += each.direction == direction ? 1 : 0;
  return number;
}

std::string diff_for_people(const std::vector<Difference>& list, const std::string& first,
                            const std::string& second) {
  if (list.empty())
    return fmt::format("{} and {} allow the same\n", printable(first), printable(second));
  std::string text;
  for (const Heading& heading : kHeadings) {
    if (count(list, heading.direction) == 0) continue;
    text += fmt::format("{}: {} {}\n", heading.name, printable(second), heading.words);
    for (const Difference& each : list)
      if (each.direction == heading.direction)
        text += fmt::format("  {:<28} {}  ({})\n", each.key->name, printable(each.words),
                            printable(each.at.text()));
  }
  return text + fmt::format("{} wider, {} narrower, {} different than {}\n",
                            count(list, Direction::wider), count(list, Direction::narrower),
                            count(list, Direction::different), printable(first));
}

std::string diff_for_programs(const std::vector<Difference>& list, const std::string& first,
                              const std::string& second) {
  Json json{{"schema", "sbx.diff/1"}, {"sbx", SBX_VERSION}};
  put_name(json, "first", first);
  put_name(json, "second", second);
  for (const Heading& heading : kHeadings) {
    Json entries = Json::array();
    for (const Difference& each : list) {
      if (each.direction != heading.direction) continue;
      Json entry{{"key", each.key->name}};
      put_name(entry, "words", each.words);
      entry["origin"] = origin_json(each.at);
      entries.push_back(std::move(entry));
    }
    json[heading.name] = std::move(entries);
  }
  return dump(json);
}

}  // namespace

int diff(const Invocation& typed) {
  if (typed.operands.size() != 2)
    return usage(typed, "\"sbx policy diff\" needs two policies",
                 "for example: sbx policy diff default agent.toml");
  const auto place = look();
  if (!place) return complain(typed, place.error(), exit_status::kCouldNot);
  const auto first = load_operand(typed.operands[0], {}, place->context);
  if (!first) return complain(typed, first.error());
  const auto second = load_operand(typed.operands[1], {}, place->context);
  if (!second) return complain(typed, second.error());
  const std::vector<Difference> list = policy::compare(*first, *second);
  const int printed = print((typed.output.json ? diff_for_programs : diff_for_people)(
      list, typed.operands[0], typed.operands[1]));
  return printed != kDone ? printed : list.empty() ? kDone : kFindings;
}

}  // namespace sbx::cli::policy_verb
