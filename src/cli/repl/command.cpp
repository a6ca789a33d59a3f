#include "cli/repl/command.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>

#include <sbx/outcome.hpp>

#include "base/tell.hpp"
#include "base/text.hpp"
#include "cli/cell_words.hpp"
#include "cli/console.hpp"
#include "cli/repl/history.hpp"
#include "cli/repl/line_editor.hpp"
#include "cli/repl/questions.hpp"
#include "cli/session_eval.hpp"
#include "cli/usage.hpp"
#include "record/words.hpp"
#include "run/session_hints.hpp"

namespace sbx::cli {
namespace {

constexpr std::size_t kLongestCell = std::size_t{64} << 20;
constexpr int kOfSignal = 128;

/// Lines of an input that is not a terminal.
class PlainLines {
 public:
  explicit PlainLines(int signals) : signals_(signals) {}

  Line read() {
    for (;;) {
      if (const std::size_t end = unread_.find('\n'); end != std::string::npos) return take(end);
      if (unread_.size() > kLongestCell || (ended_ && !unread_.empty()))
        return take(unread_.size());
      if (ended_) return {.end = Line::End::end_of_input};
      pollfd watched[2] = {{STDIN_FILENO, POLLIN, 0}, {signals_, POLLIN, 0}};
      if (::poll(watched, 2, -1) < 0) continue;
      signalfd_siginfo info{};
      if (watched[1].revents != 0 && ::read(signals_, &info, sizeof info) == sizeof info)
        return {.end = Line::End::signal, .signal = static_cast<int>(info.ssi_signo)};
      if (watched[0].revents != 0) more();
    }
  }

 private:
  Line take(std::size_t end) {
    Line line{.text = unread_.substr(0, end)};
    unread_.erase(0, end + 1);
    return line;
  }
  void more() {
    char bytes[4096];
    const ssize_t got = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    ended_ = got <= 0;
    if (got > 0) unread_.append(bytes, static_cast<std::size_t>(got));
  }

  int signals_;
  std::string unread_;
  bool ended_ = false;
};

bool is_empty_cell(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") == std::string::npos;
}

/// Without the blank lines that ended it.
std::string without_last_blanks(std::string cell) {
  cell.erase(cell.find_last_not_of(" \t\r\n") + 1);
  return cell;
}

/// Whether a line leaves the prompt: what leaves the language's own one, and what people try who do
/// not know that. As cells they would disappoint: Python and bash end only the cell, and R loses
/// what it remembers.
bool means_leaving(const std::string& line, std::string_view language) {
  const std::string word = without_last_blanks(line);
  if (word == "exit") return true;
  // "exit()" begins the definition of a function there, and "quit" may be a command.
  if (language == "bash") return false;
  if (word == "exit()" || word == "quit" || word == "quit()") return true;
  return (language == "javascript" && word == ".exit") || (language == "r" && word == "q()");
}

class Repl {
 public:
  Repl(const Invocation& typed, const host::Host& host) : typed_(typed), host_(host) {}

  int run() {
    const auto status = loop();
    return status ? *status : could_not(status.error());
  }

 private:
  [[nodiscard]] int could_not(const Error& error) const {
    const Error named = run::naming_session(error, typed_.operands.front());
    console().complain(named, typed_.output.color);
    return exit_status_of(named);
  }

  Result<int> loop() {
    SBX_TRY(check());
    const std::string& session = typed_.operands.front();
    signals_ = SBX_TRY(take_ending_signals());
    questions_.emplace(host_, session, signals_.get());
    if (!SBX_TRY(questions_->begin(typed_.request.language, typed_.cell.context)))
      return kOfSignal + next_signal();  // which was the reason
    number_ = questions_->count() + 1;
    if (::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1) use_terminal();
    if (!editor_) plain_.emplace(signals_.get());
    if (typed_.request.code || typed_.operands.size() > 1) run_first();
    while (!end_)
      if (const auto cell = SBX_TRY(read_cell())) eval(*cell);
    return *end_;
  }

  [[nodiscard]] Status check() const {
    if (typed_.output.json || typed_.cell.stream)
      return usage("usage", "-i speaks to a person, and not in JSON",
                   "without -i each cell has its record");
    if (typed_.die_with_parent)
      return usage("usage", "-i and --die-with-parent exclude each other",
                   "a prompt ends with its terminal");
    if (!typed_.request.directory.empty() || !typed_.variables.empty())
      return usage("usage",
                   typed_.variables.empty() ? "-i and --cwd exclude each other"
                                            : "-i and --env exclude each other",
                   "both are one cell's; a cell that changes them for those after it can be typed");
    if (typed_.operands.size() > (typed_.request.code ? 1U : 2U))
      return usage("usage", "\"sbx session eval -i\" takes one file", "sbx session eval --help");
    if (typed_.operands.size() > 1 && typed_.operands[1] == "-")
      return usage("usage", "-i reads cells from standard input already", "leave out \"-\"");
    return {};
  }

  /// 0 where none has come.
  [[nodiscard]] int next_signal() const {
    signalfd_siginfo info{};
    const bool came = ::read(signals_.get(), &info, sizeof info) == sizeof info;
    return came ? static_cast<int>(info.ssi_signo) : 0;
  }

