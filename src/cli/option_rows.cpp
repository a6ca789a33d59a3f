#include "cli/option_rows.hpp"

#include <string>
#include <utility>

namespace sbx::cli {

OptionRow of_run(std::string_view name) {
  for (const OptionRow& row : run_options()) {
    const std::string_view names = row.names;
    if (names == name || names.ends_with("," + std::string(name))) return row;
  }
  return {};
}

OptionRow shared(std::string_view name, const char* text) {
  OptionRow row = of_run(name);
  row.group = kOptions;
  if (text != nullptr) row.text = text;
  return row;
}

OptionRow env_of_session(OptionRow row, const char* text) {
  row.value = "NAME=VALUE";
  row.text = text;
  return row;
}

Rows with_usual(Rows rows) {
  rows.push_back(shared("--color"));
  rows.push_back(shared("--help"));
  return rows;
}

Rows rows_of_run(std::initializer_list<const char*> names) {
  Rows list;
  for (const char* name : names) list.push_back(of_run(name));
  return list;
}

OptionRow dies_with_parent(const char* text) {
  return shared("--die-with-parent", text);
}

}  // namespace sbx::cli
