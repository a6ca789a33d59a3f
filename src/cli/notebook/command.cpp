#include "cli/notebook/command.hpp"

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "base/text.hpp"
#include "changes/words.hpp"
#include "cli/cell_words.hpp"
#include "cli/console.hpp"
#include "cli/notebook/cell_run.hpp"
#include "cli/notebook/file.hpp"
#include "cli/notebook/notebook.hpp"
#include "cli/notebook/parameters.hpp"
#include "cli/notebook/starter.hpp"
#include "cli/reader_shown.hpp"
#include "cli/report.hpp"
#include "cli/usage.hpp"
#include "host/host.hpp"
#include "plan/program/languages.hpp"
#include "protocol/requests.hpp"
#include "record/words.hpp"
#include "run/launch.hpp"
#include "session/client.hpp"
#include "session/drivers.hpp"
#include "session/json.hpp"

namespace sbx::cli {
namespace {

using session::member_or;
using session::part;

constexpr const char* kSchema = "sbx.notebook/1";
constexpr const char* kCancelledBefore = "cancelled before the first cell";
/// The session is this command's own.
constexpr Remedies kCures{.of_budget = true, .of_session = true};

/// What has no meaning for a notebook.
Status check_notebook_options(const Invocation& typed) {
  const auto excluded = [](const std::string_view option) {
    return usage(
        "usage", fmt::format("{} and --cells exclude each other", option),
        option == "--github"
            ? "to keep what cells print out of the log: sbx run --cells FILE --out DIR >FILE"
        : option == "-i" ? "sbx session start work; sbx session eval -i work"
                         : "sbx-run(1), NOTEBOOKS, lists the options that --cells excludes");
  };
  const auto& [directory, collect, diff, apply, patterns, yes, keep] = typed.bring_out;
  const std::pair<bool, const char*> unfit[] = {
      {!typed.session.empty(), "--session"},
      {!typed.request.directory.empty(), "--cwd"},
      {typed.request.code.has_value(), "-c"},
      {typed.request.interactive, "-i"},
      {typed.request.stdin_mode != plan::StdinMode::inherit, "--stdin"},
      {typed.request.explain, "--explain"},
      {diff, "--diff"},
      {apply, "--apply"},
      {yes, "--yes"},
      {!keep.empty(), "--keep"},
      {typed.output.events_fd >= 0, "--events-fd"},
      {typed.output.github, "--github"},
      {typed.die_with_parent, "--die-with-parent"},
      {typed.output.dry_run, "--dry-run"},
      {typed.output.trace_time, "--trace-time"}};
  if (typed.cell.notebook.empty())
    return usage("usage",
                 fmt::format("{} without --cells has no effect",
                             typed.cell.keep_going ? "--keep-going" : "--parameter"),
                 "--cells FILE");
  for (const auto& [is_given, option] : unfit)
    if (is_given) return excluded(option);
  if (!collect.empty() && directory.empty())
    return usage("usage", "--collect without --out has no effect", "to copy the files: --out DIR");
  if (typed.request.operands.empty() && !typed.request.code_from_stdin) return {};
  return usage(
      "usage", "--cells takes one notebook, and no command or arguments",
      typed.policies.empty()
          ? "for example: sbx run --cells report.ipynb --out results"
          : "-p names a policy; --parameter NAME=VALUE sets a variable, --out DIR gets the "
            "notebook with its outputs");
}

class CellsCommand {
 public:
  CellsCommand(const Invocation& typed, const OwnProcess& process)
      : typed_(typed),
        process_(process),
        file_(typed.cell.notebook),
        progress_(STDERR_FILENO, typed.output.quiet) {}

  int run(const std::function<Status(CellsCommand&)>& act) {
    auto targets = ReportTargets::prepare(typed_.output);
    targets_ = targets ? std::move(*targets) : ReportTargets::stdout_only(typed_.output);
    Status done = targets ? Status() : Status(fail(targets.error()));
    if (done) done = act(*this);
    if (!done) note_failure(done.error());
    return report();
  }

  Status steps() {
    SBX_TRY(check_notebook_options(typed_));
    Starter starter = SBX_TRY(Starter::fork(typed_, process_));
    notebook_ = SBX_TRY(read_notebook(file_));
    language_ = SBX_TRY(choose_language());
    name_language(notebook_, language_);
    SBX_TRY(give_parameters());
    if (!typed_.bring_out.directory.empty())
      target_.emplace(SBX_TRY(NotebookTarget::prepare(typed_.bring_out.directory, file_)));
    if (std::ranges::any_of(notebook_.cells, &NotebookCell::runs))
      SBX_TRY(run_in_session(starter));
    else if (!typed_.output.quiet)
      console().tell("sbx: the notebook has no code to run\n");
    if (!target_) return {};
    SBX_TRY(target_->write(notebook_text(notebook_)));
    is_written_ = true;
    if (!typed_.output.quiet)
      console().tell("sbx: the notebook is in " + printable(target_->shown()) + "\n");
    return {};
  }