  void use_terminal() {
    editor_ = LineEditor::open(signals_.get(), [this](const std::string& before) {
      return questions_->completion(cell_.empty() ? before : cell_ + "\n" + before);
    });
    if (!editor_) return;
    greet();
    auto history = History::open(host_, questions_->language());
    if (!history) {
      say("there is no history: " + history.error().text());
      return;
    }
    history_.emplace(std::move(*history));
    for (const std::string& each : history_->cells()) editor_->remember(each);
  }

  /// One line for a person: what this is, and how to leave it.
  void greet() const {
    if (::isatty(STDERR_FILENO) != 1) return;
    const std::string& language = questions_->language();
    const std::string context = printable(questions_->context());
    say(fmt::format("{} in the session \"{}\"{}; Ctrl-D leaves, and the session lives on", language,
                    printable(typed_.operands.front()),
                    context == language ? "" : ", context \"" + context + "\""));
  }

  void say(const std::string& words) const {
    if (!typed_.output.quiet) console().tell(note_lines({words}));
  }

  // --- reading

  Line read_line(const std::string& indent) {
    if (plain_) return plain_->read();
    const std::string prompt = "In [" + std::to_string(number_) + "]: ";
    const std::string more = std::string(prompt.size() - 5, ' ') + "...: ";
    return editor_->read(cell_.empty() ? prompt : more, indent);
  }

  /// A whole cell; nothing where there is none to run, and where there will be none, with the
  /// status to end with.
  Result<std::optional<std::string>> read_cell() {
    cell_.clear();
    std::string indent;
    for (;;) {
      Line line = read_line(indent);
      switch (line.end) {
        case Line::End::interrupted:
          return std::nullopt;
        case Line::End::signal:
          end_ = kOfSignal + line.signal;
          return std::nullopt;
        case Line::End::end_of_input:
          if (editor_) write_stdout_line();
          if (!cell_.empty()) return without_last_blanks(cell_);
          end_ = 0;
          return std::nullopt;
        case Line::End::line:
          break;
      }
      if (cell_.empty() && is_empty_cell(line.text)) return std::nullopt;
      if (cell_.empty() && means_leaving(line.text, questions_->language())) {
        end_ = 0;
        return std::nullopt;
      }
      cell_ += (cell_.empty() ? "" : "\n") + line.text;
      if (cell_.size() > kLongestCell) return without_last_blanks(cell_);
      auto known = questions_->completeness(lossy_utf8(cell_));
      if (!known) return fail(ended());
      if (const int signal = next_signal(); signal != 0) {
        if (signal != SIGINT || plain_) end_ = kOfSignal + signal;
        return std::nullopt;
      }
      if (known->is_complete) return without_last_blanks(cell_);
      indent = known->indent;
    }
  }

  static void write_stdout_line() { (void)console().print("\n"); }

  [[nodiscard]] Error ended() const {
    return {.kind = ErrorKind::host,
            .code = "session-gone",
            .message = "the session \"" + printable(typed_.operands.front()) + "\" has ended",
            .hint = "sbx session start begins another one"};
  }

  // --- running

  void eval(const std::string& cell) {
    if (editor_) editor_->remember(cell);
    if (history_)
      if (const Status kept = history_->add(cell); !kept) {
        say("the history ends here: " + kept.error().text());
        history_.reset();
      }
    Invocation one = typed_;
    one.operands.resize(1);
    one.request.code = cell;
    one.request.language = questions_->language();
    one.cell.context = questions_->context();
    (void)run_one(one);  // whatever became of it, there is a next one
  }

  /// The cell that was asked for by option or operand. Where it can't run the others wouldn't find
  /// what it was to define, and a script would take their success for its own.
  void run_first() {
    const CellRun run = run_one(typed_);
    if (!run.error.empty() && !end_) end_ = run.status;
  }

  CellRun run_one(const Invocation& one) {
    const CellRun run = run_cell(one, host_, {.lost_state = knows_lost_, .interrupts = true});
    // The first cell of the next interpreter would say it once more.
    knows_lost_ = run.lost_state && !knows_lost_;
    number_ = run.ended_context ? 1 : (run.count > 0 ? run.count : number_) + 1;
    if (means_end(run.error)) end_ = run.status;
    if (run.is_unwritten) end_ = exit_status::kCouldNot;  // nobody would see the next ones
    if (run.signal != 0 && run.signal != SIGINT) end_ = kOfSignal + run.signal;
    if (editor_ && !end_) editor_->begin_fresh_line();
    return run;
  }

  const Invocation& typed_;
  const host::Host& host_;
  UniqueFd signals_;
  std::optional<Questions> questions_;
  std::optional<LineEditor> editor_;
  std::optional<PlainLines> plain_;
  std::optional<History> history_;
  std::string cell_;          ///< its lines so far
  std::uint64_t number_ = 1;  ///< of the next one
  bool knows_lost_ = false;
  std::optional<int> end_;
};

}  // namespace

int session_repl(const Invocation& typed, const host::Host& host) {
  return Repl(typed, host).run();
}

}  // namespace sbx::cli
