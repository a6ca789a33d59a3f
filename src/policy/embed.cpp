#include <bit>
#include <cstdio>
#include <string>
#include <vector>

#include "policy/packed.hpp"

/// Runs while sbx is built: writes the built-in policies as a .cpp (packed.hpp). embed OUTPUT
/// NAME.toml...
namespace sbx::policy {
namespace {

struct Packing {
  std::vector<PackedNode> nodes;
  std::string texts;

  std::uint32_t add_text(const std::string& text) {
    const auto known = texts.find(text);
    if (known != std::string::npos) return static_cast<std::uint32_t>(known);
    texts += text;
    return static_cast<std::uint32_t>(texts.size() - text.size());
  }

  void add(const Node& node, const Member* member) {
    PackedNode packed{.line = static_cast<std::uint16_t>(node.line),
                      .column = static_cast<std::uint16_t>(node.column),
                      .kind = static_cast<std::uint8_t>(node.value.index())};
    if (member != nullptr) {
      packed.name_line = static_cast<std::uint16_t>(member->line);
      packed.name_column = static_cast<std::uint16_t>(member->column);
      packed.name = add_text(member->name);
      packed.name_size = static_cast<std::uint32_t>(member->name.size());
    }
    if (const auto* boolean = node.as<bool>()) packed.number = *boolean ? 1 : 0;
    if (const auto* integer = node.as<std::int64_t>()) packed.number = *integer;
    if (const auto* number = node.as<double>())
      packed.number = std::bit_cast<std::int64_t>(*number);
    if (const auto* text = node.as<std::string>()) {
      packed.text = add_text(*text);
      packed.text_size = static_cast<std::uint32_t>(text->size());
    }
    const auto* list = node.as<Node::List>();
    const auto* table = node.as<Node::Table>();
    if (list != nullptr) packed.children = static_cast<std::uint16_t>(list->size());
    if (table != nullptr) packed.children = static_cast<std::uint16_t>(table->size());
    nodes.push_back(packed);
    if (list != nullptr)
      for (const Node& item : *list) add(item, nullptr);
    if (table != nullptr)
      for (const Member& inner : *table) add(inner.value, &inner);
  }
};

std::string read_all(const char* path) {
  std::string text;
  std::FILE* file = std::fopen(path, "rbe");
  if (file == nullptr) return text;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  (void)std::fclose(file);  // it was only read
  return text;
}

std::string stem(std::string path) {
  path = path.substr(path.rfind('/') + 1);
  return path.substr(0, path.rfind('.'));
}

void write_nodes(std::FILE* out, const Packing& packing) {
  std::fputs("constexpr auto kNodes = std::to_array<PackedNode>({\n", out);
  for (const PackedNode& n : packing.nodes) {
    std::fprintf(out, "    {%u, %u, %u, %u, %u, %u, %u, %u, %lld, %u, %u},\n", n.name_line,
                 n.name_column, n.line, n.column, n.name, n.name_size, n.text, n.text_size,
                 static_cast<long long>(n.number), n.children, n.kind);
  }
  std::fputs("});\n\n", out);
}

int embed(int count, char** arguments) {
  Packing packing;
  std::string policies;
  for (int i = 2; i < count; ++i) {
    const std::string toml = read_all(arguments[i]);
    const auto document = read_toml(toml);
    if (!document) {
      const SyntaxError& error = document.error();
      std::fprintf(stderr, "%s:%d:%d: error: %s\n", arguments[i], error.line, error.column,
                   error.message.c_str());
      return 1;
    }
    policies += "    {\"" + stem(arguments[i]) + "\", R\"sbx-policy(" + toml + ")sbx-policy\", " +
                std::to_string(packing.nodes.size()) + "},\n";
    packing.add(*document, nullptr);
  }
  std::FILE* out = std::fopen(arguments[1], "wbe");
  if (out == nullptr) return 1;
  std::fputs(
      "// Made by embed.cpp from policies/*.toml.\n#include <array>\n\n#include "
      "\"policy/packed.hpp\"\n\n"
      "namespace sbx::policy {\nnamespace {\n\n",
      out);
  write_nodes(out, packing);
  std::fprintf(out, "constexpr std::string_view kTexts = R\"sbx-texts(%s)sbx-texts\";\n\n",
               packing.texts.c_str());
  std::fprintf(out, "constexpr auto kPolicies = std::to_array<PackedPolicy>({\n%s});\n\n",
               policies.c_str());
  std::fputs(
      "}  // namespace\n\nstd::span<const PackedNode> packed_nodes() { return kNodes; }\n"
      "std::string_view packed_texts() { return kTexts; }\n"
      "std::span<const PackedPolicy> packed_policies() { return kPolicies; }\n\n}  // namespace "
      "sbx::policy\n",
      out);
  return std::fclose(out) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace sbx::policy

int main(int count, char** arguments) {
  if (count < 3) return 2;
  return sbx::policy::embed(count, arguments);
}