 private:
  /// Says what went wrong. sbx did not do what it was asked for, whatever the cells did.
  void note_failure(const Error& error) {
    console().tell(record::error_text(error, paint()));
    if (!error_) error_ = error;
    if (!detail_.empty() && detail_.find(error.text()) == std::string::npos)
      detail_ += "; " + error.text();
    status_ = exit_status_of(error);
  }

  /// As of a run: the record says it.
  [[nodiscard]] bool is_silent() const {
    return typed_.output.quiet || (typed_.output.json && !typed_.output.verbose);
  }
  [[nodiscard]] Paint paint() const { return paint_for(typed_.output.color, STDERR_FILENO); }

  Status give_parameters() {
    const auto& given = typed_.cell.parameters;
    if (given.empty()) return {};
    const ParametersSet set = SBX_TRY(set_parameters(notebook_, language_, given));
    if (is_silent()) return {};
    if (!set.has_place)
      console().tell(
          "sbx: no cell is tagged \"parameters\": the parameters are in a new first cell\n");
    for (const std::string& name : set.unknown)
      console().tell("sbx: the cell tagged \"parameters\" does not mention " + name +
                     ": perhaps the name is mistyped\n");
    return {};
  }

  Result<std::string> choose_language() const {
    const plan::Language* const own =
        plan::language(notebook_.language == "ir" ? "r" : notebook_.language);
    const std::string& typed = typed_.request.language;
    const bool has_driver = own != nullptr && session::find_driver(own->name).has_value();
    if (typed.empty() && !notebook_.language.empty() && !has_driver)
      return usage("no-context-language",
                   fmt::format("\"{}\" is a notebook of {}, and no interpreter keeps its state "
                               "between cells in that language",
                               printable(file_), printable(notebook_.language)),
                   "cells run in " + session::languages_of_cells());
    const auto driver = SBX_TRY(session::find_driver(!typed.empty()   ? typed
                                                     : own != nullptr ? std::string(own->name)
                                                                      : "python"));
    const bool differs =
        !notebook_.language.empty() && (own == nullptr || own->name != driver->language);
    if (!differs) return std::string(driver->language);
    return usage("other-language",
                 fmt::format("\"{}\" is a notebook of {}, and --lang {} is another language",
                             printable(file_), printable(notebook_.language), driver->language),
                 own != nullptr && session::find_driver(own->name)
                     ? fmt::format("--lang {}", own->name)
                     : "cells run in " + session::languages_of_cells());
  }

  Status run_in_session(Starter& starter) {
    host_ = SBX_TRY(host::probe());
    signals_ = SBX_TRY(take_ending_signals());
    const auto started = starter.start();
    if (!started || started->status != 0) {
      if (const int signal = pending_signal()) return cancelled_before(signal);
      if (!started) return fail(started.error());
      status_ = started->status;
      error_ = started->error;  // it was told
      if (!error_) detail_ = kCancelledBefore;
      return {};
    }
    session_ = started->facts.name;
    run_cells();
    if (target_) note(bring_files_out());
    tell_lost_files();
    note(stop());
    return {};
  }

  void note(const Status& done) {
    if (!done) note_failure(done.error());
  }

  Status cancelled_before(int signal) {
    status_ = sbx::exit_status_of(Cancelled{signal});
    detail_ = kCancelledBefore;
    return {};
  }

  [[nodiscard]] int pending_signal() const {
    signalfd_siginfo info{};
    return ::read(signals_.get(), &info, sizeof info) == sizeof info
               ? static_cast<int>(info.ssi_signo)
               : 0;
  }

  void run_cells() {
    for (NotebookCell& cell : notebook_.cells) {
      if (!cell.runs()) continue;
      if (stops_) {
        ++not_run_;
        continue;
      }
      cell.count = ++count_;
      run_one(cell);
    }
    if (not_run_ > 0 && !is_silent())
      console().tell(fmt::format(
          "sbx: the run stopped: {} did not run{}\n",
          not_run_ == 1 ? "1 cell" : fmt::format("{} cells", not_run_),
          raised_ && !typed_.cell.keep_going ? "; --keep-going goes on after an error" : ""));
  }

