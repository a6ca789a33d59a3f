#include "cli/notebook/notebook.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"

namespace sbx::cli {
namespace {

constexpr int kFormat = 4;
constexpr int kMinor = 5;
/// Writing JSON takes stack for each level.
constexpr int kDeepest = 200;
constexpr std::size_t kLongestId = 64;

std::unexpected<Error> bad(const std::string& shown, const std::string& what) {
  return fail(Error{.kind = ErrorKind::usage,
                    .code = "bad-notebook",
                    .message = fmt::format("\"{}\" is not a notebook that sbx can run: {}",
                                           printable(shown), what),
                    .hint = "--cells takes an .ipynb file of nbformat 4, or a script with # %% "
                            "lines"});
}

/// The level of the deepest value, and where it begins.
struct Depth {
  int levels = 0;
  std::size_t at = 0;
};

Depth depth_of(std::string_view text) {
  Depth deepest;
  int now = 0;
  bool is_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_string) {
      if (c == '\\') ++i;
      if (c == '"') is_string = false;
      continue;
    }
    if (c == '"') is_string = true;
    if (c == ']' || c == '}') --now;
    if (c != '[' && c != '{') continue;
    if (++now > deepest.levels) deepest = {now, i};
  }
  return deepest;
}

std::string place_of(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = std::ranges::count(before, '\n') + 1;
  const auto start = before.rfind('\n');
  const std::size_t column = before.size() - (start == std::string_view::npos ? 0 : start + 1);
  return fmt::format("line {}, column {}", line, std::max<std::size_t>(column, 1));
}

/// Outputs are made anew, and they are most of a large file: they never become values.
Result<NotebookJson> read_notebook_json(std::string_view text, const std::string& shown) {
  if (const Depth depth = depth_of(text); depth.levels > kDeepest)
    return bad(shown, fmt::format("{}: the JSON is deeper than {} levels",
                                  place_of(text, depth.at + 1), kDeepest));
  constexpr int kInCell = 3;
  const NotebookJson::parser_callback_t without_outputs =
      [](int depth, NotebookJson::parse_event_t event, NotebookJson& parsed) {
        return event != NotebookJson::parse_event_t::key || depth != kInCell || parsed != "outputs";
      };
  try {
    return NotebookJson::parse(text, without_outputs);
  } catch (const NotebookJson::parse_error& error) {
    std::string_view why = error.what();
    if (const auto colon = why.rfind(": "); colon != std::string_view::npos)
      why.remove_prefix(colon + 2);
    return bad(shown, fmt::format("{}: {}", place_of(text, error.byte), printable(why)));
  } catch (const NotebookJson::exception& error) {  // a number that is too large
    return bad(shown, printable(error.what()));
  }
}

