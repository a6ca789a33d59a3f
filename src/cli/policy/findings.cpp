#include "cli/policy/findings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "base/text.hpp"
#include "cli/github.hpp"
#include "record/codes.hpp"

namespace sbx::cli::policy_verb {
namespace {

/// The file of a finding, which may be a parent of the file on the command line.
std::string file_of(const Checked& checked, const Error& error) {
  const bool in_file = error.origin && error.origin->line > 0 && !error.origin->file.empty();
  return in_file ? error.origin->file : checked.file;
}

int line_of(const Error& error) {
  return error.origin ? error.origin->line : 0;
}

int column_of(const Error& error) {
  return error.origin ? error.origin->column : 0;
}

Json finding_json(const Checked& checked, const Error& error) {
  Json json{{"code", error.code}};
  put_name(json, "message", error.message);
  if (!error.hint.empty()) put_name(json, "hint", error.hint);
  put_name(json, "file", file_of(checked, error));
  if (line_of(error) > 0) json["line"] = line_of(error);
  if (column_of(error) > 0) json["column"] = column_of(error);
  if (!error.source_line.empty()) put_name(json, "source_line", error.source_line);
  return json;
}

// --- SARIF

/// An RFC 3986 reference: keeps the characters that a path may contain and escapes every other byte
/// as %XX.
std::string uri_of(std::string_view path) {
  constexpr std::string_view kPlain = "/-._~!$&'()*+,;=@";
  std::string uri = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || kPlain.find(c) != std::string_view::npos)
      uri += c;
    else
      uri += fmt::format("%{:02X}", byte);
  }
  return uri;
}

/// The rules that have results, in order of first occurrence.
class Rules {
 public:
  std::size_t index(const std::string& code) {
    const auto known = std::find(codes_.begin(), codes_.end(), code);
    if (known != codes_.end()) return static_cast<std::size_t>(known - codes_.begin());
    codes_.push_back(code);
    Json rule{{"id", code}};
    if (const record::CodeText* text = record::find_code(code)) {
      rule["shortDescription"] = {{"text", text->meaning}};
      if (!text->cure.empty()) rule["help"] = {{"text", text->cure}};
    }
    rule["defaultConfiguration"] = {{"level", "error"}};
    rules_.push_back(std::move(rule));
    return codes_.size() - 1;
  }
  [[nodiscard]] Json take() { return std::move(rules_); }

 private:
  std::vector<std::string> codes_;
  Json rules_ = Json::array();
};

Json location_json(const Checked& checked, const Error& error) {
  const std::string file = file_of(checked, error);
  Json artifact{{"uri", uri_of(file)}};
  if (!file.starts_with('/')) artifact["uriBaseId"] = "%SRCROOT%";
  Json physical{{"artifactLocation", std::move(artifact)}};
  if (line_of(error) > 0) {
    Json region{{"startLine", line_of(error)}};
    if (column_of(error) > 0) region["startColumn"] = column_of(error);
    if (!error.source_line.empty()) region["snippet"] = {{"text", lossy_utf8(error.source_line)}};
    physical["region"] = std::move(region);
  }
  return {{"physicalLocation", std::move(physical)}};
}

Json result_json(const Checked& checked, const Error& error, Rules& rules) {
  std::string message = error.message;
  if (!error.hint.empty()) message += "; " + error.hint;
  Json result{{"ruleId", error.code}, {"ruleIndex", rules.index(error.code)}, {"level", "error"}};
  result["message"] = {{"text", lossy_utf8(message)}};
  result["locations"] = Json::array({location_json(checked, error)});
  return result;
}

}  // namespace

std::string findings_json(const std::vector<Checked>& files) {
  Json json{{"schema", "sbx.check/1"}, {"sbx", SBX_VERSION}};
  Json list = Json::array();
  std::size_t count = 0;
  for (const Checked& checked : files) {
    Json file;
    put_name(file, "file", checked.file);
    file["good"] = checked.findings.empty();
    Json findings = Json::array();
    for (const Error& error : checked.findings) findings.push_back(finding_json(checked, error));
    file["findings"] = std::move(findings);
    if (!checked.warnings.empty()) {
      Json warnings = Json::array();
      for (const std::string& warning : checked.warnings) warnings.push_back(lossy_utf8(warning));
      file["warnings"] = std::move(warnings);
    }
    list.push_back(std::move(file));
    count += checked.findings.size();
  }
  json["files"] = std::move(list);
  json["count"] = count;
  return dump(json);
}

std::string findings_github(const std::vector<Checked>& files) {
  std::string text;
  for (const Checked& checked : files) {
    for (const std::string& warning : checked.warnings)
      text += fmt::format("::warning file={},title=sbx policy::{}\n", github_property(checked.file),
                          github_data(warning));
    for (const Error& error : checked.findings) {
      text += fmt::format("::error file={}", github_property(file_of(checked, error)));
      if (line_of(error) > 0) text += fmt::format(",line={}", line_of(error));
      if (column_of(error) > 0) text += fmt::format(",col={}", column_of(error));
      text += fmt::format(",title={}::{}", github_property("sbx policy: " + error.code),
                          github_data(error.message));
      if (!error.hint.empty()) text += github_data("\n" + error.hint);
      text += '\n';
    }
  }
  return text;
}

std::string findings_sarif(const std::vector<Checked>& files) {
  Rules rules;
  Json results = Json::array();
  for (const Checked& checked : files)
    for (const Error& error : checked.findings)
      results.push_back(result_json(checked, error, rules));
  Json driver{{"name", "sbx"}, {"semanticVersion", SBX_VERSION}};
  driver["rules"] = rules.take();
  Json run;
  run["tool"] = {{"driver", std::move(driver)}};
  run["columnKind"] = "unicodeCodePoints";
  run["results"] = std::move(results);
  Json log{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"}, {"version", "2.1.0"}};
  log["runs"] = Json::array({std::move(run)});
  return pretty(log);
}

}  // namespace sbx::cli::policy_verb
