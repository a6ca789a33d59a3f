#include "cli/notebook/outputs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "session/json.hpp"

namespace sbx::cli {
namespace {

using session::member_or;
using session::part;

/// Of each stream of a cell: a notebook is for reading. What is beyond was printed, and is counted.
constexpr std::uint64_t kMostKept = std::uint64_t{1} << 20;

/// As Jupyter divides them into lines.
bool is_lines(std::string_view mime) {
  return mime.starts_with("text/") || mime == "image/svg+xml" || mime == "application/javascript";
}

NotebookJson value_of(const std::string& mime, const Json& value) {
  if (holds_json(mime)) return value;
  const std::string text = value.is_string()
                               ? value.get<std::string>()
                               : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return is_lines(mime) ? lines_of(text) : NotebookJson(text);
}

NotebookJson error_output(const std::string& name, const std::string& value, NotebookJson lines) {
  return {{"output_type", "error"},
          {"ename", name},
          {"evalue", value},
          {"traceback", std::move(lines)}};
}

/// A dict, a list or an object, which has its JSON beside its text. A notebook shows the text: its
/// viewers would show a tree instead, which no other program's notebook has.
bool is_container(const protocol::Forms& data) {
  const Json* const plain = data.find("text/plain");
  if (plain == nullptr || !plain->is_string()) return false;
  const std::string& text = plain->get_ref<const std::string&>();
  return text.starts_with('{') || text.starts_with('[');
}

}  // namespace

void NotebookOutputs::clear(bool waits) {
  clears_next_ = waits;
  if (waits) return;
  parts_.clear();
  for (std::uint64_t* const counts : {kept_, left_out_}) std::fill_n(counts, 2, 0);
}

void NotebookOutputs::clear_if_due() {
  if (clears_next_) clear(false);
}

void NotebookOutputs::add(Part part) {
  clear_if_due();
  parts_.push_back(std::move(part));
}

void NotebookOutputs::write(const std::string& name, std::string_view bytes) {
  if (bytes.empty()) return;
  clear_if_due();
  const std::size_t side = name == "stdout" ? 0 : 1;
  const std::size_t kept =
      std::min<std::uint64_t>(bytes.size(), kMostKept - std::min(kMostKept, kept_[side]));
  kept_[side] += kept;
  left_out_[side] += bytes.size() - kept;
  if (kept == 0) return;
  if (parts_.empty() || parts_.back().stream != name) parts_.push_back({.stream = name});
  parts_.back().bytes += bytes.substr(0, kept);
}

void NotebookOutputs::add_place(const std::string& display) {
  add({.display = display});
}

void NotebookOutputs::add_result(const protocol::CellResult& result) {
  NotebookJson data = NotebookJson::object();
  for (const auto& [mime, value] : result.data) data[mime] = value_of(mime, value);
  if (is_container(result.data)) data.erase("application/json");
  if (data.empty()) return;
  const std::string display = result.display_id.value_or("");
  if (result.update.value_or(false)) return update(display, data);
  NotebookJson output{{"output_type", "display_data"},
                      {"data", std::move(data)},
                      {"metadata", NotebookJson::object()}};
  if (result.main) {
    output["output_type"] = "execute_result";
    output["execution_count"] = count_;
  }
  add({.output = std::move(output), .display = display});
}

/// Displays of this name may stand in earlier cells too.
void NotebookOutputs::update(const std::string& display, const NotebookJson& data) {
  for (Part& each : parts_) {
    if (each.display != display) continue;
    if (each.output.is_null())
      each.output = {{"output_type", "display_data"}, {"metadata", NotebookJson::object()}};
    each.output["data"] = data;
  }
  std::erase_if(updates_, [&display](const auto& each) { return each.first == display; });
  updates_.emplace_back(display, data);
}

void NotebookOutputs::add_error(const protocol::CellError& error) {
  NotebookJson lines = NotebookJson::array();
  for (std::string_view line : split_lines(error.traceback)) {
    if (line.ends_with('\n')) line.remove_suffix(1);
    lines.push_back(line);
  }
  add({.output = error_output(error.name, error.value, std::move(lines))});
}

void NotebookOutputs::add_captured(const Json& record) {
  for (const char* const name : {"stdout", "stderr"}) {
    const Json& stream = record[name];
    const Json text = part(stream, "text");
    if (!text.is_string() || text.get_ref<const std::string&>().empty()) continue;
    if (member_or(stream, "encoding", "") == "utf-8")
      write(name, text.get_ref<const std::string&>());
    else
      write(name, fmt::format("[sbx: {} bytes that are not text]\n",
                              member_or(stream, "bytes", std::uint64_t{0})));
  }
}

void NotebookOutputs::add_end(const Json& outcome) {
  const std::string status = member_or(outcome, "status", "");
  const std::string detail = member_or(outcome, "detail", "");
  add({.output = error_output("sbx: " + status, detail,
                              NotebookJson::array({fmt::format("sbx: {}: {}", status, detail)}))});
}

NotebookOutputs::Taken NotebookOutputs::take() {
  for (std::size_t side = 0; side < 2; ++side)
    if (left_out_[side] > 0)
      parts_.push_back(
          {.stream = side == 0 ? "stdout" : "stderr",
           .bytes = fmt::format("\n[sbx: {} more bytes are not kept here]\n", left_out_[side])});
  Taken taken;
  for (Part& part : parts_) {
    if (!part.stream.empty())
      taken.outputs.push_back({{"output_type", "stream"},
                               {"name", part.stream},
                               {"text", lines_of(lossy_utf8(part.bytes))}});
    else if (!part.output.is_null()) {
      if (!part.display.empty()) taken.displays.emplace_back(part.display, taken.outputs.size());
      taken.outputs.push_back(std::move(part.output));
    }
  }
  parts_.clear();
  taken.updates = std::move(updates_);
  return taken;
}

}  // namespace sbx::cli