  [[nodiscard]] protocol::EvalRequest request_for(const NotebookCell& cell) const {
    return {.id = run::make_run_id(),
            .language = language_,
            .code = cell.source,
            .capture = targets_.any(),
            .follow = true};
  }

  void run_one(NotebookCell& cell) {
    const CellPlace place{
        .host = host_,
        .session = session_,
        .signals = signals_.get(),
        .captures = targets_.any(),
        .progress = progress_,
        .words = fmt::format("cell {} of {}", *cell.count,
                             std::ranges::count_if(notebook_.cells, &NotebookCell::runs))};
    EndedCell end = run_notebook_cell(typed_, place, request_for(cell), *cell.count);
    if (end.unwritten && !cannot_print_) {
      cannot_print_ = true;
      note_failure(*end.unwritten);
    }
    if (end.error) return could_not_run(cell, end);
    const bool answered = member_or(part(end.record, "outcome"), "status", "") == "answered";
    if (!answered) end.outputs.add_end(end.record["outcome"]);
    keep_outputs(cell, end.outputs);
    const bool is_right = end.status == 0 || (answered && cell.may_raise);
    cells_.push_back(cell_entry(cell, end.record, is_right));
    if (!is_silent()) tell_denials(end.record, kCures, paint());
    if (end.cancelled_by != 0 && answered) {
      // The cell was over; the run is not to go on.
      stops_ = true;
      status_ = sbx::exit_status_of(Cancelled{end.cancelled_by});
      detail_ = fmt::format("cancelled after {}", place_of(cell, 0));
    }
    if (is_right) return;
    fail_at(cell, why(end.record), end.status, line_of(end.record));
    if (!is_silent()) tell_hints(end.record, end.notes, kCures);
    if (!is_silent()) tell_cure(end.record, kCures);
    raised_ = answered && end.cancelled_by == 0;
    if (raised_ && typed_.cell.keep_going) stops_ = false;
  }

  /// A cell may give new data to what an earlier one displayed.
  void keep_outputs(NotebookCell& cell, NotebookOutputs& outputs) {
    auto [made, displays, updates] = outputs.take();
    for (const auto& [display, data] : updates)
      for (const Display& each : displays_)
        if (each.name == display) each.cell->outputs[each.number]["data"] = data;
    cell.outputs = std::move(made);
    for (auto& [display, number] : displays)
      displays_.push_back({std::move(display), &cell, number});
  }

  void could_not_run(NotebookCell& cell, EndedCell& end) {
    const Error& error = *end.error;
    end.outputs.add_end({{"status", "setup-failed"}, {"detail", error.text()}});
    keep_outputs(cell, end.outputs);
    if (!end.record.empty()) cells_.push_back(cell_entry(cell, end.record, false));
    stops_ = true;
    if (failed_cell_ == 0) failed_cell_ = cell.number;
    Error placed = error;
    placed.message = place_of(cell, 0) + ": " + error.message;
    note_failure(placed);
  }

  static std::uint64_t line_of(const Json& record) {
    const Json answer = part(record, "answer");
    if (!answer.is_object() || !part(answer, "error").is_object()) return 0;
    const Json& line = part(part(answer, "error"), "line");
    return line.is_number_unsigned() ? line.get<std::uint64_t>() : 0;
  }

  static std::string why(const Json& record) {
    if (std::string end = end_words(record); !end.empty()) return end;
    const Json answer = part(record, "answer");
    if (const std::string text = error_words(record); !text.empty()) {
      constexpr std::size_t kMost = 300;
      return text.size() > kMost ? lossy_utf8(text.substr(0, kMost)) + " ..." : text;
    }
    if (answer.is_object() && part(answer, "exit").is_number_integer())
      return fmt::format("it exited with status {}", part(answer, "exit").get<std::int64_t>());
    return "it did not succeed";
  }

  /// "cell 3 (In [2]), line 4", with the script's line where there is one.
  [[nodiscard]] std::string place_of(const NotebookCell& cell, std::uint64_t line) const {
    std::string place = fmt::format("cell {} (In [{}])", cell.number, cell.count.value_or(0));
    if (line > 0) place += fmt::format(", line {}", line);
    if (cell.line > 0)
      place += fmt::format(", {}:{}", printable(file_), cell.line + (line > 0 ? line - 1 : 0));
    return place;
  }

  void fail_at(const NotebookCell& cell, const std::string& reason, int status,
               std::uint64_t line = 0) {
    stops_ = true;
    const std::string text = place_of(cell, line) + ": " + reason;
    if (!is_silent()) console().tell("sbx: " + printable(text) + "\n");
    if (failed_cell_ > 0) return;
    failed_cell_ = cell.number;
    detail_ = detail_.empty() ? text : detail_ + "; " + text;
    if (!error_) status_ = status;
  }

