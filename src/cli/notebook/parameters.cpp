#include "cli/notebook/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/letters.hpp"
#include "base/text.hpp"
#include "cli/usage.hpp"

namespace sbx::cli {
namespace {

/// How a language writes values.
struct Syntax {
  const char* language;
  const char* assignment;  ///< of {0} and {1}
  const char* null;
  const char* yes;
  const char* no;
  std::pair<const char*, const char*> object;
  std::pair<const char*, const char*> list;
  const char* after_key;
};
constexpr Syntax kSyntaxes[] = {
    {"python", "{} = {}\n", "None", "True", "False", {"{", "}"}, {"[", "]"}, ": "},
    {"javascript", "{} = {};\n", "null", "true", "false", {"{", "}"}, {"[", "]"}, ": "},
    {"r", "{} <- {}\n", "NULL", "TRUE", "FALSE", {"list(", ")"}, {"list(", ")"}, " = "},
};

constexpr std::array<std::string_view, 3> kKeywords = {"var ", "let ", "const "};

/// Names that a language keeps for itself: an assignment to one is an error of its syntax, or has
/// no effect. bash has such variables, and no such words.
struct ReservedNames {
  std::string_view language;
  std::string_view words;  ///< each between two blanks
};
constexpr ReservedNames kReservedNames[] = {
    {"python",
     " False None True __debug__ and as assert async await break class continue def del elif else "
     "except finally for from global if import in is lambda nonlocal not or pass raise return try "
     "while with yield "},
    {"javascript",
     " Infinity NaN await break case catch class const continue debugger default delete do else "
     "enum export extends false finally for function if import in instanceof let new null return "
     "super switch this throw true try typeof undefined var void while with yield "},
    {"r",
     " FALSE Inf NA NA_character_ NA_complex_ NA_integer_ NA_real_ NULL NaN TRUE ... break else "
     "for function if in next repeat while "},
    {"bash", " BASHOPTS BASH_VERSINFO EUID PPID SHELLOPTS UID "},
};

bool is_reserved(std::string_view language, const std::string& name) {
  const auto* const own = std::ranges::find(kReservedNames, language, &ReservedNames::language);
  if (own == std::end(kReservedNames)) return false;
  const bool is_argument = name.size() > 2 && name.starts_with("..") &&
                           name.find_first_not_of("0123456789", 2) == std::string::npos;
  return own->words.contains(" " + name + " ") || (language == "r" && is_argument);
}

/// --parameter takes the letters of all languages: R has another order of them, and the others
/// have no point.
bool has_form_of_name(std::string_view language, const std::string& name) {
  if (language != "r") return !name.contains('.');
  const bool is_number = name.size() > 1 && name[0] == '.' && is_digit(name[1]);
  return name.front() != '_' && !is_number;
}

/// JSON's form of a string, which Python, JavaScript and R read too.
std::string json_text(const std::string& text) {
  return NotebookJson(text).dump(-1, ' ', false, NotebookJson::error_handler_t::replace);
}

std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

/// Writes a JSON text as a value of a language, part by part: numbers keep the digits that were
/// typed.
class ValueWriter : public nlohmann::json_sax<NotebookJson> {
 public:
  explicit ValueWriter(const Syntax& syntax) : syntax_(syntax) {}

  [[nodiscard]] std::string& text() { return text_; }
  [[nodiscard]] bool has_nul() const { return has_nul_; }

  bool null() override { return put(syntax_.null); }
  bool boolean(bool value) override { return put(value ? syntax_.yes : syntax_.no); }
  bool number_integer(number_integer_t value) override { return put(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return put(std::to_string(value)); }
  bool number_float(number_float_t /*value*/, const string_t& digits) override {
    return put(digits);
  }
  bool string(string_t& value) override {
    has_nul_ |= value.contains('\0');
    return put(json_text(value));
  }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return open(syntax_.object.first); }
  bool key(string_t& name) override {
    has_nul_ |= name.contains('\0');
    put(json_text(name) + syntax_.after_key);
    needs_comma_ = false;
    return true;
  }
  bool end_object() override { return close(syntax_.object.second); }
  bool start_array(std::size_t /*size*/) override { return open(syntax_.list.first); }
  bool end_array() override { return close(syntax_.list.second); }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

