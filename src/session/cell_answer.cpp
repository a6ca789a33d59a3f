#include "session/cell_answer.hpp"

#include <algorithm>

#include "base/obstacle.hpp"
#include "base/text.hpp"

namespace sbx::session {
namespace {

constexpr std::size_t kMostNamed = 1000;  ///< values left out of one cell's answer
constexpr std::size_t kMostForms = 100;   ///< of one value
constexpr std::size_t kLongestMime = 200;
constexpr std::size_t kLongestDisplay = 200;  ///< the name of a display
constexpr std::size_t kMostErrors = 100;      ///< that are told of one cell; a driver reports one
constexpr std::uint64_t kMostErrno = 4096;    ///< what the kernel says is below
constexpr std::size_t kLongestText = std::size_t{512} << 10;  ///< of an error's parts
/// What a result or a value without content takes here all the same.
constexpr std::uint64_t kOfResult = 100;
constexpr std::uint64_t kOfForm = 100;
constexpr std::uint64_t kOfNode = 16;  ///< each part of a JSON value

const Json* member(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::string bounded_text(const Json& object, const char* key) {
  const Json* const found = member(object, key);
  if (found == nullptr || !found->is_string()) return {};
  std::string text = found->get<std::string>();
  if (text.size() > kLongestText) text = lossy_utf8(std::string_view(text).substr(0, kLongestText));
  return text;
}

std::string display_of(const Json& message) {
  std::string name = bounded_text(message, "display");
  return name.size() > kLongestDisplay ? std::string() : name;
}

std::uint64_t number_of(const Json& object, const char* key) {
  const Json* const found = member(object, key);
  return found != nullptr && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

std::uint64_t nodes_in(const Json& value) {
  std::uint64_t count = 1;
  if (value.is_structured())
    for (const Json& each : value) count += nodes_in(each);
  return count;
}

std::uint64_t size_of(const Json& value) {
  return value.is_string() ? value.get_ref<const std::string&>().size() : value.dump().size();
}

/// What a form of a value takes besides its content.
std::uint64_t beside(const std::string& mime, const Json& value) {
  return kOfForm + mime.size() + (value.is_structured() ? kOfNode * nodes_in(value) : 0);
}

bool holds_json(std::string_view mime) {
  return mime == "application/json" || mime.ends_with("+json");
}

}  // namespace

CellAnswer::Said CellAnswer::take(const Json& message) {
  last_.reset();
  if (done_ || bounded_text(message, "nonce") != nonce_) return Said::other;
  const std::string event = bounded_text(message, "event");
  if (event == "result") return take_result(message);
  if (event == "clear") return take_clear(message);
  if (event == "place") return take_place(message);
  if (event == "error") return take_error(message);
  if (event == "done") return take_done(message);
  return Said::other;
}

void CellAnswer::leave_out(std::vector<protocol::LeftOutForm>& names, const std::string& mime,
                           std::uint64_t bytes) {
  if (named_ >= kMostNamed || mime.size() > kLongestMime) {
    ++unnamed_;
    return;
  }
  ++named_;
  names.push_back({.mime = mime, .bytes = bytes});
}

CellAnswer::Said CellAnswer::take_result(const Json& message) {
  const Json* const data = member(message, "data");
  const Json* const main = member(message, "main");
  if (data == nullptr || !data->is_object() || data->size() > kMostForms || main == nullptr ||
      !main->is_boolean())
    return Said::garbled;
  protocol::Forms kept;
  std::vector<protocol::LeftOutForm> left_out;
  for (const auto& [mime, value] : data->items()) {
    if (mime.size() > kLongestMime || (!value.is_string() && !holds_json(mime)))
      return Said::garbled;
    const std::uint64_t size = size_of(value);
    const std::uint64_t taken = size + beside(mime, value);
    if (taken > left_) {
      leave_out(left_out, mime, size);
      continue;
    }
    left_ -= taken;
    kept.emplace_back(mime, value);
  }
  if (const Json* const more = member(message, "left_out"); more != nullptr && more->is_array())
    for (const Json& each : *more)
      if (each.is_object())
        leave_out(left_out, bounded_text(each, "mime"), number_of(each, "bytes"));
  if (left_ < kOfResult || (kept.empty() && left_out.empty())) {
    unnamed_ += kept.size();
    return Said::result;
  }
  left_ -= kOfResult;
  protocol::CellResult result{.main = main->get<bool>(), .data = std::move(kept)};
  if (!left_out.empty()) result.left_out = std::move(left_out);
  keep(message, std::move(result));
  return Said::result;
}

/// Where a display of this cell has the same name, an update takes its place: so a notebook shows
/// it.
void CellAnswer::keep(const Json& message, protocol::CellResult result) {
  const std::string display = display_of(message);
  protocol::CellResult& told = last_.emplace().result.emplace(result);
  if (display.empty()) return results_.push_back({{}, std::move(result)});
  const Json* const update = member(message, "update");
  told.display_id = display;
  if (update == nullptr || *update != true) return results_.push_back({display, std::move(result)});
  told.update.emplace(true);
  const auto earlier = std::ranges::find(results_, display, &Result::display);
  if (earlier == results_.end()) return results_.push_back({display, told});
  for (Result& each : results_)
    if (each.display == display) each.value = result;
}

CellAnswer::Said CellAnswer::take_clear(const Json& message) {
  if (left_ < kOfResult) return Said::other;
  left_ -= kOfResult;
  const Json* const wait = member(message, "wait");
  last_.emplace().clear.emplace(protocol::CellClear{.wait = wait != nullptr && *wait == true});
  return Said::clear;
}

CellAnswer::Said CellAnswer::take_place(const Json& message) {
  const std::string display = display_of(message);
  if (left_ < kOfResult || display.empty()) return Said::other;
  left_ -= kOfResult;
  last_.emplace().place.emplace(protocol::CellPlace{.display_id = display});
  results_.push_back({display, std::nullopt});
  return Said::place;
}

CellAnswer::Said CellAnswer::take_error(const Json& message) {
  if (++errors_ > kMostErrors) return Said::other;
  const Json* const line = member(message, "line");
  error_ = protocol::CellError{.name = bounded_text(message, "name"),
                               .value = bounded_text(message, "value"),
                               .traceback = bounded_text(message, "traceback")};
  if (line != nullptr && line->is_number_unsigned()) error_->line = line->get<std::uint64_t>();
  const std::uint64_t code = number_of(message, "errno");
  const Obstacle kind = code < kMostErrno ? obstacle_of(static_cast<int>(code)) : Obstacle::none;
  if (kind != Obstacle::none) error_->kind.emplace(kind);
  last_.emplace().failure.emplace(*error_);
  return Said::error;
}

CellAnswer::Said CellAnswer::take_done(const Json& message) {
  const Json* const ok = member(message, "ok");
  const Json* const exit = member(message, "exit");
  if (ok == nullptr || !ok->is_boolean() || number_of(message, "count") != count_)
    return Said::garbled;
  done_ = true;
  ok_ = ok->get<bool>() && !error_;
  if (exit != nullptr && exit->is_number_integer()) exit_ = exit->get<std::int64_t>();
  return Said::done;
}

int CellAnswer::status() const {
  if (exit_) return static_cast<int>(*exit_ & 0xFF);
  return done_ && ok_ ? 0 : 1;
}

std::string CellAnswer::error_words() const {
  return error_ ? error_->name + ": " + error_->value : "";
}

std::optional<protocol::InterpreterAnswer> CellAnswer::answer() const {
  if (!done_ && results_.empty() && !error_) return std::nullopt;
  protocol::InterpreterAnswer answer{
      .ok = done_ && ok_, .error = error_, .exit = exit_, .count = count_};
  for (const Result& each : results_)
    if (each.value) answer.results.push_back(*each.value);
  if (unnamed_ > 0) answer.left_out_more.emplace(unnamed_);
  return answer;
}

}  // namespace sbx::session
