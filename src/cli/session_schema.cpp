#include "cli/session_schema.hpp"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "base/fields.hpp"
#include "base/json.hpp"
#include "base/json_read.hpp"
#include "cli/session_documents.hpp"
#include "protocol/answers.hpp"

namespace sbx::cli {
namespace {

struct Form {
  std::string description;  ///< names it in the file
  Json schema;
};

/// Both in one document. The members of the second one may all be absent.
Json joined(Json first, const Json& second) {
  first["properties"].update(second["properties"]);
  return first;
}

std::vector<Form> forms() {
  using namespace protocol;
  const Json brought = schema_of<BroughtOutAnswer>();
  return {{"start, show and extend", schema_of<SessionFacts>()},
          {"stats", schema_of<StatsDocument>()},
          {"list", schema_of<SessionList>()},
          {"exec --detach", schema_of<BegunDocument>()},
          {"calls", schema_of<CallsAnswer>()},
          {"contexts", schema_of<ContextsAnswer>()},
          {"logs", schema_of<LogDocument>()},
          {"kill", schema_of<SignalDocument>()},
          {"send", schema_of<SentDocument>()},
          {"interrupt", schema_of<InterruptedDocument>()},
          {"restart", schema_of<RestartedDocument>()},
          {"context", schema_of<ContextDocument>()},
          {"close", schema_of<ClosedDocument>()},
          {"changes and diff", schema_of<ChangesAnswer>()},
          {"apply", schema_of<AppliedDocument>()},
          {"keep", brought},
          {"put", schema_of<PutDocument>()},
          {"get", schema_of<GetDocument>()},
          {"ls", schema_of<ListingDocument>()},
          {"stat", schema_of<StatDocument>()},
          {"mkdir, mv and rm", schema_of<PathDocument>()},
          {"stop", joined(schema_of<StoppedDocument>(), brought)}};
}

const Json& member_of(const Json& object, const char* name) {
  static const Json none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

/// A member that would be "none" is absent.
template <class List>
std::set<std::string> names_in(const List& list) {
  std::set<std::string> words;
  for (const Json& each : list) words.insert(each.is_string() ? each.get<std::string>() : "null");
  words.erase("none");
  return words;
}

class Comparison {
 public:
  void compare(const Json& made, const Json& written, const std::string& place) {
    if (made.empty()) return;  // JSON of any kind
    if (member_of(made, "type") != member_of(written, "type")) return note(place, "another type");
    for (const char* const list : {"enum", "required"})
      if (names_in(member_of(made, list)) != names_in(member_of(written, list)))
        note(place, fmt::format("another \"{}\"", list));
    const Json& members = member_of(made, "properties");
    for (const auto& [name, schema] : members.items()) {
      const Json& other = member_of(member_of(written, "properties"), name.c_str());
      if (other.is_null())
        note(place + "." + name, "it is not there");
      else
        compare(schema, other, place + "." + name);
    }
    for (const auto& [name, schema] : member_of(written, "properties").items())
      if (!members.contains(name)) note(place + "." + name, "no struct has it");
    if (made.contains("items")) compare(made["items"], member_of(written, "items"), place);
  }
  void note(const std::string& place, const std::string& fault) {
    faults_.push_back(place + ": " + fault);
  }
  [[nodiscard]] std::vector<std::string> take() { return std::move(faults_); }

 private:
  std::vector<std::string> faults_;
};

/// With what each document begins with.
Json headed(Json schema) {
  for (const char* const name : {"schema", "sbx"}) {
    schema["properties"][name] = Json::object();
    schema["required"].push_back(name);
  }
  return schema;
}

}  // namespace

std::vector<std::string> faults_of_session_schema(const std::string& text) {
  const Json file = read_json(text);
  std::map<std::string, const Json*> written;
  for (const Json& each : member_of(file, "oneOf"))
    if (const Json& name = member_of(each, "description"); name.is_string())
      written[name.get<std::string>()] = &each;
  Comparison comparison;
  for (Form& form : forms()) {
    const auto found = written.extract(form.description);
    if (found.empty())
      comparison.note(form.description, "the file has no such form");
    else
      comparison.compare(headed(std::move(form.schema)), *found.mapped(), form.description);
  }
  for (const auto& [name, schema] : written) comparison.note(name, "it is compared with no struct");
  return comparison.take();
}

}  // namespace sbx::cli
