#include <fmt/format.h>

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

std::string read_all(const std::string& path) {
  std::string text;
  std::FILE* file = std::fopen(path.c_str(), "rbe");
  if (file == nullptr) return text;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  (void)std::fclose(file);  // it was only read
  return text;
}

std::string stem(std::string path) {
  path = path.substr(path.rfind('/') + 1);
  return path.substr(0, path.rfind('.'));
}

std::string nodes_text(const std::vector<PackedNode>& nodes) {
  std::string text;
  for (const PackedNode& n : nodes) {
    text += fmt::format("    {{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}},\n", n.name_line,
                        n.name_column, n.line, n.column, n.name, n.name_size, n.text, n.text_size,
                        n.number, n.children, n.kind);
  }
  return text;
}

constexpr const char* kFile = R"(// Made by embed.cpp from policies/*.toml.
#include <array>

#include "policy/packed.hpp"

namespace sbx::policy {{
namespace {{

constexpr auto kNodes = std::to_array<PackedNode>({{
{nodes}}});

constexpr std::string_view kTexts = R"sbx-texts({texts})sbx-texts";

constexpr auto kPolicies = std::to_array<PackedPolicy>({{
{policies}}});

}}  // namespace

std::span<const PackedNode> packed_nodes() {{ return kNodes; }}
std::string_view packed_texts() {{ return kTexts; }}
std::span<const PackedPolicy> packed_policies() {{ return kPolicies; }}

}}  // namespace sbx::policy
)";

int embed(const std::string& output, const std::vector<std::string>& files) {
  Packing packing;
  std::string policies;
  for (const std::string& file : files) {
    const std::string toml = read_all(file);
    const auto document = read_toml(toml);
    if (!document) {
      const SyntaxError& error = document.error();
      fmt::print(stderr, "{}:{}:{}: error: {}\n", file, error.line, error.column, error.message);
      return 1;
    }
    policies += fmt::format("    {{\"{}\", R\"sbx-policy({})sbx-policy\", {}}},\n", stem(file),
                            toml, packing.nodes.size());
    packing.add(*document, nullptr);
  }
  const std::string text =
      fmt::format(kFile, fmt::arg("nodes", nodes_text(packing.nodes)),
                  fmt::arg("texts", packing.texts), fmt::arg("policies", policies));
  std::FILE* out = std::fopen(output.c_str(), "wbe");
  if (out == nullptr) return 1;
  const bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  return std::fclose(out) == 0 && written ? 0 : 1;
}

}  // namespace
}  // namespace sbx::policy

// A step of the build may end by an exception.
int main(int count, char** arguments) {  // NOLINT(bugprone-exception-escape)
  const std::vector<std::string> all(arguments, arguments + count);
  if (count < 3) return 2;
  return sbx::policy::embed(all[1], {all.begin() + 2, all.end()});
}
