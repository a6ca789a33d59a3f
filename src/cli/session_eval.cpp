#include "cli/session_eval.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/event_loop.hpp"
#include "base/letters.hpp"
#include "base/read_stream.hpp"
#include "base/signals.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "cli/cell_results.hpp"
#include "cli/cell_words.hpp"
#include "cli/console.hpp"
#include "cli/parent.hpp"
#include "cli/session_order.hpp"
#include "cli/usage.hpp"
#include "client/cell.hpp"
#include "plan/program/languages.hpp"
#include "plan/program/shebang.hpp"
#include "protocol/packet.hpp"
#include "protocol/requests.hpp"
#include "record/cell.hpp"
#include "record/words.hpp"
#include "run/launch.hpp"
#include "run/session_hints.hpp"
#include "session/client.hpp"
#include "session/drivers.hpp"
#include "session/json.hpp"
#include "session/session_name.hpp"

namespace sbx::cli {
namespace {

using session::member_or;
using session::part;

constexpr std::size_t kLongestCode = std::size_t{64} << 20;
/// Where pictures are put that nobody asked for.
constexpr const char* kPictures = "sbx-pictures";

/// One stream of the cell as events: whole characters, and base64 where it is not text.
class StreamEvents {
 public:
  using Print = std::function<void(const Json& event)>;
  StreamEvents(const char* name, Print print) : name_(name), print_(std::move(print)) {}

  void add(std::string_view bytes) {
    rest_ += bytes;
    print(whole());
  }
  void end() { print(rest_.size()); }

 private:
  /// The bytes before a character of which the end is still to come.
  [[nodiscard]] std::size_t whole() const {
    constexpr std::size_t kLongestCharacter = 4;
    for (std::size_t back = 1; back < kLongestCharacter && back <= rest_.size(); ++back) {
      const auto byte = static_cast<unsigned char>(rest_[rest_.size() - back]);
      if ((byte & 0xC0U) == 0x80U) continue;  // in the middle of one
      const std::size_t needs = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
      return needs > back ? rest_.size() - back : rest_.size();
    }
    return rest_.size();
  }

  void print(std::size_t count) {
    if (count == 0) return;
    const std::string bytes = rest_.substr(0, count);
    rest_.erase(0, count);
    const bool text = is_utf8(bytes);
    print_({{"event", name_},
            {"text", text ? bytes : base64(bytes)},
            {"encoding", text ? "utf-8" : "base64"}});
  }

