#include "policy/config.hpp"

#include "policy/syntax.hpp"

namespace sbx::policy {
namespace {

std::unexpected<Error> wrong(std::string code, std::string message, std::string_view file, int line,
                             int column) {
  return fail(Error{
      .kind = ErrorKind::policy,
      .code = std::move(code),
      .message = std::move(message),
      .origin =
          Origin{.file = std::string(file), .line = line, .column = column, .layer = Layer::file},
      .hint = "config.toml has the keys policy = \"NAME\" and record = \"keep\""});
}

}  // namespace

Result<Config> parse_config(std::string_view text, std::string_view file_name) {
  const auto root = read_toml(text);
  if (!root) {
    const SyntaxError& error = root.error();
    return wrong(error.code, error.message, file_name, error.line, error.column);
  }
  Config config;
  for (const Member& member : *root->as<Node::Table>()) {
    if (member.name != "policy" && member.name != "record")
      return wrong("unknown-key", "unknown key \"" + member.name + "\"", file_name, member.line,
                   member.column);
    const auto* value = member.value.as<std::string>();
    if (value == nullptr)
      return wrong("wrong-type", member.name + " must be a string", file_name, member.value.line,
                   member.value.column);
    if (member.name == "policy") {
      config.policy = *value;
      continue;
    }
    if (*value != "keep" && *value != "drop")
      return wrong("unknown-word", "record is \"keep\" or \"drop\"", file_name, member.value.line,
                   member.value.column);
    config.keep_record = *value == "keep";
  }
  return config;
}

}  // namespace sbx::policy
