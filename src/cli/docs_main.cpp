#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/sys.hpp"
#include "cli/app.hpp"
#include "cli/completions/completions.hpp"
#include "cli/docs.hpp"
#include "cli/policy/schema.hpp"
#include "cli/session_schema.hpp"
#include "protocol/schema.hpp"

// sbx-docs write|check TREE: generates the documents of a source tree, or reports those that are
// out of date. sbx-docs list: everything a user can type or read, one kind and name per line, for
// the test that looks each up in pages, policies and tests.
namespace {

using sbx::Result;

constexpr std::size_t kLargestPage = 4U << 20;

struct Document {
  const char* path;
  std::string (*make)() = nullptr;  ///< null: a page with generated regions
};
constexpr Document kDocuments[] = {
    {"man/sbx.1"},
    {"man/sbx-run.1"},
    {"man/sbx-mcp.1"},
    {"man/sbx-changes.1"},
    {"man/sbx-session.1"},
    {"man/sbx.3"},
    {"man/sbx-packet.5"},
    {"man/sbx-policy.5"},
    {"man/sbx-record.5"},
    {"man/sbx-security.7"},
    {"completions/sbx.bash", [] { return std::string(sbx::cli::completion_script("bash")); }},
    {"completions/_sbx", [] { return std::string(sbx::cli::completion_script("zsh")); }},
    {"completions/sbx.fish", [] { return std::string(sbx::cli::completion_script("fish")); }},
    {"schema/sbx.packet.2.json", [] { return sbx::pretty(sbx::protocol::packet_schema()); }},
    {"schema/sbx.policy.1.json", sbx::cli::policy_schema},
};

Result<std::string> made(const Document& document, const std::string& current) {
  return document.make != nullptr ? Result<std::string>(document.make())
                                  : sbx::cli::with_generated_regions(current);
}

/// True if the document is up to date.
bool handle(const Document& document, const std::string& tree, bool write) {
  const std::string path = tree + "/" + document.path;
  const std::string current = sbx::sys::read_file(path, kLargestPage).value_or("");
  const auto text = made(document, current);
  if (!text) {
    fmt::print(stderr, "sbx-docs: error[{}]: {}: {}\n", text.error().code, path,
               text.error().message);
    return false;
  }
  if (*text == current) return true;
  if (!write) {
    fmt::print(
        stderr,
        "sbx-docs: {} is not what the tables say: run \"sbx-docs write\" on the source tree\n",
        path);
    return false;
  }
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return false;
  const bool written = std::fwrite(text->data(), 1, text->size(), file) == text->size();
  return std::fclose(file) == 0 && written;
}

/// A file that is written by hand, and says what the structs say.
bool holds_session_schema(const std::string& tree) {
  const std::string path = tree + "/schema/sbx.session.1.json";
  std::string text = sbx::sys::read_file(path, kLargestPage).value_or("");
  const std::vector<std::string> faults = sbx::cli::faults_of_session_schema(text);
  for (const std::string& each : faults) fmt::print(stderr, "sbx-docs: {}: {}\n", path, each);
  // It can fail.
  const std::size_t at = text.find("\"pid\"");
  if (at != std::string::npos) text.replace(at, 5, "\"pod\"");
  return faults.empty() && !sbx::cli::faults_of_session_schema(text).empty();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "list") {
    fmt::print("{}", sbx::cli::everything_named());
    return 0;
  }
  const std::string_view action = argc == 3 ? argv[1] : "";
  if (action != "write" && action != "check") {
    fmt::print(stderr, "usage: sbx-docs list, or write|check TREE\n");
    return 2;
  }
  bool good = true;
  for (const Document& document : kDocuments)
    good = handle(document, argv[2], action == "write") && good;
  good = holds_session_schema(argv[2]) && good;
  return good ? 0 : 1;
}
