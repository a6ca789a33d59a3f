#include "session/open_cell.hpp"

#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <iterator>

#include "base/random.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "policy/load.hpp"
#include "protocol/packet.hpp"
#include "run/variables.hpp"

namespace sbx::session {
namespace {

/// A client that was stopped must not stop the context's supervision.
constexpr timeval kTakesWithin{.tv_sec = 2, .tv_usec = 0};

/// One word for a shell, with each byte as it is.
std::string single_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char letter : text) quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  return quoted + "'";
}

}  // namespace

Result<OpenCell> OpenCell::receive(protocol::EvalRequest request, std::vector<UniqueFd> fds) {
  if (fds.size() != 3)
    return fail(Error{.kind = ErrorKind::internal,
                      .code = "bad-message",
                      .message = "a cell came without its descriptors"});
  OpenCell cell;
  cell.request_ = std::move(request);
  cell.client_ = std::move(fds[0]);
  cell.out_ = std::move(fds[1]);
  cell.err_ = std::move(fds[2]);
  (void)::setsockopt(cell.client(), SOL_SOCKET, SO_SNDTIMEO, &kTakesWithin, sizeof kTakesWithin);
  cell.record.id = cell.request_.id;
  return cell;
}

void OpenCell::name(const ContextOfWorker& context, const run::CallName& call,
                    const std::vector<Degraded>& degraded) {
  record.name = call;
  record.context = context.name;
  record.language = context.language;
  record.degraded = degraded;
}

void OpenCell::name_state(const ContextOfWorker& context, std::uint64_t count) {
  const bool finds_nothing = count == 0 && context.was_lost;
  record.state = count > 0       ? protocol::CellState::kept
                 : finds_nothing ? protocol::CellState::lost
                                 : protocol::CellState::fresh;
  record.lost_because = finds_nothing ? context.lost_because : "";
}

Status OpenCell::narrow(const policy::Policy& policy, const std::string& session) {
  auto narrowed = policy::narrow(policy, request_.overrides, "session \"" + session + "\"");
  if (!narrowed) return fail(narrowed.error().front());
  record.policy = std::move(*narrowed);
  return check_own();
}

/// What is the cell's own travels to its interpreter as text.
Status OpenCell::check_own() const {
  const auto bad = [](const std::string& what) {
    return fail(Error{.kind = ErrorKind::usage,
                      .code = "bad-value",
                      .message = what + " of a cell must be UTF-8 without a NUL",
                      .hint = "a cell can set it itself, byte by byte"});
  };
  const auto fits = [](const std::string& text) { return is_utf8(text) && !text.contains('\0'); };
  if (!fits(request_.directory)) return bad("the directory");
  for (const auto& [name, value] : request_.environment) {
    SBX_TRY(run::check_variable_name(name, "--env"));
    if (!fits(value)) return bad("the variable " + name);
  }
  return {};
}

run::CellOutput::Target OpenCell::target(std::function<void()> exceeded,
                                         std::function<void()> left) const {
  return {.out = out_.get(),
          .err = err_.get(),
          .capture = request_.capture,
          .caps = &record.policy->output,
          .exceeded = std::move(exceeded),
          .left = std::move(left)};
}

std::string OpenCell::begin(std::uint64_t count, const Driver& driver) {
  // Tells the answers to different requests apart. Code in the interpreter can find it: it protects
  // from accidents and from processes that outlive their cell, not from a cell's own code.
  const std::string nonce = random_hex();
  said.emplace(nonce, count, record.policy->output.results.value);
  began_microseconds = sys::now_microseconds();
  if (driver.reads_plain) return plain_request(nonce, count);
  Json request{{"op", "cell"}, {"nonce", nonce}, {"count", count}, {"code", code()}};
  if (!request_.directory.empty()) request["cwd"] = request_.directory;
  for (const auto& [name, value] : request_.environment) request["env:" + name] = value;
  return request.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string OpenCell::plain_request(const std::string& nonce, std::uint64_t count) const {
  std::string own;
  for (const auto& [name, value] : request_.environment)
    own += "\\__sbx_set " + name + " " + single_quoted(value) + " || \\builtin return 1\n";
  if (!request_.directory.empty())
    own += "\\__sbx_change_to " + single_quoted(request_.directory) + "\n";
  std::string text = nonce + " " + std::to_string(count);
  if (!own.empty()) text += " " + std::to_string(own.size());
  text += "\n" + own + code();
  std::erase(text, '\0');  // bash neither keeps nor counts them
  return text;
}

bool OpenCell::decide(record::CellEnd end) {
  if (decided_) return false;
  decided_ = true;
  record.end = std::move(end);
  return true;
}

void OpenCell::tell(const run::OutputPosition& after) {
  if (!request_.follow || !said || !said->last()) return;
  protocol::CellEvent event = *said->last();
  event.after_out = after.out;
  event.after_err = after.err;
  request_.follow = protocol::send(client(), event).has_value();
}

void OpenCell::keep_findings(CellSandbox& sandbox, const run::OfCell& of_cell) {
  record.denials = sandbox.take_denials();
  record.limits_met = sandbox.take_limits_met(status());
  run::NetworkTrouble network = of_cell.attempts();
  std::ranges::move(network.refused, std::back_inserter(record.denials));
  record.network_failures = std::move(network.failed);
  explain(of_cell);
}

void OpenCell::explain(const run::OfCell& of_cell) {
  Outcome outcome{.verdict = Exited{said && !decided_ ? said->status() : 0},
                  .denials = record.denials,
                  .network_failures = record.network_failures};
  outcome.out.last = record.out.last;
  outcome.err.last = record.err.last;
  // An interpreter says its error by the channel, and it is its last word.
  if (said) outcome.err.last += "\n" + said->error_words();
  if (said && said->is_of_directory()) return;  // --cwd: that is told, and no file was missed
  // A cell of a shell is a command line, as of `sh -c`.
  const bool is_shell = record.language == "bash";
  of_cell.explain(
      outcome, request_.directory,
      is_shell ? std::vector<std::string>{"bash", "-c", code()} : std::vector<std::string>());
  record.hints = std::move(outcome.hints);
  notes_ = std::move(outcome.notes);
}

int OpenCell::status() {
  if (said) record.answer = said->answer();
  return record::exit_status_of(record);
}

void OpenCell::answer() {
  const int with_status = status();
  if (began_microseconds > 0)
    record.wall_ms = (sys::now_microseconds() - began_microseconds) / 1000;
  protocol::CellEnded ended{.cell = record::record_of(record), .status = with_status};
  if (!notes_.empty()) ended.notes = std::move(notes_);
  (void)protocol::send(client(), ended);
}

void OpenCell::answer(const Error& error) {
  record.end = {.how = record::CellEnd::How::setup_failed};
  protocol::CellEnded ended{.cell = record::record_of(record, error),
                            .status = sbx::exit_status_of(error)};
  ended.failure.emplace(protocol::fields_from(error));
  (void)protocol::send(client(), ended);
}

}  // namespace sbx::session
