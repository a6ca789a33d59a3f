#include "agent/rendering.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <sbx/units.hpp>

#include "base/text.hpp"
#include "base/visible_text.hpp"
#include "record/limit_texts.hpp"
#include "session/json.hpp"

namespace sbx::agent {
namespace {

using client::SavedFile;
using session::member_or;
using session::part;

constexpr std::size_t kMostPictures = 4;
constexpr std::size_t kMostRefusals = 10;
constexpr const char* kFromProgram = "--- from the program ---\n";

/// Without half a character at either side of the cut.
std::string cut(const std::string& text, std::size_t most, const std::string& place = {}) {
  if (text.size() <= most) return text;
  const auto is_inside = [&](std::size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  std::size_t head = most / 2;
  std::size_t tail = text.size() - most / 2;
  while (head > 0 && is_inside(head)) --head;
  while (is_inside(tail)) ++tail;
  return fmt::format("{}\n[… {} bytes or more are left out here{} …]\n{}", text.substr(0, head),
                     tail - head, place.empty() ? "" : "; more of it: " + place, text.substr(tail));
}

/// Something that a program has written.
struct Part {
  const char* name;
  std::string bytes;
  std::string shown{};
};

/// Those that are not empty, ready to be shown.
std::vector<Part> prepared(std::vector<Part> parts) {
  std::erase_if(parts, [](const Part& each) { return each.bytes.empty(); });
  for (Part& each : parts) each.shown = visible_text(each.bytes);
  return parts;
}

/// Each gets the same share of the room.
bool is_cut(const Part& part, const std::vector<Part>& all, std::size_t max_text) {
  return part.shown.size() > max_text / all.size();
}

std::string text_of_parts(const std::vector<Part>& parts, std::size_t max_text,
                          const std::string& saved_as = {}) {
  std::string text;
  for (const Part& each : parts) {
    const std::string place = saved_as.empty() ? "" : fmt::format("{}-{}.txt", saved_as, each.name);
    text += fmt::format("{}:\n{}", each.name, cut(each.shown, max_text / parts.size(), place));
    if (!text.ends_with('\n')) text += '\n';
  }
  return text;
}

/// A stream of a record. Base64 stands for what is not text.
std::string stream_text(const Json& record, const char* name) {
  const Json& stream = part(record, name);
  std::string text = member_or(stream, "text", "");
  if (member_or(stream, "encoding", "") != "base64") return text;
  return lossy_utf8(base64_bytes(text).value_or(""));
}

/// The program chooses the name of an exception, and what stands in the first lines is sbx's own.
std::string name_of_exception(const std::string& name) {
  constexpr std::size_t kLongest = 60;
  const auto is_of_a_name = [](char each) {
    return (each >= '0' && each <= '9') || (each >= 'A' && each <= 'Z') ||
           (each >= 'a' && each <= 'z') || each == '_' || each == '.' || each == ':';
  };
  return name.size() <= kLongest && std::ranges::all_of(name, is_of_a_name) ? name
                                                                            : "of the program";
}

std::string end_of_answer(const Json& answer) {
  if (const Json& error = part(answer, "error"); error.is_object()) {
    const auto line = member_or(error, "line", std::uint64_t{0});
    return "error " + name_of_exception(member_or(error, "name", "")) +
           (line > 0 ? fmt::format(", line {}", line) : "");
  }
  const Json& exit = part(answer, "exit");
  if (exit.is_number_integer()) return fmt::format("exit {}", exit.get<std::int64_t>());
  return member_or(answer, "ok", false) ? "ok" : "error";
}

std::string status_words(const Json& record) {
  const Json& outcome = part(record, "outcome");
  const std::string status = member_or(outcome, "status", "");
  const std::string detail = visible_line(member_or(outcome, "detail", ""));
  const bool is_lost = member_or(record, "state", "") == "lost";
  if (status == "answered") return end_of_answer(part(record, "answer"));
  if (status == "exited") {
    const auto code = member_or(outcome, "exit_code", std::int64_t{0});
    return code == 0 ? "ok" : fmt::format("exit {}", code);
  }
  return fmt::format("{}{}{}", status == "cancelled" ? "cancelled" : "stopped: ",
                     status == "cancelled" ? "" : (detail.empty() ? status : detail),
                     is_lost ? "; variables are lost" : "");
}

std::string first_line(const Json& record, const std::string& tail) {
  const Json& usage = part(record, "usage");
  constexpr double kSecond = 1000;
  std::string line =
      fmt::format("{} · {:.2f} s", status_words(record),
                  static_cast<double>(member_or(usage, "wall_ms", std::uint64_t{0})) / kSecond);
  if (const auto peak = member_or(usage, "memory_peak_bytes", std::uint64_t{0}); peak > 0)
    line += " · " + describe(Bytes{peak});
  return line + tail + "\n";
}

/// The model has no options: its user has.
std::string to_allow(const Json& denial) {
  std::string option;
  for (const Json& each : part(denial, "options"))
    if (each.is_string()) option += " " + visible_line(each.get_ref<const std::string&>());
  const std::string line = visible_line(member_or(denial, "allow_with", ""));
  if (option.empty() && line.empty()) return "";
  return "; to allow it, ask the user to start sbx mcp with" +
         (option.empty() ? " a policy that has " + line
                         : option + (line.empty() ? "" : ", or with " + line + " in its policy"));
}

/// Once for each rule.
std::string refusals(const Json& record) {
  std::string text;
  std::set<std::string> rules;
  for (const Json& each : part(record, "denials")) {
    const std::string rule = visible_line(member_or(each, "rule", ""));
    if (rules.size() == kMostRefusals || !rules.insert(rule).second) continue;
    text += fmt::format("  {}: {}{}\n", visible_line(member_or(each, "what", "")), rule,
                        to_allow(each));
  }
  for (const Json& each : part(part(record, "network"), "failed"))
    if (rules.size() < kMostRefusals && rules.insert(member_or(each, "what", "")).second)
      text += fmt::format("  not reached: {}: {}\n", visible_line(member_or(each, "what", "")),
                          visible_line(member_or(each, "why", "")));
  return text.empty() ? "" : "refused by the policy:\n" + text;
}

/// Limits that refused something; one that ended the program is in the first line.
std::string limits(const Json& record) {
  const std::string end = member_or(part(record, "outcome"), "detail", "");
  std::string text;
  for (const Json& each : part(record, "limits_met")) {
    const std::string name = member_or(each, "limit", "");
    const record::LimitText* const known = record::find_limit(name);
    if (known == nullptr || name == "memory" || end.contains("(limits." + name + ")")) continue;
    const auto value = member_or(each, "value", std::uint64_t{0});
    text += fmt::format(
        "limit reached: limits.{} = {}: {}{}; to allow more, ask the user to start sbx mcp with "
        "{}\n",
        name, record::toml_value(name, value), known->action,
        known->refusal.empty() ? "" : fmt::format(", so {}", known->refusal),
        record::cure_of(*known, value));
  }
  return text;
}

std::string left_running(const Json& record) {
  const Json& left = part(record, "left_running");
  const auto count = member_or(left, "count", std::uint64_t{0});
  if (count == 0) return "";
  const std::string process = visible_line(member_or(left, "process", ""));
  return fmt::format(
      "left running: {}{}; a command ends with all that it has started: run a server by itself, "
      "with wait_s 0\n",
      count == 1 ? "1 process was ended with the command"
                 : fmt::format("{} processes were ended with the command", count),
      process.empty() ? "" : fmt::format(" ({}{})", process, count == 1 ? "" : " and others"));
}

bool is_picture(std::string_view mime) {
  return mime == "image/png" || mime == "image/jpeg";
}

struct Shown {
  std::string text;
  std::vector<Json> pictures;
  std::string notes;  ///< ours
  std::vector<SavedFile> files;
};

/// Forms of a value that are kept as files, with their endings; the others are text.
constexpr std::pair<std::string_view, std::string_view> kKeptForms[] = {
    {"image/png", ".png"},   {"image/jpeg", ".jpg"},    {"image/gif", ".gif"},
    {"image/webp", ".webp"}, {"image/svg+xml", ".svg"}, {"text/html", ".html"}};
constexpr std::size_t kMostFiles = 16;

void show_form(Shown& shown, const std::string& mime, const std::string& value,
               std::size_t& left_out) {
  const auto* const kept = std::ranges::find(kKeptForms, std::string_view(mime),
                                             &std::pair<std::string_view, std::string_view>::first);
  if (kept == std::end(kKeptForms)) return;
  const bool is_text = mime == "text/html" || mime == "image/svg+xml";
  const auto bytes = is_text ? std::optional(value) : base64_bytes(value);
  if (!bytes) return;
  if (shown.files.size() < kMostFiles)
    shown.files.push_back({fmt::format("{}{}", shown.files.size() + 1, kept->second), *bytes});
  if (!is_picture(mime)) return;
  if (bytes->size() > kLargestPicture || shown.pictures.size() == kMostPictures)
    ++left_out;
  else
    shown.pictures.push_back({{"type", "image"}, {"data", base64(*bytes)}, {"mimeType", mime}});
}

Shown show_results(const Json& answer) {
  Shown shown;
  std::size_t left_out = 0;
  for (const Json& result : part(answer, "results")) {
    const Json& data = part(result, "data");
    if (!data.is_object()) continue;
    const std::string text = member_or(data, "text/plain", "");
    if (!text.empty() && text != "None" && text != "undefined") shown.text += text + "\n";
    for (const auto& [mime, value] : data.items())
      if (value.is_string()) show_form(shown, mime, value.get_ref<const std::string&>(), left_out);
  }
  if (left_out > 0)
    shown.notes = fmt::format("pictures left out: {} (at most {} of 1 MiB each are shown)\n",
                              left_out, kMostPictures);
  return shown;
}

std::vector<Part> parts_of(const Json& record, const Shown& shown) {
  const Json& error = part(part(record, "answer"), "error");
  return prepared({{"result", shown.text},
                   {"stdout", stream_text(record, "stdout")},
                   {"stderr", stream_text(record, "stderr")},
                   {"error", error.is_object() ? member_or(error, "traceback", "") : ""}});
}

/// Without what the program has written: an answer has it once.
Json without_output(Json record) {
  for (const char* const name : {"stdout", "stderr"})
    if (const auto stream = record.find(name); stream != record.end() && stream->is_object())
      stream->erase("text");
  if (const auto answer = record.find("answer"); answer != record.end() && answer->is_object()) {
    answer->erase("results");
    answer->erase("error");
  }
  return record;
}

}  // namespace

std::string shown_path(const std::string& path) {
  return "'" + visible_line(path) + "'";
}

std::string below_the_line(const std::string& text) {
  return text.empty() ? "" : kFromProgram + text;
}

std::vector<SavedFile> files_of_record(const Json& record, std::size_t max_text) {
  Shown shown = show_results(part(record, "answer"));
  const std::vector<Part> parts = parts_of(record, shown);
  for (const Part& each : parts)
    if (is_cut(each, parts, max_text))
      shown.files.push_back({std::string(each.name) + ".txt", each.bytes});
  return std::move(shown.files);
}

Json result_of_record(const Json& record, const Telling& telling) {
  const Shown shown = show_results(part(record, "answer"));
  const std::vector<Part> parts = parts_of(record, shown);
  std::string text = telling.note + first_line(record, telling.tail) + refusals(record) +
                     limits(record) + left_running(record) + shown.notes;
  if (!telling.saved_as.empty() && !shown.files.empty()) {
    text += "saved:";
    for (const SavedFile& each : shown.files) text += " " + telling.saved_as + "-" + each.name;
    text += '\n';
  }
  text += below_the_line(text_of_parts(parts, telling.max_text, telling.saved_as));
  Json content = Json::array({{{"type", "text"}, {"text", std::move(text)}}});
  for (const Json& each : shown.pictures) content.push_back(each);
  return {{"content", std::move(content)}, {"_meta", {{"sbx/record", without_output(record)}}}};
}

Json result_of_running(const std::string& line, std::string_view out, std::string_view err,
                       std::size_t max_text) {
  const auto parts = prepared({{"stdout", std::string(out)}, {"stderr", std::string(err)}});
  return result_of_text(line + "\n" + below_the_line(text_of_parts(parts, max_text)));
}

Json result_of_changes(std::size_t count, const std::string& path, std::string_view text,
                       std::size_t max_text) {
  return result_of_text(fmt::format("ok · {} changed in {}\n",
                                    count == 1 ? "1 name is" : fmt::format("{} names are", count),
                                    path.empty() ? "the working directory" : shown_path(path)) +
                        below_the_line(cut(visible_text(text), max_text)));
}

Json result_of_text(const std::string& text) {
  return {{"content", Json::array({{{"type", "text"}, {"text", text}}})}};
}

Json result_of_mistake(const std::string& sentence) {
  Json result = result_of_text(sentence);
  result["isError"] = true;
  return result;
}

}  // namespace sbx::agent