  const char* name_;
  Print print_;
  std::string rest_;
};

Paint paint(const Invocation& typed) {
  return paint_for(typed.output.color, STDERR_FILENO);
}

constexpr std::size_t kLongestFirstLine = 256;  ///< as the kernel reads of it, execve(2)

/// Reads the language from a script's "#!" line. Empty: it has none, or one of something else.
std::string language_of_first_line(const std::string& file) {
  const auto open = sys::open_to_read(file);
  struct stat facts{};
  if (!open || ::fstat(open->get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return {};
  const auto head = sys::read_all(open->get(), kLongestFirstLine);
  const auto line = head ? plan::read_shebang(*head) : std::nullopt;
  if (!line) return {};
  const auto command = plan::env_command(*line);
  std::string program = command && !command->empty() ? command->front() : line->interpreter;
  program.erase(0, program.rfind('/') + 1);
  for (const auto& [name, language] :
       {std::pair("python", "python"), std::pair("node", "javascript"), std::pair("Rscript", "r"),
        std::pair("bash", "bash")})
    if (program.starts_with(name)) return language;
  return program == "sh" ? "bash" : "";
}

/// As typed, or that of the file's extension or first line; empty: none of them says it.
std::string language(const Invocation& typed) {
  if (!typed.request.language.empty() || typed.operands.size() < 2) return typed.request.language;
  const std::string& file = typed.operands[1];
  if (const session::Driver* const driver = session::driver_of_script(file); driver != nullptr)
    return std::string(driver->language);
  // Of one without a driver the session says so.
  const std::size_t dot = file.rfind('.');
  const auto* const known =
      dot == std::string::npos ? nullptr : plan::language_of_extension(file.substr(dot + 1));
  if (known != nullptr) return std::string(known->name);
  return file == "-" ? "" : language_of_first_line(file);
}

/// As it is printed.
Json last_words(const Invocation& typed, const protocol::CellRecord& cell) {
  Json record = write_fields(cell, Form::document);
  return typed.cell.stream ? Json{{"event", "end"}, {"record", std::move(record)}} : record;
}

/// With what can be typed here: the session's name, and the file as a whole program where cells
/// have no interpreter for it.
Error with_cure(Error error, const Invocation& typed) {
  if (typed.operands.empty()) return error;
  const bool is_file = typed.operands.size() > 1 && typed.operands[1] != "-";
  if (error.code == "no-context-language" && is_file && !language(typed).empty())
    error.hint = fmt::format(
        "cells run in {}; as a whole program: sbx run {}{}", session::languages_of_cells(),
        typed.request.language.empty() ? "" : "--lang " + shell_word(typed.request.language) + " ",
        shell_word(typed.operands[1]));
  return run::naming_session(std::move(error), typed.operands.front());
}

/// No cell ran, or nobody knows how it ended.
int no_result(const Invocation& typed, const std::string& id, const Error& failure) {
  const Error error = with_cure(failure, typed);
  console().complain(error, typed.output.color);
  if (!typed.cell.stream && !typed.output.json) return exit_status_of(error);
  record::Cell cell;
  cell.id = id;
  cell.context = typed.cell.context;
  cell.language = language(typed);
  // The interpreter does not outlive the process that supervised it.
  if (error.code == "call-lost" || error.code == "session-gone")
    cell.state = record::CellState::lost;
  if (!typed.operands.empty() && session::check_name(typed.operands.front()))
    cell.name.session = typed.operands.front();
  const Json record = last_words(typed, record::record_of(cell, error));
  return console().print(dump(record)) ? exit_status_of(error) : exit_status::kCouldNot;
}

class Eval {
 public:
  Eval(const Invocation& typed, const host::Host& host, AlreadySaid known)
      : typed_(typed), host_(host), known_(known) {}

  CellRun run() {
    id_ = run::make_run_id();
    const auto status = eval();
    run_.status =
        status ? *status : no_result(typed_, id_, naming_order(status.error(), typed_, host_));
    if (!status) run_.error = status.error().code;
    return run_;
  }

 private:
  Result<int> eval() {
    const protocol::EvalRequest request = SBX_TRY(this->request());
    if (!typed_.cell.results.empty())
      results_.emplace(SBX_TRY(CellResults::open(typed_.cell.results)));
    session::Client connection = SBX_TRY(session::Client::connect(host_, typed_.operands.front()));
    signals_ = SBX_TRY(take_ending_signals());
    if (typed_.die_with_parent) parent_ = open_parent();
    loop_.emplace(SBX_TRY(EventLoop::make()));
    client::Cell cell(std::move(connection), request);
    SBX_TRY(begin(cell));
    while (!ended_) SBX_TRY(loop_->run_once());
    last_ = SBX_TRY(std::move(*ended_));
    return deliver();
  }

  Result<std::string> code() const {
    if (typed_.request.code) return *typed_.request.code;
    const std::string file = typed_.operands.size() > 1 ? typed_.operands[1] : "-";
    if (typed_.operands.size() < 2 && ::isatty(STDIN_FILENO) == 1)
      return usage("no-command", "there is no cell to run",
                   "-i for a prompt, -c CODE, a file, or - for standard input");
    std::string text =
        SBX_TRY(file == "-" ? read_code(STDIN_FILENO, "standard input") : read_file_of_code(file));
    if (file != "-" && language(typed_).empty() && text.starts_with("#!"))
      return usage("no-context-language",
                   fmt::format("'{}' is a script for {}, and no interpreter keeps its state",
                               printable(file),
                               printable(trimmed(std::string_view(text).substr(
                                   2, std::min(text.find('\n'), kLongestFirstLine) - 2)))),
                   "cells run in " + session::languages_of_cells() +
                       "; a whole program: sbx session exec NAME -- ./FILE; to run it all the "
                       "same: --lang");
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
    return text;
  }

  static Result<std::string> read_file_of_code(const std::string& file) {
    if (file.ends_with(".ipynb"))
      return usage("usage", "'" + printable(file) + "' is a notebook, and no cell",
                   "sbx run --cells " + shell_word(file));
    auto opened = sys::open_to_read(file);
    if (opened) return read_code(opened->get(), "'" + printable(file) + "'");
    if (opened.error().hint.empty())
      opened.error().hint = "FILE has the code; code on the command line follows -c";
    return fail(std::move(opened).error());
  }

  static Result<std::string> read_code(int fd, const std::string& shown) {
    auto text = sys::read_stream(fd, kLongestCode + 1);
    if (!text && text.error().errno_value == EISDIR)
      return usage("not-a-file", shown + " is a directory", "name a file, or - for standard input");
    if (!text) {
      text.error().message = "cannot read " + shown;
      text.error().hint = "name a file of this machine that can be read, or - for standard input";
      return fail(std::move(text).error());
    }
    if (text->size() > kLongestCode)
      return usage("too-large", shown + " has more than 64 MiB, which is the most for one cell",
                   "divide it, or run it as a program: sbx session exec NAME FILE");
    return std::move(*text);
  }

  Result<protocol::EvalRequest> request() {
    if (typed_.operands.size() > (typed_.request.code ? 1U : 2U))
      return usage("usage", "\"sbx session eval\" takes one cell", "sbx session eval --help");
    if (typed_.cell.stream && typed_.output.json)
      return usage("usage", "--json and --stream exclude each other",
                   "the last event of --stream has the record");
    if (std::ranges::find(typed_.named, "environment.pass", &policy::Override::key) !=
        typed_.named.end())
      return usage("not-of-a-call", "environment.pass is the session's, and a cell can't change it",
                   "--env NAME=VALUE gives the cell a variable of its own");
    protocol::EvalRequest request{.id = id_,
                                  .language = language(typed_),
                                  .context = typed_.cell.context,
                                  .code = SBX_TRY(code()),
                                  .overrides = typed_.named,
                                  .capture = typed_.output.json,
                                  .follow = typed_.cell.stream,
                                  .directory = typed_.request.directory,
                                  .environment = SBX_TRY(run::read_variables(typed_.variables))};
    if (!is_utf8(request.code))
      return usage("bad-code", "the cell is not UTF-8", "convert it: iconv -t utf-8 FILE");
    return request;
  }

  Status begin(client::Cell& cell) {
    client::Cell::Hooks hooks{.ended = [this](client::Cell::Ended ended) {
      out_events_.end();
      err_events_.end();
      ended_.emplace(std::move(ended));
    }};
    if (typed_.cell.stream) {
      print({{"event", "start"}, {"id", id_}});
      hooks.out = [this](std::string_view bytes) { out_events_.add(bytes); };
      hooks.err = [this](std::string_view bytes) { err_events_.add(bytes); };
      hooks.event = [this](const protocol::CellEvent& event) { tell_event(event); };
    }
    const int streams[] = {STDOUT_FILENO, STDERR_FILENO};
    SBX_TRY(cell.attach(*loop_, std::move(hooks), streams));
    SBX_TRY(loop_->watch(signals_.get(), EPOLLIN, [this, &cell](std::uint32_t) {
      while (const int signal = signals::next(signals_.get())) cancel(cell, signal);
    }));
    if (!parent_.valid()) return {};
    return loop_->watch(parent_.get(), EPOLLIN, [this, &cell](std::uint32_t) {
      loop_->forget(parent_.get());
      cancel(cell, SIGHUP);
    });
  }

  void cancel(client::Cell& cell, int signal) {
    run_.signal = signal;
    cell.cancel(signal);
  }

  void tell_event(const protocol::CellEvent& event) {
    tell_part("result", event.result);
    tell_part("clear", event.clear);
    tell_part("place", event.place);
    tell_part("error", event.failure);
  }

  template <class Part>
  void tell_part(const char* name, const IfAny<Part>& part) {
    if (!part) return;
    Json line{{"event", name}};
    line.update(write_fields(*part, Form::document));
    print(line);
  }

  /// A reader of events that misses one is told no other, and the cell goes on.
  void print(const Json& event) { printed_ = printed_ && console().print(dump(event)); }

  // --- the answer

  Result<int> deliver() {
    protocol::CellRecord& record = last_.cell;
    const bool is_saved = save(record);
    const int status = is_saved ? last_.status : exit_status::kCouldNot;
    const bool as_json = typed_.cell.stream || typed_.output.json;
    if (last_.failure) {
      Error error = protocol::error_of(std::move(*last_.failure));
      if (!as_json) return fail(std::move(error));
      console().complain(error, typed_.output.color);
    }
    if (as_json)
      print(last_words(typed_, record));
    else
      printed_ = tell(record);
    run_.is_unwritten = !printed_ || record.write_error;
    return printed_ ? status : exit_status::kCouldNot;
  }

  /// The cell has run, whatever becomes of its files.
  [[nodiscard]] bool save(protocol::CellRecord& record) {
    if (!results_ && shows_pictures(record)) {
      auto directory = CellResults::open(kPictures);
      if (directory)
        results_.emplace(std::move(*directory));
      else
        console().complain(directory.error(), typed_.output.color);
    }
    if (!results_) return true;
    Status saved = results_->save(record, typed_.cell.results.empty());
    if (saved) return true;
    Error& error = saved.error();
    const std::string& typed = typed_.cell.results;
    error.message = "not all values of the cell are in '" + (typed.empty() ? kPictures : typed) +
                    "': " + error.message;
    console().complain(error, typed_.output.color);
    return false;
  }

  /// On a terminal a picture is saved unasked: it can't be shown, and is gone with the answer.
  [[nodiscard]] bool shows_pictures(const protocol::CellRecord& record) const {
    if (typed_.cell.stream || typed_.output.json || typed_.output.quiet) return false;
    if (::isatty(STDOUT_FILENO) != 1) return false;
    return record.answer && std::ranges::any_of(record.answer->results, [](const auto& each) {
             return has_picture(each.data);
           });
  }

  [[nodiscard]] bool tell(const protocol::CellRecord& record) {
    bool printed = true;
    const char* const cure = typed_.cell.results.empty() ? "--results DIR saves it" : "";
    if (record.answer) {
      run_.count = record.answer->count;
      for (const protocol::CellResult& each : record.answer->results)
        printed = show_result(each, typed_.output.quiet, cure) && printed;
      if (const auto& error = record.answer->error) {
        tell_error(*error, paint(typed_));
        if (error->kind && !typed_.output.quiet)
          console().tell("sbx: --cwd names a directory of the session: sbx session ls " +
                         typed_.operands.front() + " lists what is there\n");
      }
    }
    run_.lost_state = record.state == protocol::CellState::lost;
    run_.ended_context = run_.lost_state && !record.lost_because;
    if (!typed_.output.quiet)
      tell_outcome(write_fields(record, Form::document),
                   last_.notes.value_or(std::vector<std::string>()), known_,
                   {.of_budget = sets_budget(record)}, paint(typed_));
    return printed;
  }

  /// An option of this cell set the budget that it has spent.
  [[nodiscard]] bool sets_budget(const protocol::CellRecord& record) const {
    const auto& reason = record.outcome.reason;
    if (!reason) return false;
    const std::string key = *reason == "output" ? "output.passed" : "limits." + *reason;
    return std::ranges::find(typed_.named, key, &policy::Override::key) != typed_.named.end();
  }

  const Invocation& typed_;
  const host::Host& host_;
  const AlreadySaid known_;
  CellRun run_;
  std::string id_;
  std::optional<CellResults> results_;
  UniqueFd signals_;
  UniqueFd parent_;  ///< --die-with-parent
  std::optional<EventLoop> loop_;
  StreamEvents out_events_{"stdout", [this](const Json& event) { print(event); }};
  StreamEvents err_events_{"stderr", [this](const Json& event) { print(event); }};
  bool printed_ = true;
  std::optional<client::Cell::Ended> ended_;
  protocol::CellEnded last_;
};

}  // namespace

CellRun run_cell(const Invocation& typed, const host::Host& host, AlreadySaid known) {
  return Eval(typed, host, known).run();
}

int refuse_cell(const Invocation& typed, const Error& error) {
  return no_result(typed, run::make_run_id(), error);
}

}  // namespace sbx::cli