const NotebookJson* member(const NotebookJson& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

bool is_text(const NotebookJson& value) {
  return value.is_string() || (value.is_array() && std::ranges::all_of(value, [](const auto& line) {
                                 return line.is_string();
                               }));
}

std::string text_of(const NotebookJson& value) {
  if (value.is_string()) return value.get<std::string>();
  std::string text;
  for (const NotebookJson& line : value) text += line.get_ref<const std::string&>();
  return text;
}

bool is_attachments(const NotebookJson& value) {
  return value.is_object() && std::ranges::all_of(value, [](const NotebookJson& file) {
           if (!file.is_object()) return false;
           const auto& forms = file.get_ref<const NotebookJson::object_t&>();
           return std::ranges::all_of(forms, [](const auto& form) {
             return holds_json(form.first) || is_text(form.second);
           });
         });
}

bool is_name(const NotebookJson& value) {
  return value.is_string() && !value.get_ref<const std::string&>().empty();
}

bool is_scrolled(const NotebookJson& value) {
  return value.is_boolean() || value == "auto";
}

bool is_mode(const NotebookJson& value) {
  return value.is_string() || value.is_object();
}

/// A member that the format gives a type.
struct Typed {
  const char* key;
  bool (*is_right)(const NotebookJson& value);
  const char* expected;
};

constexpr auto kIsString = [](const NotebookJson& value) { return value.is_string(); };
constexpr auto kIsObject = [](const NotebookJson& value) { return value.is_object(); };
constexpr auto kIsArray = [](const NotebookJson& value) { return value.is_array(); };
constexpr auto kIsBool = [](const NotebookJson& value) { return value.is_boolean(); };

constexpr Typed kCellMetadata[] = {
    {"tags", is_tags, "a list of different strings without commas"},
    {"name", is_name, "a string that is not empty"},
    {"collapsed", kIsBool, "true or false"},
    {"scrolled", is_scrolled, "true, false or \"auto\""},
    {"jupyter", kIsObject, "an object"},
    {"format", kIsString, "a string"},
};
constexpr Typed kMetadata[] = {
    {"kernelspec", kIsObject, "an object"},
    {"language_info", kIsObject, "an object"},
    {"title", kIsString, "a string"},
    {"authors", kIsArray, "a list"},
};
constexpr Typed kKernelspec[] = {
    {"name", kIsString, "a string"},
    {"display_name", kIsString, "a string"},
    {"language", kIsString, "a string"},
};
constexpr Typed kLanguageInfo[] = {
    {"name", kIsString, "a string"},
    {"codemirror_mode", is_mode, "a string or an object"},
    {"file_extension", kIsString, "a string"},
    {"mimetype", kIsString, "a string"},
    {"pygments_lexer", kIsString, "a string"},
};

struct Names {
  const char* language;
  const char* kernel;
  const char* display;
  const char* extension;
  const char* mime;
};
constexpr Names kNames[] = {
    {"python", "python3", "Python 3", ".py", "text/x-python"},
    {"javascript", "javascript", "JavaScript", ".js", "application/javascript"},
    {"r", "ir", "R", ".r", "text/x-r-source"},
    {"bash", "bash", "Bash", ".sh", "text/x-sh"},
};

class Reader {
 public:
  explicit Reader(const std::string& shown) : shown_(shown) {}

  Result<Notebook> read(NotebookJson json) {
    SBX_TRY(check_format(json));
    Notebook notebook;
    if (const auto* const metadata = member(json, "metadata"))
      notebook.metadata = SBX_TRY(object(*metadata, "metadata"));
    SBX_TRY(check_metadata(notebook.metadata));
    notebook.metadata.erase("orig_nbformat");  // "should never be written to a file"
    notebook.language = language_of(notebook.metadata);
    const auto* const cells = member(json, "cells");
    if (cells == nullptr || !cells->is_array()) return bad(shown_, "\"cells\" is not a list");
    for (const NotebookJson& each : *cells) notebook.cells.push_back(SBX_TRY(cell(each)));
    name_cells(notebook.cells);
    return notebook;
  }

 private:
  Status check_format(const NotebookJson& json) const {
    if (!json.is_object()) return bad(shown_, "it is not a JSON object");
    const auto* const major = member(json, "nbformat");
    if (major == nullptr || !major->is_number_integer())
      return bad(shown_, "\"nbformat\" is not a whole number");
    const auto format = major->get<std::int64_t>();
    if (format == kFormat) return {};
    if (format > kFormat || format < 1)
      return bad(shown_, fmt::format("its format is nbformat {}, not {}", format, kFormat));
    return fail(Error{.kind = ErrorKind::usage,
                      .code = "old-notebook",
                      .message = fmt::format("\"{}\" is a notebook of nbformat {}, not {}",
                                             printable(shown_), format, kFormat),
                      .hint = "convert it: jupyter nbconvert --to notebook --nbformat 4 FILE"});
  }

  Status check(const NotebookJson& object, std::span<const Typed> table,
               const std::string& place) const {
    for (const Typed& each : table) {
      const auto* const value = member(object, each.key);
      if (value != nullptr && !each.is_right(*value))
        return bad(shown_, fmt::format("{}.{} is not {}", place, each.key, each.expected));
    }
    return {};
  }

  Status check_metadata(const NotebookJson& metadata) const {
    SBX_TRY(check(metadata, kMetadata, "metadata"));
    if (const auto* const kernel = member(metadata, "kernelspec"))
      SBX_TRY(check(*kernel, kKernelspec, "metadata.kernelspec"));
    if (const auto* const language = member(metadata, "language_info"))
      SBX_TRY(check(*language, kLanguageInfo, "metadata.language_info"));
    return {};
  }

  Result<NotebookJson> object(const NotebookJson& value, const std::string& place) const {
    if (value.is_object()) return value;
    return bad(shown_, place + " is not an object");
  }

  static std::string language_of(const NotebookJson& metadata) {
    for (const auto& [part, key] : {std::pair("kernelspec", "language"), {"language_info", "name"}})
      if (const auto* const object = member(metadata, part))
        if (const auto* const name = member(*object, key)) return name->get<std::string>();
    // Kernels have names of their users' choice; those that every Jupyter has tell the language.
    if (const auto* const kernel = member(metadata, "kernelspec"))
      if (const auto* const name = member(*kernel, "name"))
        for (const Names& each : kNames)
          if (*name == each.kernel) return each.language;
    return {};
  }

  Result<NotebookCell::Kind> kind_of(const NotebookJson& json) const {
    const auto* const type = member(json, "cell_type");
    if (type != nullptr && *type == "code") return NotebookCell::Kind::code;
    if (type != nullptr && *type == "markdown") return NotebookCell::Kind::markdown;
    if (type != nullptr && *type == "raw") return NotebookCell::Kind::raw;
    return bad(shown_, place() + ": \"cell_type\" is not \"code\", \"markdown\" or \"raw\"");
  }

  [[nodiscard]] std::string place() const { return fmt::format("cell {}", number_); }

  Result<NotebookCell> cell(const NotebookJson& json) {
    ++number_;
    if (!json.is_object()) return bad(shown_, place() + " is not an object");
    NotebookCell cell{.kind = SBX_TRY(kind_of(json)), .number = number_};
    const auto* const source = member(json, "source");
    if (source == nullptr || !is_text(*source))
      return bad(shown_, place() + ": \"source\" is not a string or a list of strings");
    cell.source = text_of(*source);
    if (const auto* const metadata = member(json, "metadata"))
      cell.metadata = SBX_TRY(object(*metadata, place() + ": \"metadata\""));
    SBX_TRY(check(cell.metadata, kCellMetadata, place() + ": metadata"));
    cell.metadata.erase("execution");  // times of an earlier run
    cell.heed_tags();
    if (const auto* const id = member(json, "id"); id != nullptr && id->is_string())
      cell.id = id->get<std::string>();
    const auto* const attachments = member(json, "attachments");
    if (attachments == nullptr || cell.kind == NotebookCell::Kind::code) return cell;
    if (!is_attachments(*attachments))
      return bad(shown_, place() + ": \"attachments\" are not files with their MIME types");
    cell.attachments = *attachments;
    return cell;
  }

  static bool is_id(const std::string& id) {
    return !id.empty() && id.size() <= kLongestId && std::ranges::all_of(id, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '-' || c == '_';
    });
  }

  /// Before nbformat 4.5 cells have none. Names that are made are the same in each run.
  static void name_cells(std::vector<NotebookCell>& cells) {
    std::set<std::string> taken;
    for (NotebookCell& each : cells)
      if (!is_id(each.id) || !taken.insert(each.id).second) each.id.clear();
    for (NotebookCell& each : cells) {
      if (!each.id.empty()) continue;
      each.id = fmt::format("cell-{}", each.number);
      while (!taken.insert(each.id).second) each.id += "-a";
    }
  }

  const std::string& shown_;
  std::size_t number_ = 0;
};