 private:
  bool put(const std::string& text) {
    if (needs_comma_) text_ += ", ";
    text_ += text;
    needs_comma_ = true;
    return true;
  }
  bool open(const char* mark) {
    put(mark);
    needs_comma_ = false;
    return true;
  }
  bool close(const char* mark) {
    text_ += mark;
    needs_comma_ = true;
    return true;
  }

  const Syntax& syntax_;
  std::string text_;
  bool needs_comma_ = false;
  bool has_nul_ = false;
};

std::unexpected<Error> bad_parameter(const std::string& message) {
  return usage("bad-value", message, "for example --parameter rows=100");
}

/// bash has texts alone: a JSON string is its text, and any other value is its JSON.
std::string bash_line(const std::string& name, const std::string& value) {
  const auto json = NotebookJson::parse(value, nullptr, /*allow_exceptions=*/false);
  return fmt::format("{}={}\n", name,
                     shell_quoted(json.is_string() ? json.get<std::string>() : value));
}

bool is_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}

/// Where the name stands as a word of its own, from `at` on; npos: nowhere.
std::size_t find_name(std::string_view text, const std::string& name, std::size_t at = 0) {
  for (at = text.find(name, at); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const auto end = at + name.size();
    if ((at == 0 || !is_of_name(text[at - 1])) && (end == text.size() || !is_of_name(text[end])))
      break;
  }
  return at;
}

/// V8 lets a cell declare a name again with the same keyword alone: the last one before the name in
/// the cell that has its default.
std::string_view keyword_of(std::string_view defaults, const std::string& name) {
  const std::string_view before = defaults.substr(0, find_name(defaults, name));
  if (before.size() == defaults.size()) return kKeywords[0];
  const auto begin = [before](std::string_view word) { return before.rfind(word) + 1; };  // 0: none
  const auto last = std::ranges::max(kKeywords, {}, begin);
  return begin(last) > 0 ? last : kKeywords[0];
}

Result<std::string> line_for(const std::string& language, const std::string& name,
                             const std::string& value, std::string_view defaults) {
  if (!has_form_of_name(language, name))
    return bad_parameter(
        fmt::format("--parameter: \"{}\" is not the name of a variable in {}", name, language));
  if (is_reserved(language, name))
    return usage("bad-value",
                 fmt::format("--parameter: {} keeps the name \"{}\" for itself", language, name),
                 "give the variable another name, in the notebook too");
  const auto* const syntax = std::ranges::find(kSyntaxes, language, &Syntax::language);
  const bool is_text = syntax == std::end(kSyntaxes);
  ValueWriter writer(is_text ? kSyntaxes[0] : *syntax);
  const bool is_json = NotebookJson::sax_parse(value, &writer);
  if (is_json && writer.has_nul() && (is_text || language == "r"))
    return bad_parameter(
        fmt::format("--parameter {}: texts of {} have no NUL character", name, language));
  if (is_text) return bash_line(name, value);
  std::string line = fmt::format(fmt::runtime(syntax->assignment), name,
                                 is_json ? writer.text() : json_text(value));
  if (language == "javascript") line.insert(0, keyword_of(defaults, name));
  return line;
}

}  // namespace

Result<ParametersSet> set_parameters(
    Notebook& notebook, const std::string& language,
    const std::vector<std::pair<std::string, std::string>>& parameters) {
  auto& cells = notebook.cells;
  const auto earlier = std::ranges::find(cells, true, &NotebookCell::has_given_parameters);
  const auto tagged = std::ranges::find(cells, true, &NotebookCell::has_parameters);
  const std::string_view defaults = tagged == cells.end() ? std::string_view() : tagged->source;
  ParametersSet set{.has_place = earlier != cells.end() || tagged != cells.end()};
  NotebookCell given;
  given.source = language == "javascript" ? "// Parameters\n" : "# Parameters\n";
  for (const auto& [name, value] : parameters) {
    given.source += SBX_TRY(line_for(language, name, value, defaults));
    if (tagged != cells.end() && find_name(defaults, name) == defaults.npos)
      set.unknown.push_back(name);
  }
  given.source.pop_back();
  given.metadata["tags"] = {"injected-parameters"};
  given.id = free_cell_id(cells, "injected-parameters");

  if (earlier != cells.end()) {
    given.id = earlier->id;
    *earlier = std::move(given);
  } else {
    cells.insert(tagged == cells.end() ? cells.begin() : tagged + 1, std::move(given));
  }
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i].number = i + 1;
  return set;
}

}  // namespace sbx::cli
