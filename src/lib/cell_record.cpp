#include "lib/cell_record.hpp"

#include <utility>

#include "lib/fields.hpp"

namespace sbx::lib {
namespace {

std::map<std::string, std::string> forms_of(const Json& value) {
  std::map<std::string, std::string> forms;
  const Json& data = part(value, "data");
  if (!data.is_object()) return forms;
  for (const auto& [type, text] : data.items())
    forms[type] = text.is_string() ? text.get<std::string>() : text.dump();
  return forms;
}

}  // namespace

CellResult cell_result(std::string_view record) {
  CellResult result;
  const Json json = Json::parse(record, nullptr, false);
  if (!json.is_object() || plain(json, "schema") != "sbx.cell/1") return result;
  const Json& outcome = part(json, "outcome");
  result.success = flag(outcome, "success");
  result.status = plain(outcome, "status");
  result.state = plain(json, "state");
  result.out = stream_of(part(json, "stdout"));
  result.err = stream_of(part(json, "stderr"));
  const Json& answer = part(json, "answer");
  for (const Json& each : part(answer, "results")) result.values.push_back(forms_of(each));
  if (const Json& error = part(answer, "error"); error.is_object())
    result.raised =
        CellError{plain(error, "name"), plain(error, "value"), plain(error, "traceback")};
  if (result.status == "setup-failed")
    result.error = Error{.kind = ErrorKind::setup,
                         .code = plain(outcome, "code"),
                         .message = plain(outcome, "detail"),
                         .hint = plain(outcome, "hint")};
  return result;
}

std::string session_name(std::string_view json) {
  return plain(Json::parse(json, nullptr, false), "name");
}

}  // namespace sbx::lib