const char* kind_name(NotebookCell::Kind kind) {
  switch (kind) {
    case NotebookCell::Kind::code:
      return "code";
    case NotebookCell::Kind::markdown:
      return "markdown";
    case NotebookCell::Kind::raw:
      return "raw";
  }
  return "raw";
}

void fill(NotebookJson& object, const char* key, const char* value) {
  if (!object.contains(key)) object[key] = value;
}

}  // namespace

void NotebookCell::heed_tags() {
  const auto* const tags = member(metadata, "tags");
  if (tags == nullptr) return;
  constexpr std::pair<const char*, bool NotebookCell::*> kTags[] = {
      {"raises-exception", &NotebookCell::may_raise},
      {"skip-execution", &NotebookCell::is_skipped},
      {"parameters", &NotebookCell::has_parameters},
      {"injected-parameters", &NotebookCell::has_given_parameters}};
  for (const auto& [tag, member_of_cell] : kTags)
    this->*member_of_cell = std::ranges::find(*tags, tag) != tags->end();
}

std::string free_cell_id(const std::vector<NotebookCell>& cells, std::string wanted) {
  while (std::ranges::find(cells, wanted, &NotebookCell::id) != cells.end()) wanted += "-a";
  return wanted;
}

bool NotebookCell::runs() const {
  return kind == Kind::code && !is_skipped &&
         source.find_first_not_of(" \t\r\n\f\v") != std::string::npos;
}