  // --- the end

  /// As `sbx run --out` does. A workspace that is live has its files already.
  Status bring_files_out() {
    session::Client client = SBX_TRY(session::Client::connect(host_, session_));
    const std::string& directory = typed_.bring_out.directory;
    const protocol::BringOutRequest request{
        .directory = host_.files->canonical(directory).value_or(directory),
        .collect = typed_.bring_out.collect,
        .silent = typed_.output.quiet || typed_.output.json};
    const auto done = read_changes(std::move(client), request, request.silent);
    if (!done && done.error().code == "nothing-to-bring-out") return {};
    if (!done) return fail(done.error());
    if (done->failures) status_ = exit_status::kCouldNot;
    return {};
  }

  /// Of what cells write in a copy, nothing but what --out copies outlives their session.
  void tell_lost_files() {
    if (status_ != 0 || typed_.output.quiet || typed_.output.json) return;
    auto client = session::Client::connect(host_, session_);
    if (!client) return;
    const protocol::ChangesRequest request{.view = protocol::View::json};
    const auto seen = read_changes(std::move(*client), request, true);
    if (!seen) return;
    console().tell(
        changes::lost_by_cells_words(seen->changes, target_.has_value(), typed_.cell.notebook));
  }

  Status stop() {
    session::Client client = SBX_TRY(session::Client::connect(host_, session_));
    return client.stop_and_wait();
  }

  static Json cell_entry(const NotebookCell& cell, const Json& record, bool is_right) {
    return {{"cell", cell.number},
            {"id", cell.id},
            {"line", cell.line > 0 ? Json(cell.line) : Json(nullptr)},
            {"may_raise", cell.may_raise},
            {"success", is_right},
            {"record", record}};
  }

  [[nodiscard]] Json record() const {
    const bool ran = !cells_.empty() || (!error_ && status_ == 0);
    Json json{{"schema", kSchema}, {"sbx", SBX_VERSION}};
    put_name(json, "notebook", file_);
    json["language"] = language_.empty() ? Json(nullptr) : Json(language_);
    Json outcome{{"status", status_ == 0 ? "succeeded"
                            : ran        ? "failed"
                                         : "setup-failed"},
                 {"success", status_ == 0},
                 {"exit_status", status_},
                 {"cell", failed_cell_ > 0 ? Json(failed_cell_) : Json(nullptr)},
                 {"detail", lossy_utf8(error_ && detail_.empty() ? error_->text() : detail_)}};
    if (error_) outcome["code"] = error_->code;
    if (error_ && !error_->hint.empty()) outcome["hint"] = lossy_utf8(error_->hint);
    json["outcome"] = std::move(outcome);
    Json parameters = Json::object();
    for (const auto& [name, value] : typed_.cell.parameters) parameters[name] = value;
    json["parameters"] = std::move(parameters);
    json["cells"] = cells_;
    json["not_run"] = not_run_;
    if (is_written_)
      put_name(json, "written", target_->shown());
    else
      json["written"] = nullptr;
    return json;
  }

  int report() {
    if (!targets_.any()) return status_;
    const Status written = targets_.write(dump(record()));
    if (!written) note_failure(written.error());
    return status_;
  }

  const Invocation& typed_;
  OwnProcess process_;
  const std::string& file_;
  Progress progress_;
  ReportTargets targets_;
  Notebook notebook_;
  std::string language_;
  std::optional<NotebookTarget> target_;
  bool is_written_ = false;
  host::Host host_;
  UniqueFd signals_;
  std::string session_;
  std::uint64_t count_ = 0;
  Json cells_ = Json::array();
  /// An output that later cells can change by its name.
  struct Display {
    std::string name;
    NotebookCell* cell;
    std::size_t number;
  };
  std::vector<Display> displays_;
  std::size_t not_run_ = 0;
  bool stops_ = false;
  bool raised_ = false;  ///< the last cell that ran raised an error
  bool cannot_print_ = false;
  std::size_t failed_cell_ = 0;
  std::string detail_;
  int status_ = 0;
  std::optional<Error> error_;
};

}  // namespace

int cells_command(const Invocation& typed, const OwnProcess& process) {
  return CellsCommand(typed, process).run([](CellsCommand& command) { return command.steps(); });
}

int refuse_cells(const Invocation& typed, const Error& error) {
  return CellsCommand(typed, {}).run([&error](CellsCommand&) { return Status(fail(error)); });
}

}  // namespace sbx::cli