Result<Notebook> parse_notebook(std::string_view text, const std::string& shown) {
  return Reader(shown).read(SBX_TRY(read_notebook_json(text, shown)));
}

void name_language(Notebook& notebook, const std::string& language) {
  for (const Names& each : kNames) {
    if (language != each.language) continue;
    NotebookJson& kernel = notebook.metadata["kernelspec"];
    fill(kernel, "name", each.kernel);
    fill(kernel, "display_name", each.display);
    fill(kernel, "language", each.language);
    NotebookJson& info = notebook.metadata["language_info"];
    const bool is_new = info.is_null();
    fill(info, "name", each.language);
    if (!is_new) return;
    info["file_extension"] = each.extension;
    info["mimetype"] = each.mime;
    return;
  }
}

bool is_tags(const NotebookJson& value) {
  if (!value.is_array()) return false;
  std::set<std::string> seen;
  return std::ranges::all_of(value, [&seen](const NotebookJson& tag) {
    return tag.is_string() && !tag.get_ref<const std::string&>().empty() &&
           tag.get_ref<const std::string&>().find(',') == std::string::npos &&
           seen.insert(tag.get<std::string>()).second;
  });
}

bool holds_json(std::string_view mime) {
  return mime == "application/json" ||
         (mime.starts_with("application/") && mime.ends_with("+json"));
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::size_t size = end == std::string_view::npos ? text.size() : end + 1;
    lines.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

NotebookJson lines_of(std::string_view text) {
  return split_lines(text);
}

std::string notebook_text(const Notebook& notebook) {
  NotebookJson cells = NotebookJson::array();
  for (const NotebookCell& each : notebook.cells) {
    NotebookJson cell{{"cell_type", kind_name(each.kind)},
                      {"id", each.id},
                      {"metadata", each.metadata},
                      {"source", lines_of(each.source)}};
    if (!each.attachments.is_null()) cell["attachments"] = each.attachments;
    if (each.kind == NotebookCell::Kind::code) {
      cell["outputs"] = each.outputs;
      cell["execution_count"] = each.count ? NotebookJson(*each.count) : NotebookJson(nullptr);
    }
    cells.push_back(std::move(cell));
  }
  const NotebookJson json{{"cells", std::move(cells)},
                          {"metadata", notebook.metadata},
                          {"nbformat", kFormat},
                          {"nbformat_minor", kMinor}};
  return json.dump(1, ' ', false, NotebookJson::error_handler_t::replace) + "\n";
}

}  // namespace sbx::cli
